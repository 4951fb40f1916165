//! One direction: links in a row, in logical time.

use jostle_path::{Ecn, Link, Packet, Probe, Reason};
use jostle_record::{Histogram, LinkSpec};
use jostle_units::Time;

use crate::header::{Header, mark_congestion};
use crate::journal::{Event, Journal, What};
use crate::slots::{Slot, Slots};
use crate::{ETHERNET_HEADER_BYTES, Error};

pub(crate) const REASONS: usize = Reason::ALL.len();

/// Packets and their bytes, Ethernet headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub packets: u64,
    pub bytes: u64,
}

impl Amount {
    pub fn add(&mut self, size_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(size_bytes);
    }
}

/// What a link did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub sent: Amount,
    pub dropped: [u64; REASONS],
    pub marked: [u64; REASONS],
    pub queue_max_bytes: u64,
    /// Nanoseconds that packets waited before they were sent.
    pub waited_ns: Histogram,
}

/// What both directions share.
pub(crate) struct Shared {
    pub slots: Slots,
    pub journal: Option<Journal>,
}

/// A link on the way.
pub(crate) struct Hop {
    pub name: String,
    pub link: Link<Slot>,
    pub counts: Counts,
}

/// Links in a row. A packet leaves one and enters the next at the same logical time, however late
/// the caller is.
pub(crate) struct Direction {
    position: u8,
    pub hops: Vec<Hop>,
    pub arrived: Amount,
    pub delivered: Amount,
    /// Packets that the device at the far end did not take.
    pub refused: u64,
    /// Packets for which there was no memory.
    pub unheld: u64,
}

/// Counts and keeps what a link tells.
struct Watch<'a> {
    shared: &'a mut Shared,
    counts: &'a mut Counts,
    direction: u8,
    hop: u8,
}

impl Watch<'_> {
    fn note(&mut self, at: Time, packet: &Packet<Slot>, what: What, reason: Reason) {
        let Some(journal) = &mut self.shared.journal else { return };
        let flow = Header::read(self.shared.slots.get(packet.body)).map(|header| header.flow);
        let (direction, hop, size_bytes) = (self.direction, self.hop, packet.size_bytes);
        journal.add(Event { at, direction, hop, what, reason, size_bytes, flow: None }, flow);
    }
}

impl Probe<Slot> for Watch<'_> {
    fn queue_changed(&mut self, _: Time, bytes: u64, _: u64) {
        self.counts.queue_max_bytes = self.counts.queue_max_bytes.max(bytes);
    }

    fn sent(&mut self, start: Time, _: Time, packet: &mut Packet<Slot>) {
        self.counts.sent.add(packet.size_bytes);
        self.counts.waited_ns.record(start.since(packet.queued_at).as_ns(), 1);
    }

    fn dropped(&mut self, now: Time, packet: &Packet<Slot>, reason: Reason) {
        self.counts.dropped[reason as usize] += 1;
        self.note(now, packet, What::Dropped, reason);
        self.shared.slots.give_back(packet.body);
    }

    fn marked(&mut self, now: Time, packet: &Packet<Slot>, reason: Reason) {
        self.counts.marked[reason as usize] += 1;
        mark_congestion(self.shared.slots.get_mut(packet.body));
        self.note(now, packet, What::Marked, reason);
    }
}

impl Direction {
    /// # Errors
    /// When a link cannot be built.
    pub fn new(position: u8, links: &[LinkSpec], seed: u64) -> Result<Self, Error> {
        let hop = |spec: &LinkSpec| {
            let name = spec.name.clone();
            match spec.build(seed) {
                Ok(link) => Ok(Hop { name, link, counts: Counts::default() }),
                Err(why) => Err(Error::Link { link: name, why }),
            }
        };
        Ok(Self {
            position,
            hops: links.iter().map(hop).collect::<Result<_, _>>()?,
            arrived: Amount::default(),
            delivered: Amount::default(),
            refused: 0,
            unheld: 0,
        })
    }

    /// A packet arrives. What was due by `now` has been taken.
    pub fn arrive(&mut self, now: Time, slot: Slot, shared: &mut Shared) {
        let bytes = shared.slots.get(slot);
        let size_bytes = size_bytes(bytes);
        let header = Header::read(bytes);
        self.arrived.add(size_bytes);
        let packet = Packet {
            flow: header.map_or(0, |header| header.flow.number()),
            size_bytes,
            queued_at: now,
            ecn: header.map_or(Ecn::NotCapable, |header| header.ecn),
            hop: 0,
            body: slot,
        };
        self.push(0, now, packet, shared);
    }

    /// The next packet that has left the last link by `now`, and when it did.
    pub fn due(&mut self, now: Time, shared: &mut Shared) -> Option<(Time, Slot)> {
        loop {
            // Links take their turns in order of time, so that each sees its arrivals in order.
            let times = self.hops.iter().map(|hop| hop.link.next_time());
            let (position, time) = times.enumerate().min_by_key(|&(_, time)| time)?;
            if time > now || time == Time::NEVER {
                return None;
            }
            let (hop, mut watch) = self.parts(position, shared);
            let Some(packet) = hop.pop(time, &mut watch) else { continue };
            if position + 1 == self.hops.len() {
                return Some((time, packet.body));
            }
            self.push(position + 1, time, packet, shared);
        }
    }

    /// When something is due next; [`Time::NEVER`] if nothing is on its way.
    pub fn next_time(&self) -> Time {
        self.hops.iter().map(|hop| hop.link.next_time()).min().unwrap_or(Time::NEVER)
    }

    /// Brings every link up to `now`; what was due by then has been taken.
    pub fn advance(&mut self, now: Time, shared: &mut Shared) {
        for position in 0..self.hops.len() {
            let (link, mut watch) = self.parts(position, shared);
            link.advance(now, &mut watch);
        }
    }

    /// Packets between the devices as of the last call.
    pub fn on_the_way(&self) -> u64 {
        self.hops.iter().map(|hop| hop.link.queue_packets() + hop.link.in_flight()).sum()
    }

    fn push(&mut self, position: usize, at: Time, packet: Packet<Slot>, shared: &mut Shared) {
        let (link, mut watch) = self.parts(position, shared);
        link.push(at, packet, &mut watch);
    }

    /// A link, and what watches it.
    fn parts<'a>(
        &'a mut self,
        position: usize,
        shared: &'a mut Shared,
    ) -> (&'a mut Link<Slot>, Watch<'a>) {
        let Hop { link, counts, .. } = &mut self.hops[position];
        let watch = Watch { shared, counts, direction: self.position, hop: position as u8 };
        (link, watch)
    }
}

/// What a packet occupies on the wire, as the simulator counts it.
pub(crate) fn size_bytes(packet: &[u8]) -> u32 {
    packet.len() as u32 + ETHERNET_HEADER_BYTES
}

#[cfg(test)]
mod tests;
