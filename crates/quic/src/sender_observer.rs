//! Observer of a sending endpoint.

use jostle_congestion::{CongestionSignal, RecoveryState};
use jostle_units::Time;

use crate::congestion::{AckOutcome, FlushReport};

/// Observer of a sender. The methods are called in the order of the events; by default they do
/// nothing.
#[allow(unused_variables, reason = "an observer may have no use for it")]
pub trait SenderObserver {
    /// The sender processed an ACK.
    fn on_ack(&mut self, now: Time, ack: &AckOutcome) {}

    /// The sender declared packets lost.
    fn lost(&mut self, now: Time, packets: u32) {}

    /// The sender reported a congestion event to the controller.
    fn congestion(&mut self, now: Time, signal: CongestionSignal) {}

    /// The sender undid a spurious reduction of cwnd.
    fn on_undo(&mut self, now: Time) {}

    /// The recovery state changed.
    fn state(&mut self, now: Time, state: RecoveryState) {}

    /// The sender sends a datagram. `repeated_bytes` of its payload are retransmitted.
    fn sent(&mut self, now: Time, datagram_bytes: u32, repeated_bytes: u32) {}
}

impl SenderObserver for () {}

/// Reports the outcome of a flush to `observer`, in the order in which it happened.
pub(crate) fn report_flush(now: Time, report: &FlushReport, observer: &mut impl SenderObserver) {
    if report.undone {
        observer.on_undo(now);
    }
    if report.lost > 0 {
        observer.lost(now, report.lost);
    }
    if let Some(signal) = report.congestion {
        observer.congestion(now, signal);
    }
    if let Some(state) = report.state {
        observer.state(now, state);
    }
    if let Some(ack) = &report.acknowledged {
        observer.on_ack(now, ack);
    }
}
