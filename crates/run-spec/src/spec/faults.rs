//! Faults of packets on a link, and habits of netem.

use jostle_units::FlowId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Faults of packets after their transmission. Each fault sees every packet that was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultsSpec {
    /// Random duplication (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<OccurrenceSpec>,
    /// Random corruption, which the checksum at the receiver detects (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<OccurrenceSpec>,
    /// Random reordering (absent: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<ReorderingSpec>,
    /// Faults of packets with given numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<NumberedFaultsSpec>,
}

impl FaultsSpec {
    /// Returns whether packets can skip the delay of the link.
    pub fn skips_delays(&self) -> bool {
        self.reorder.is_some_and(|it| it.late_ns.is_none() && it.occurrence.probability > 0.0)
    }
}

/// A random event per packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OccurrenceSpec {
    /// Probability of the event.
    pub probability: f64,
    /// Correlation of netem: part of the previous random number in the next one.
    pub correlation: f64,
}

/// Reordering of single packets, as by netem.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderingSpec {
    /// Random event for the packets at the end of a gap.
    pub occurrence: OccurrenceSpec,
    /// Smallest distance of two reordered packets.
    pub gap: u64,
    /// Time by which reordered packets exit later (absent: they skip the delay of the link).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
}

/// Faults of the packets of a flow, or of all flows, by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberedFaultsSpec {
    /// Flow, as a position in `flows` (absent: the packets of all flows are counted together).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub flow: Option<FlowId>,
    /// Class of the packets that are counted (absent: all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<PacketClassSpec>,
    /// Faults, in increasing order of their numbers.
    pub faults: Vec<NumberedFaultSpec>,
}

/// Class of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PacketClassSpec {
    /// TCP segments with data, and all packets of other protocols.
    Data,
    /// TCP segments without data and without SYN.
    Acks,
    /// SYN and SYN-ACK.
    Handshake,
}

/// A fault of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberedFaultSpec {
    /// Number of the packet, from 1.
    pub number: u64,
    /// Fault.
    pub fault: FaultSpec,
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultSpec {
    /// The packet is lost.
    Lose,
    /// The packet is marked with CE, if it is ECN-capable.
    Mark,
    /// The packet is corrupted.
    Corrupt,
    /// The packet arrives twice.
    Duplicate,
    /// The packet exits later, without delaying other packets.
    Late {
        /// Time by which it is late.
        by_ns: u64,
    },
}

/// Habits of netem's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetemSpec {
    /// Largest number of packets in the delay; others are dropped (absent: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_packets: Option<u64>,
    /// Whether the packets in the queue count towards the limit as well.
    pub limit_includes_queue: bool,
    /// Whether all packets of a GSO batch have one random delay.
    pub jitter_per_batch: bool,
}
