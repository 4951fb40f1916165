//! Contents of packets in transit that would not fit into a cache line. Packets are copied often, so
//! they contain only an index into these pools.

use std::collections::BTreeMap;

use jostle_link::Ecn;
use jostle_tcp::{Ack, Segment, TransitTimes};
use jostle_units::{LinkId, Span};

use crate::packet::{Body, QuicDatagram, SimPacket};

/// A packet inside a datagram of a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedPacket {
    /// Link that the tunnel serves.
    pub link: LinkId,
    pub packet: SimPacket,
}

impl CarriedPacket {
    /// Adds the queueing delay of the datagram to the packet's.
    pub const fn wait(&mut self, queueing_delay: Span) {
        if let Some(trip) = self.packet.transport.trip_mut() {
            trip.wait(queueing_delay);
        }
    }
}

/// Values at reusable places.
#[derive(Debug, Default)]
struct Pool<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Pool<T> {
    /// Returns a free place, and its old value.
    fn vacant(&mut self) -> (u32, &mut T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(T::default());
            self.places.len() as u32 - 1
        });
        (place, &mut self.places[place as usize])
    }

    fn give_back(&mut self, place: u32) {
        debug_assert!(!self.free.contains(&place) || self.free.len() > 64, "given back twice");
        self.free.push(place);
    }

    #[cfg(test)]
    fn in_use(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

/// Payloads of datagrams, and ACKs of data segments. Places are reused after the packet has arrived or
/// was dropped.
#[derive(Debug, Default)]
pub(crate) struct PayloadPool {
    datagrams: Pool<Vec<u8>>,
    acks: Pool<Ack>,
    /// Packets in the datagrams of tunnels, by the index of the datagram's payload.
    carried: BTreeMap<u32, CarriedPacket>,
}

impl PayloadPool {
    /// Stores a copy of `payload`. Returns its index.
    pub fn keep(&mut self, payload: &[u8]) -> u32 {
        let (place, kept) = self.datagrams.vacant();
        kept.clear();
        kept.extend_from_slice(payload);
        place
    }

    /// Returns the payload at an index.
    pub fn get(&self, place: u32) -> &[u8] {
        self.datagrams.places.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// Stores a copy of the payload at an index, and of the packet that its datagram carries. Returns
    /// its index.
    pub fn copy(&mut self, place: u32) -> u32 {
        let payload = self.get(place).to_vec();
        let copy = self.keep(&payload);
        if let Some(mut carried) = self.carried.get(&place).copied() {
            self.copy_of(&mut carried.packet.transport);
            self.carried.insert(copy, carried);
        }
        copy
    }

    /// Creates a datagram, and stores its payload until the datagram arrives or is dropped.
    pub fn datagram(&mut self, payload: &[u8], ecn: Ecn) -> QuicDatagram {
        let (place, payload_bytes) = (self.keep(payload), payload.len() as u16);
        QuicDatagram { place, payload_bytes, ecn, trip: TransitTimes::NONE }
    }

    /// Stores the payload of a packet once more, for a duplicate.
    pub fn copy_of(&mut self, body: &mut Body) {
        match body {
            Body::Quic(datagram) | Body::QuicBack(datagram) | Body::Tunnelled(datagram) => {
                datagram.place = self.copy(datagram.place);
            }
            Body::Tcp(Segment::DataWithAck(segment)) => {
                segment.place = self.keep_ack(self.ack(segment.place));
            }
            _ => {}
        }
    }

    /// Frees the payload of a packet that does not arrive.
    #[inline]
    pub fn free(&mut self, body: &Body) {
        match body {
            Body::Quic(datagram) | Body::QuicBack(datagram) | Body::Tunnelled(datagram) => {
                self.give_back(datagram.place);
            }
            Body::Tcp(Segment::DataWithAck(segment)) => self.give_back_ack(segment.place),
            _ => {}
        }
    }

    /// Puts a packet into the datagram whose payload has an index.
    pub fn carry(&mut self, place: u32, carried: CarriedPacket) {
        self.carried.insert(place, carried);
    }

    /// Returns the packet that a datagram carries.
    pub fn carried(&self, place: u32) -> Option<&CarriedPacket> {
        self.carried.get(&place)
    }

    /// Frees the payload of a datagram. Returns the packet that it carries.
    #[inline]
    pub fn release(&mut self, place: u32) -> Option<CarriedPacket> {
        self.give_back(place);
        if self.carried.is_empty() { None } else { self.carried.remove(&place) }
    }

    /// Frees the payload at an index.
    pub fn give_back(&mut self, place: u32) {
        self.datagrams.give_back(place);
    }

    /// Stores an ACK. Returns its index.
    pub fn keep_ack(&mut self, ack: Ack) -> u32 {
        let (place, kept) = self.acks.vacant();
        *kept = ack;
        place
    }

    /// Returns the ACK at an index.
    pub fn ack(&self, place: u32) -> Ack {
        self.acks.places[place as usize]
    }

    /// Returns whether two ACKs differ in nothing that keeps the NIC from merging their segments: their
    /// numbers, flags and options, but not their windows (`tcp_offload.c::tcp_gro_receive`).
    pub fn have_equal_acks(&self, first: u32, second: u32) -> bool {
        let [first, second] = [first, second].map(|place| self.ack(place));
        first == Ack { window: first.window, clock: first.clock, ..second }
    }

    /// Frees the ACK at an index.
    pub fn give_back_ack(&mut self, place: u32) {
        self.acks.give_back(place);
    }

    /// Returns the number of stored payloads and ACKs.
    #[cfg(test)]
    pub fn in_use(&self) -> usize {
        self.datagrams.in_use() + self.acks.in_use()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut payloads = PayloadPool::default();
        let one = payloads.keep(b"one");
        let two = payloads.keep(b"second");
        assert_eq!((payloads.get(one), payloads.get(two)), (&b"one"[..], &b"second"[..]));
        payloads.give_back(one);
        assert_eq!(payloads.in_use(), 1);
        assert_eq!(payloads.keep(b"3"), one);
        assert_eq!(payloads.get(one), b"3");
        assert_eq!(payloads.in_use(), 2);
    }

    #[test]
    fn an_ack_is_kept_until_it_is_given_back() {
        let mut payloads = PayloadPool::default();
        let place = payloads.keep_ack(Ack { number: 7, ..Ack::default() });
        assert_eq!(payloads.keep_ack(Ack::default()), place + 1);
        assert_eq!(payloads.ack(place).number, 7);
        payloads.give_back_ack(place);
        assert_eq!(payloads.in_use(), 1);
        assert_eq!(payloads.keep_ack(Ack::default()), place);
    }
}
