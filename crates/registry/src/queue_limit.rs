//! Capacity of a queue.

use jostle_units::FULL_PACKET_BYTES;
use serde::{Deserialize, Serialize};

/// Capacity of a queue. A packet that does not fit is dropped, even if it could be sent at once. A
/// queue that is smaller than a packet therefore drops every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueLimit {
    /// In bytes on the wire, like Linux's `bfifo`.
    Bytes(u64),
    /// In packets of any size, like Linux's `pfifo`.
    Packets(u64),
}

impl QueueLimit {
    /// Returns the limit in bytes, with full-sized packets.
    pub const fn full_bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Packets(packets) => packets.saturating_mul(FULL_PACKET_BYTES as u64),
        }
    }
}
