//! Observer of a link.

use jostle_units::Time;

use crate::packet::{DropReason, Packet};

/// Observer of a link. All methods do nothing by default and are resolved at compile time, so that
/// unused events have no cost; `()` observes nothing.
///
/// A link works in logical time (see [`Link`](crate::Link)): `now` is the time of the event, not of
/// the call. `queue_changed`, `sent`, `marked` and drops by the queue are reported in order of
/// time. Losses after the transmission are reported early, when the transmission begins, with the
/// time at which it ends.
pub trait LinkObserver<B> {
    /// The queue has `packets` packets of `bytes` bytes from `now` on.
    #[inline]
    fn queue_changed(&mut self, now: Time, bytes: u64, packets: u64) {
        let _ = (now, bytes, packets);
    }

    /// The packet, which left the queue at `dequeued`, is transmitted from `start` to `finish`
    /// ([`Time::NEVER`] if the link stops for good during the transmission). It leaves the queue
    /// before `start` if its frame or its first fragment is sent earlier. `packet.queued_at` is its
    /// arrival time.
    #[inline]
    fn sent(&mut self, dequeued: Time, start: Time, finish: Time, packet: &mut Packet<B>) {
        let _ = (dequeued, start, finish, packet);
    }

    /// The packet was dropped by the queue or lost after the transmission.
    #[inline]
    fn dropped(&mut self, now: Time, packet: &Packet<B>, reason: DropReason) {
        let _ = (now, packet, reason);
    }

    /// The packet was marked with CE: by the queue instead of a drop, or by a fault.
    #[inline]
    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: DropReason) {
        let _ = (now, packet, reason);
    }

    /// The packet was corrupted after the transmission. It exits nevertheless.
    #[inline]
    fn corrupted(&mut self, now: Time, packet: &Packet<B>) {
        let _ = (now, packet);
    }

    /// The packet was duplicated after the transmission. `copy` exits as well, and must not share
    /// a payload with the original.
    #[inline]
    fn duplicated(&mut self, now: Time, copy: &mut Packet<B>) {
        let _ = (now, copy);
    }
}

impl<B> LinkObserver<B> for () {}
