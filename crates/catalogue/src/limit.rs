//! The most that a queue holds.

use jostle_units::FULL_PACKET_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most that a queue holds. A packet that does not fit is dropped, even if it could be sent at
/// once: a queue smaller than a packet lets nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// In bytes on the wire, as Linux's `bfifo`.
    Bytes(u64),
    /// In packets of any size, as Linux's `pfifo`.
    Packets(u64),
}

impl Limit {
    /// The limit in bytes, where every packet is a full one.
    pub const fn full_bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(packets) => packets.saturating_mul(FULL_PACKET_BYTES as u64),
        }
    }
}
