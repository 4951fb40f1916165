//! Timers of hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Timers of both hosts of a flow, which may be coarse or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimersSpec {
    /// Ticks per second of the kernel (`CONFIG_HZ`), on which the timers of TCP expire (absent: at
    /// the exact time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hz: Option<u32>,
    /// Time by which timers of pacing, and all timers of QUIC, expire too late.
    pub slack_ns: u64,
    /// Time of which these timers expire at multiples (0: at any time).
    pub resolution_ns: u64,
}
