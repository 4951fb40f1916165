//! Arrivals of a flow's connections.

use jostle_units::LinkId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arrival times of the connections of a multi-connection flow. Connections may overlap. Each
/// opens, transfers the data of the source, and closes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// A Poisson process.
    Poisson {
        /// Connections per second.
        rate_per_s: f64,
    },
    /// A Poisson process whose connections offer a fraction of a link's rate as load.
    Load {
        /// Load: data packets of the connections, with all headers, ÷ rate of the link.
        share: f64,
        /// Position of the link in `links`.
        #[schemars(with = "u32")]
        link: LinkId,
    },
    /// A list of arrivals.
    Listed {
        /// Time of each arrival, counted from the flow's start; never decreasing.
        at_ns: Vec<u64>,
        /// Size of each connection, which replaces the source's (absent: the source's size).
        bytes: Option<Vec<u64>>,
    },
}
