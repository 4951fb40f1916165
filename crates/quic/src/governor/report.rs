//! What becomes of an ACK or a timer, for those who watch.

use jostle_control::{RecoveryState, Signal};
use jostle_units::Span;

/// What an ACK leaves behind, for a record of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// RTT sample, if the ACK gave one: without the time for which the receiver held it back.
    pub rtt: Option<Span>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: u64,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: u64,
    /// Bytes of streams acknowledged since the connection began.
    pub acked_bytes: u64,
    /// Packets that were found to be lost.
    pub lost_packets: u32,
}

/// What a settlement brought about, for the observer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    pub acknowledged: Option<Acknowledged>,
    pub lost: u32,
    pub congestion: Option<Signal>,
    pub state: Option<RecoveryState>,
    pub undone: bool,
}
