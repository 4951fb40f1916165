//! Rate of a link over time.

use jostle_units::FlowId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rate of a link over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum CapacitySpec {
    /// One rate for the whole run.
    Constant {
        /// Bits per second, including the Ethernet header.
        rate_bps: u64,
    },
    /// Piecewise constant rate. The first step is at 0.
    Steps {
        /// Steps in order of time.
        steps: Vec<RateStep>,
    },
    /// Delivery opportunities of a Mahimahi trace, each for up to `opportunity_bytes`.
    Trace {
        /// Time of each opportunity in milliseconds, never decreasing; the trace repeats after the
        /// last one.
        opportunities_ms: Vec<u32>,
        /// Bytes per opportunity (1500 with IP header, 1514 with Ethernet header).
        opportunity_bytes: u32,
    },
    /// Normally distributed steps, each correlated with the previous one.
    Autoregressive(AutoregressiveSpec),
    /// Packets that the connection of a tunnel accepts.
    Tunnel {
        /// Flow of the connection, as a position in `flows`.
        #[schemars(with = "u32")]
        flow: FlowId,
    },
}

/// A rate with random steps: a stationary AR(1) process, limited to bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoregressiveSpec {
    /// Mean of the rate before the bounds are applied.
    pub mean_bps: u64,
    /// Standard deviation of the rate.
    pub deviation_bps: u64,
    /// Correlation time T: steps a time t apart have the correlation e^(−t / T).
    pub correlation_ns: u64,
    /// Duration of a step.
    pub step_ns: u64,
    /// Lower bound of the rate.
    pub min_bps: u64,
    /// Upper bound of the rate.
    pub max_bps: u64,
}

/// The rate is `rate_bps` from `at_ns` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time of the step.
    pub at_ns: u64,
    /// Rate from then on; 0 stops the link.
    pub rate_bps: u64,
}
