//! One direction: links in a row, in logical time.

use jostle_link::{DropReason, Ecn, Link, LinkObserver, Packet, PacketClass};
use jostle_metrics::Histogram;
use jostle_run_spec::LinkSpec;
use jostle_units::{ConnectionId, Time};

use crate::event_log::{Event, EventLog, PacketEventKind};
use crate::ip_header::{Header, corrupt, mark_congestion};
use crate::packet_pool::{PacketId, PacketPool};
use crate::{ETHERNET_HEADER_BYTES, LinkError};

pub(crate) const REASONS: usize = DropReason::ALL.len();

/// Packets and their bytes, Ethernet headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl PacketCount {
    /// Counts a packet.
    pub fn add(&mut self, size_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(size_bytes);
    }
}

/// Counters of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub sent: PacketCount,
    pub dropped: [u64; REASONS],
    pub marked: [u64; REASONS],
    pub corrupted: u64,
    pub duplicated: u64,
    pub queue_max_bytes: u64,
    /// Queueing delay in ns.
    pub waited_ns: Histogram,
}

/// State shared by both directions.
pub struct Shared {
    /// The packets in transit.
    pub slots: PacketPool,
    /// All drops and marks, if they are logged.
    pub journal: Option<EventLog>,
}

/// A link with its counters.
pub(crate) struct Hop {
    pub name: String,
    pub link: Link<PacketId>,
    pub counts: Counts,
}

/// Links in a row. A packet enters the next link at the logical time at which it leaves the
/// previous one, even if the event loop is late.
pub struct Direction {
    position: u8,
    pub(crate) hops: Vec<Hop>,
    /// Packets that entered the first link.
    pub arrived: PacketCount,
    /// Packets that the far end accepted.
    pub delivered: PacketCount,
    /// Packets that the far end rejected.
    pub refused: u64,
    /// Packets discarded because of the memory limit.
    pub unheld: u64,
}

/// A packet that has left the last link. The caller frees its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Logical time of the departure.
    pub at: Time,
    /// Slot of the packet.
    pub packet: PacketId,
    /// Whether a link has corrupted the packet: its checksum is wrong.
    pub is_corrupted: bool,
}

/// Counts and logs the events of a link.
struct CountingObserver<'a> {
    shared: &'a mut Shared,
    counts: &'a mut Counts,
    direction: u8,
    hop: u8,
}

impl CountingObserver<'_> {
    fn note(
        &mut self,
        at: Time,
        packet: &Packet<PacketId>,
        what: PacketEventKind,
        reason: DropReason,
    ) {
        let Some(journal) = &mut self.shared.journal else { return };
        let flow = Header::read(self.shared.slots.get(packet.transport)).map(|header| header.flow);
        let (direction, hop, size_bytes) = (self.direction, self.hop, packet.size_bytes);
        journal.add(Event { at, direction, hop, what, reason, size_bytes, flow: None }, flow);
    }
}

impl LinkObserver<PacketId> for CountingObserver<'_> {
    fn queue_changed(&mut self, _: Time, bytes: u64, _: u64) {
        self.counts.queue_max_bytes = self.counts.queue_max_bytes.max(bytes);
    }

    fn sent(&mut self, dequeued: Time, _: Time, _: Time, packet: &mut Packet<PacketId>) {
        self.counts.sent.add(packet.size_bytes);
        self.counts.waited_ns.record(dequeued.since(packet.queued_at).as_ns(), 1);
    }

    fn dropped(&mut self, now: Time, packet: &Packet<PacketId>, reason: DropReason) {
        self.counts.dropped[reason as usize] += 1;
        self.note(now, packet, PacketEventKind::Dropped, reason);
        self.shared.slots.give_back(packet.transport);
    }

    fn marked(&mut self, now: Time, packet: &Packet<PacketId>, reason: DropReason) {
        self.counts.marked[reason as usize] += 1;
        mark_congestion(self.shared.slots.get_mut(packet.transport));
        self.note(now, packet, PacketEventKind::Marked, reason);
    }

    fn corrupted(&mut self, _: Time, packet: &Packet<PacketId>) {
        self.counts.corrupted += 1;
        corrupt(self.shared.slots.get_mut(packet.transport));
    }

    fn duplicated(&mut self, _: Time, copy: &mut Packet<PacketId>) {
        self.counts.duplicated += 1;
        copy.transport = self.shared.slots.copy(copy.transport);
    }
}

impl Direction {
    /// Creates a direction with this `position` in the event log.
    ///
    /// # Errors
    /// When a link cannot be built.
    pub fn new(position: u8, links: &[LinkSpec], seed: u64) -> Result<Self, LinkError> {
        let hop = |spec: &LinkSpec| {
            let name = spec.name.clone();
            match spec.build(seed) {
                Ok(link) => Ok(Hop { name, link, counts: Counts::default() }),
                Err(why) => Err(LinkError { link: name, why }),
            }
        };
        Ok(Self {
            position,
            hops: links.iter().map(hop).collect::<Result<_, _>>()?,
            arrived: PacketCount::default(),
            delivered: PacketCount::default(),
            refused: 0,
            unheld: 0,
        })
    }

    /// Handles an arriving packet. Everything due by `now` must have been delivered.
    pub fn arrive(&mut self, now: Time, slot: PacketId, shared: &mut Shared) {
        let bytes = shared.slots.get(slot);
        let size_bytes = size_bytes(bytes);
        let header = Header::read(bytes);
        self.arrived.add(size_bytes);
        shared.slots.set_entered(slot, now);
        let packet = Packet {
            connection: ConnectionId(header.map_or(0, |header| header.flow.number())),
            size_bytes,
            queued_at: now,
            ecn: header.map_or(Ecn::NotCapable, |header| header.ecn),
            hop: 0,
            is_corrupted: false,
            dscp: header.map_or(0, |header| header.dscp),
            transport: slot.of_class(header.map_or(PacketClass::Data, |header| header.class)),
        };
        self.push(0, now, packet, shared);
    }

    /// Returns the next packet that has left the last link by `now`.
    pub fn due(&mut self, now: Time, shared: &mut Shared) -> Option<Departure> {
        loop {
            // Links are processed in order of time, so that each receives its packets in order.
            let times = self.hops.iter().map(|hop| hop.link.next_time());
            let (position, time) = times.enumerate().min_by_key(|&(_, time)| time)?;
            if time > now || time == Time::NEVER {
                return None;
            }
            let (hop, mut observer) = self.link_and_observer(position, shared);
            let Some(packet) = hop.pop(time, &mut observer) else { continue };
            if position + 1 == self.hops.len() {
                let Packet { transport: packet, is_corrupted, .. } = packet;
                return Some(Departure { at: time, packet, is_corrupted });
            }
            self.push(position + 1, time, packet, shared);
        }
    }

    /// Returns the time of the next event. [`Time::NEVER`] if no packet is in transit.
    pub fn next_time(&self) -> Time {
        self.hops.iter().map(|hop| hop.link.next_time()).min().unwrap_or(Time::NEVER)
    }

    /// Advances all links to `now`. Everything due by then must have been delivered.
    pub fn advance(&mut self, now: Time, shared: &mut Shared) {
        for position in 0..self.hops.len() {
            let (link, mut observer) = self.link_and_observer(position, shared);
            link.advance(now, &mut observer);
        }
    }

    /// Returns the number of packets in transit at the time of the last call.
    pub fn packets_in_transit(&self) -> u64 {
        self.hops.iter().map(|hop| hop.link.queue_packets() + hop.link.in_flight()).sum()
    }

    fn push(&mut self, position: usize, at: Time, packet: Packet<PacketId>, shared: &mut Shared) {
        let (link, mut observer) = self.link_and_observer(position, shared);
        link.push(at, packet, &mut observer);
    }

    /// Returns a link and an observer for its events.
    fn link_and_observer<'a>(
        &'a mut self,
        position: usize,
        shared: &'a mut Shared,
    ) -> (&'a mut Link<PacketId>, CountingObserver<'a>) {
        let Hop { link, counts, .. } = &mut self.hops[position];
        let observer =
            CountingObserver { shared, counts, direction: self.position, hop: position as u8 };
        (link, observer)
    }
}

/// Returns the size of a packet on the wire, as in the simulator.
pub fn size_bytes(packet: &[u8]) -> u32 {
    packet.len() as u32 + ETHERNET_HEADER_BYTES
}

#[cfg(test)]
mod tests;
