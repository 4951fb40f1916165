//! Outcome of an ACK or a timer, for observers.

use jostle_congestion::{CongestionSignal, RecoveryState};
use jostle_units::Span;

/// State after an ACK, for recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOutcome {
    /// RTT sample without the ACK delay, if the ACK gave one.
    pub rtt: Option<Span>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: u64,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: u64,
    /// Stream bytes acknowledged since the start of the connection.
    pub acked_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u32,
}

/// Outcome of a flush, for the observer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushReport {
    pub acknowledged: Option<AckOutcome>,
    pub lost: u32,
    pub congestion: Option<CongestionSignal>,
    pub state: Option<RecoveryState>,
    pub undone: bool,
}
