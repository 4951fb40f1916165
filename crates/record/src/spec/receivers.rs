//! Receivers that do otherwise than Linux's TCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A receiver that lies (S. Savage et al.: TCP Congestion Control with a Misbehaving Receiver, CCR
/// 29(5), 1999).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReceiverSpec {
    /// Sends each ACK that acknowledges something in pieces.
    DividedAcks {
        /// How many.
        pieces: u32,
    },
    /// Sends each ACK several times.
    RepeatedAcks {
        /// How many times beside the first.
        copies: u32,
    },
    /// Acknowledges whatever was sent before what arrives, and some of what was sent after it.
    OptimisticAcks {
        /// How much of it, as a part of what arrives in a round trip.
        lead: f64,
    },
    /// Never says that a packet was marked.
    HiddenMarks,
}
