//! What an end tells of itself.

use jostle_control::{RecoveryState, Signal};
use jostle_units::Time;

use crate::governor::Acknowledged;

/// Is told what happens to a sender, in the order in which it happens. Every method does nothing
/// unless it is written.
#[allow(unused_variables, reason = "an observer may have no use for it")]
pub trait Observer {
    /// An ACK was processed.
    fn acknowledged(&mut self, now: Time, ack: &Acknowledged) {}

    /// Packets were found to be lost.
    fn lost(&mut self, now: Time, packets: u32) {}

    /// The controller was told of congestion.
    fn congestion(&mut self, now: Time, signal: Signal) {}

    /// A reduction of the window proved to be needless, and was taken back.
    fn undone(&mut self, now: Time) {}

    /// Recovery went from one state to another.
    fn state(&mut self, now: Time, state: RecoveryState) {}

    /// A datagram is about to leave. `repeated_bytes`: of its payload, what had been sent before.
    fn sent(&mut self, now: Time, datagram_bytes: u32, repeated_bytes: u32) {}
}

impl Observer for () {}
