//! Capacity on demand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Capacity that a gateway assigns on demand, as in the return channel of a satellite system. The
/// capacity of the link is the largest rate that is granted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantsSpec {
    /// Length of a superframe.
    pub superframe_ns: u64,
    /// Time from a request to the first slot that it may get.
    pub latency_ns: u64,
    /// Time between two request opportunities.
    pub request_interval_ns: u64,
    /// Constant rate assignment (CRA).
    pub constant_bps: u64,
    /// Rate-based dynamic capacity (RBDC; absent: not requested).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_based: Option<RateBasedSpec>,
    /// Whether capacity for the backlog is requested by volume (VBDC).
    pub volume_based: bool,
    /// Largest free capacity assignment (FCA). Each superframe has a uniformly distributed part.
    pub free_bps: u64,
    /// Requested rates are rounded up to a multiple of this rate.
    pub quantum_bps: u64,
    /// Contention slots for a backlog without dynamic capacity (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<ContentionSpec>,
    /// Probability that a request is lost.
    pub request_loss: f64,
    /// Whether the slots are spread over the superframe. Otherwise they are together at its start.
    pub spread: bool,
}

/// Rate-based dynamic capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateBasedSpec {
    /// Over-estimation factor: requested rate ÷ measured input rate, per mille.
    pub over_per_mille: u64,
    /// Part of the backlog that a request adds to the rate, per mille.
    pub gain_per_mille: u64,
    /// Time after which a grant expires that no request has renewed.
    pub persistence_ns: u64,
}

/// Contention slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentionSpec {
    /// Bytes that a terminal may send in the contention slots of a superframe.
    pub bytes: u64,
    /// Probability that an attempt collides.
    pub collision: f64,
    /// Largest number of superframes for which a terminal waits after a collision, in addition to
    /// the latency.
    pub backoff_superframes: u64,
}
