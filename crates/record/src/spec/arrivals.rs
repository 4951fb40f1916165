//! When the connections of a flow come, if it is many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flow that is many connections, one after the other and beside each other: when they come. Each
/// opens, transfers what the source says, and goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// A Poisson process.
    Poisson {
        /// Connections per second.
        rate_per_s: f64,
    },
    /// A Poisson process whose connections offer a link a share of its rate.
    Load {
        /// Their data packets with all headers ÷ the link's rate.
        share: f64,
        /// Position of the link in `links`.
        link: u32,
    },
    /// As they are listed.
    Listed {
        /// When each opens, counted from the flow's start; never decreasing.
        at_ns: Vec<u64>,
        /// Size of each, in place of the source's (absent: as the source says).
        bytes: Option<Vec<u64>>,
    },
}
