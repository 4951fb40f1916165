//! Queue disciplines, one file per kind.

use jostle_units::Time;

use crate::packet::{Fate, Packet};

/// A queue in front of a link. It holds packets that wait, not the one being sent.
pub trait QueueDiscipline<B>: Send {
    /// A packet arrives. It is taken in, or its fate is told; so is that of any packet that has to
    /// leave for it. The link has set `packet.queued_at` to `now`.
    fn enqueue(&mut self, now: Time, packet: Packet<B>, fate: &mut dyn Fate<B>);

    /// The link is free: the packet to send next, after any drops that the discipline decides on.
    fn dequeue(&mut self, now: Time, fate: &mut dyn Fate<B>) -> Option<Packet<B>>;

    /// Bytes waiting.
    fn bytes(&self) -> u64;

    /// Packets waiting.
    fn packets(&self) -> u64;
}
