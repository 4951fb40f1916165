//! Shared helpers of the queue disciplines' unit tests.

use jostle_units::{ConnectionId, Time};

use crate::packet::{DropReason, Ecn, Packet, PacketOutcome};

/// Records drops and marks.
#[derive(Default)]
pub struct RecordedOutcomes {
    pub dropped: Vec<(Time, DropReason)>,
    pub marked: Vec<(Time, DropReason)>,
}

impl<B> PacketOutcome<B> for RecordedOutcomes {
    fn dropped(&mut self, now: Time, _: &Packet<B>, reason: DropReason) {
        self.dropped.push((now, reason));
    }
    fn marked(&mut self, now: Time, packet: &Packet<B>, reason: DropReason) {
        assert_eq!(packet.ecn, Ecn::Marked);
        self.marked.push((now, reason));
    }
}

/// Returns a packet of flow 0 that is not ECN-capable.
pub fn packet(size_bytes: u32) -> Packet<()> {
    Packet {
        connection: ConnectionId(0),
        size_bytes,
        queued_at: Time::ZERO,
        ecn: Ecn::NotCapable,
        hop: 0,
        is_corrupted: false,
        dscp: 0,
        transport: (),
    }
}

/// Returns an ECN-capable packet that arrives at `now`.
pub fn capable(now: Time, size_bytes: u32) -> Packet<()> {
    Packet { queued_at: now, ecn: Ecn::Capable, ..packet(size_bytes) }
}
