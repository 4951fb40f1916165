//! Datagrams that are sent at a rate, and what they are good for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RateStep;

/// Datagrams of one size, so far apart that their payload has a given rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CbrSpec {
    /// Payload bytes of a datagram.
    pub bytes: u32,
    /// Rate of the payload over the time of the run. The first step is at 0; a rate of 0 sends
    /// nothing.
    pub steps: Vec<RateStep>,
    /// The speech that they carry (absent: they carry none).
    pub voice: Option<VoiceSpec>,
}

/// Speech, as the E-model (ITU-T G.107) wants to know it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoiceSpec {
    /// Equipment impairment factor of the codec, Ie (ITU-T G.113, Appendix I).
    pub equipment_impairment: f64,
    /// Its packet-loss robustness factor, Bpl.
    pub loss_robustness: f64,
    /// From speech to its packet: the speech of a packet, and what the codec looks ahead.
    pub coding_delay_ns: u64,
    /// When the receiver plays a packet.
    pub playout: PlayoutSpec,
}

/// When the receiver plays what was sent: so long after it was sent, the same for all packets of a
/// stretch of time. What comes later is lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlayoutSpec {
    /// As late as gives the largest R: no fixed buffer does better.
    Best,
    /// When so large a share of the packets that arrive have arrived.
    Quantile {
        /// The share.
        share: f64,
    },
    /// So long after the packet that took least would have come.
    Buffer {
        /// Length of the buffer.
        length_ns: u64,
    },
}
