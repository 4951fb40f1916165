//! The application that reads a flow's data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An application that reads slowly. It reads what has arrived, but at most `read_bytes`, handles
/// these data at its rate, and reads again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReaderSpec {
    /// Rate at which it handles data (absent: at once).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Maximum amount of data of one read.
    pub read_bytes: u64,
    /// Times in which it does not read. At most one of them repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<PauseSpec>,
}

/// A time in which an application does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// Begin.
    pub at_ns: u64,
    /// Length.
    pub duration_ns: u64,
    /// Time from the begin of the pause to its repetition (absent: it does not repeat).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
}
