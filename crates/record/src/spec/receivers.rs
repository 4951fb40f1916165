//! Receivers that do otherwise than Linux's TCP.

use std::collections::BTreeMap;

use jostle_catalogue::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Algorithm;

/// A receiver that does otherwise than Linux's: one that yields, and some that lie (S. Savage et al.:
/// TCP Congestion Control with a Misbehaving Receiver, CCR 29(5), 1999).
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
    /// Offers no more than LEDBAT++ allows, which it runs itself (rLEDBAT, RFC 9840).
    Rledbat {
        /// Queueing delay to hold.
        target_ns: u64,
        /// Factor of the multiplicative decrease.
        constant: f64,
        /// Whether the queue is emptied now and then, to learn the base delay.
        slowdowns: bool,
    },
}

impl ReceiverSpec {
    /// The controller that it runs by the window that it offers, if it does.
    pub fn controller(&self) -> Option<Algorithm> {
        let Self::Rledbat { target_ns, constant, slowdowns } = *self else { return None };
        let parameters = BTreeMap::from([
            ("target".to_owned(), Value::Integer(i64::try_from(target_ns).unwrap_or(i64::MAX))),
            ("constant".to_owned(), Value::Number(constant)),
            ("slowdowns".to_owned(), Value::Bool(slowdowns)),
        ]);
        Some(Algorithm { name: "ledbat++".to_owned(), parameters })
    }
}
