//! Receivers that deviate from Linux TCP.

use std::collections::BTreeMap;

use jostle_registry::ParameterValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Algorithm;

/// A receiver that deviates from Linux TCP: a receiver that yields, or one that misbehaves (S.
/// Savage et al.: TCP Congestion Control with a Misbehaving Receiver, CCR 29(5), 1999).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReceiverSpec {
    /// ACK division: splits each ACK of new data into several ACKs.
    AckDivision {
        /// Number of ACKs.
        pieces: u32,
    },
    /// DupACK spoofing: sends copies of each ACK.
    DupackSpoofing {
        /// Number of copies in addition to the first ACK.
        copies: u32,
    },
    /// Optimistic ACKs: acknowledges all data sent before the segment that arrives, and a part of
    /// the data sent after it.
    OptimisticAcking {
        /// Part of the data sent after it, as a fraction of the data that arrive per RTT.
        lead: f64,
    },
    /// Hides CE marks from the sender.
    HiddenEcnMarks,
    /// Limits the receive window by LEDBAT++ at the receiver (rLEDBAT, RFC 9840).
    Rledbat {
        /// Target queueing delay.
        target_ns: u64,
        /// Factor of the multiplicative decrease.
        constant: f64,
        /// Whether periodic slowdowns empty the queue to measure the base delay.
        slowdowns: bool,
    },
}

impl ReceiverSpec {
    /// Returns the controller that limits the receive window, if there is one.
    pub fn controller(&self) -> Option<Algorithm> {
        let Self::Rledbat { target_ns, constant, slowdowns } = *self else { return None };
        let parameters = BTreeMap::from([
            (
                "target".to_owned(),
                ParameterValue::Integer(i64::try_from(target_ns).unwrap_or(i64::MAX)),
            ),
            ("constant".to_owned(), ParameterValue::Number(constant)),
            ("slowdowns".to_owned(), ParameterValue::Bool(slowdowns)),
        ]);
        Some(Algorithm { name: "ledbat++".to_owned(), parameters })
    }
}
