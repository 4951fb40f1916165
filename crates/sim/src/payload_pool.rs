//! Payloads of datagrams in transit. Packets are copied often, so they contain only an index into
//! this pool.

use std::collections::BTreeMap;

use jostle_units::LinkId;

use crate::packet::SimPacket;

/// A pool of payload buffers. Buffers are reused after the datagram has arrived or was dropped.
#[derive(Debug, Default)]
pub(crate) struct PayloadPool {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// Packets in the datagrams of tunnels, by the index of the datagram's payload.
    carried: BTreeMap<u32, CarriedPacket>,
}

/// A packet inside a datagram of a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedPacket {
    /// Link that the tunnel serves.
    pub link: LinkId,
    pub packet: SimPacket,
}

impl PayloadPool {
    /// Stores a copy of `payload`. Returns its index.
    pub fn keep(&mut self, payload: &[u8]) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Vec::new());
            self.places.len() as u32 - 1
        });
        if let Some(kept) = self.places.get_mut(place as usize) {
            kept.clear();
            kept.extend_from_slice(payload);
        }
        place
    }

    /// Returns the payload at an index.
    pub fn get(&self, place: u32) -> &[u8] {
        self.places.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// Stores a copy of the payload at an index, and of the packet that its datagram carries. Returns
    /// its index.
    pub fn copy(&mut self, place: u32) -> u32 {
        let payload = self.get(place).to_vec();
        let copy = self.keep(&payload);
        if let Some(mut carried) = self.carried.get(&place).copied() {
            if let Some(place) = carried.packet.transport.payload_place_mut() {
                *place = self.copy(*place);
            }
            self.carried.insert(copy, carried);
        }
        copy
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
        debug_assert!(!self.free.contains(&place) || self.free.len() > 64, "given back twice");
        self.free.push(place);
    }

    /// Returns the number of stored payloads.
    #[cfg(test)]
    pub fn in_use(&self) -> usize {
        self.places.len() - self.free.len()
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
}
