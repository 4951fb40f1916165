//! Datagrams at a given rate, and the speech that they carry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RateStep;

/// Datagrams of one size, sent at intervals that give their payload a specified rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CbrSpec {
    /// Payload bytes of a datagram.
    pub bytes: u32,
    /// Rate of the payload over the time of the run. The first step is at 0; no datagrams are sent
    /// while the rate is 0.
    pub steps: Vec<RateStep>,
    /// Speech that the datagrams carry (absent: none).
    pub voice: Option<VoiceSpec>,
}

/// Speech parameters of the E-model (ITU-T G.107).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VoiceSpec {
    /// Equipment impairment factor of the codec, Ie (ITU-T G.113, Appendix I).
    pub equipment_impairment: f64,
    /// Packet-loss robustness factor of the codec, Bpl.
    pub loss_robustness: f64,
    /// Coding delay: duration of speech in a packet, and look-ahead of the codec.
    pub coding_delay_ns: u64,
    /// Playout at the receiver.
    pub playout: PlayoutSpec,
}

/// Playout delay at the receiver. It is the same for all packets of an interval, counted from their
/// transmission. Packets that arrive later are lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlayoutSpec {
    /// The delay with the largest R, which no fixed buffer can exceed.
    Best,
    /// The delay at which a given fraction of the packets that arrive have arrived.
    Quantile {
        /// Fraction of the packets.
        share: f64,
    },
    /// A fixed time after the smallest delay of a packet.
    Buffer {
        /// Length of the buffer.
        length_ns: u64,
    },
}
