//! What can be watched on a link.

use jostle_units::Time;

use crate::packet::{Packet, Reason};

/// Watches a link. Every method does nothing unless it is written, and all are known at compile
/// time, so what nobody watches costs nothing; `()` watches nothing.
///
/// A link works in its own logical time (see [`Link`](crate::Link)): `now` is when the thing
/// happens, not when the link was called. `queue_changed`, `sent`, `marked` and drops by the queue
/// come in order of time. Losses on the way come early: they are told when sending starts, with the
/// time at which it ends.
pub trait Probe<B> {
    /// From `now` on, `bytes` in `packets` packets wait.
    #[inline]
    fn queue_changed(&mut self, now: Time, bytes: u64, packets: u64) {
        let _ = (now, bytes, packets);
    }

    /// The packet is put on the wire from `start` to `finish` ([`Time::NEVER`] if the link stops
    /// for good while sending it). `packet.queued_at` is when it arrived.
    #[inline]
    fn sent(&mut self, start: Time, finish: Time, packet: &mut Packet<B>) {
        let _ = (start, finish, packet);
    }

    /// The packet is gone: dropped by the queue or lost after it was sent.
    #[inline]
    fn dropped(&mut self, now: Time, packet: &Packet<B>, reason: Reason) {
        let _ = (now, packet, reason);
    }

    /// The queue has marked the packet instead of dropping it.
    #[inline]
    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: Reason) {
        let _ = (now, packet, reason);
    }
}

impl<B> Probe<B> for () {}
