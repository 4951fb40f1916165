//! What the disciplines' unit tests share.

use jostle_units::Time;

use crate::packet::{Ecn, Fate, Packet, Reason};

/// Notes what became of packets.
#[derive(Default)]
pub struct Fates {
    pub dropped: Vec<(Time, Reason)>,
    pub marked: Vec<(Time, Reason)>,
}

impl<B> Fate<B> for Fates {
    fn dropped(&mut self, now: Time, _: &Packet<B>, reason: Reason) {
        self.dropped.push((now, reason));
    }
    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: Reason) {
        assert_eq!(packet.ecn, Ecn::Marked);
        self.marked.push((now, reason));
    }
}

/// A packet of flow 0 whose transport does not understand marks.
pub fn packet(size_bytes: u32) -> Packet<()> {
    Packet { flow: 0, size_bytes, queued_at: Time::ZERO, ecn: Ecn::NotCapable, hop: 0, body: () }
}

/// The same with a transport that does, as it arrives at `now`.
pub fn capable(now: Time, size_bytes: u32) -> Packet<()> {
    Packet { queued_at: now, ecn: Ecn::Capable, ..packet(size_bytes) }
}
