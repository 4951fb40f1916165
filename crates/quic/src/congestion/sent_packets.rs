//! Packets in flight, by packet number.

use std::collections::VecDeque;

use jostle_congestion::PacketDeliveryState;

/// A sent packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentPacket {
    pub stamp: PacketDeliveryState,
    /// Number of the packet among the packets counted here, from 0. Packet numbers have gaps.
    pub number: u64,
    /// Size that the stack counts as bytes in flight.
    pub bytes: u16,
    /// Stream bytes in the packet.
    pub stream_bytes: u16,
    outstanding: bool,
}

/// Ring of packets, indexed by packet number. Operations take constant time. Memory grows with the
/// distance between the oldest outstanding and the newest packet.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    ring: VecDeque<SentPacket>,
    /// Packet number of the first element.
    first: u64,
    count: u32,
    bytes: u64,
    next: u64,
}

impl SentPackets {
    /// Returns the packets in flight.
    #[inline]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the bytes in flight.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of the next packet.
    #[inline]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the number of the oldest packet in flight, or of the next packet if none is in
    /// flight.
    #[inline]
    pub fn first_number(&self) -> u64 {
        self.ring.front().map_or(self.next, |flight| flight.number)
    }

    /// Adds a sent packet. Packet numbers must increase.
    pub fn push(&mut self, packet: u64, stamp: PacketDeliveryState, bytes: u16, stream_bytes: u16) {
        if self.ring.is_empty() {
            self.first = packet;
        }
        let end = self.first + self.ring.len() as u64;
        debug_assert!(packet >= end, "packet {packet} after {end}");
        let gap = packet.saturating_sub(end);
        for _ in 0..gap {
            self.ring.push_back(SentPacket { number: self.next, ..SentPacket::default() });
        }
        let number = self.next;
        self.ring.push_back(SentPacket { stamp, number, bytes, stream_bytes, outstanding: true });
        self.next += 1;
        self.count += 1;
        self.bytes += u64::from(bytes);
    }

    /// Removes a packet that is acknowledged or lost, and returns it. `None` if it is not in flight
    /// here.
    pub fn take(&mut self, packet: u64) -> Option<SentPacket> {
        let at = usize::try_from(packet.checked_sub(self.first)?).ok()?;
        let flight = self.ring.get_mut(at).filter(|flight| flight.outstanding)?;
        flight.outstanding = false;
        let taken = *flight;
        self.count -= 1;
        self.bytes -= u64::from(taken.bytes);
        while self.ring.front().is_some_and(|front| !front.outstanding) {
            self.ring.pop_front();
            self.first += 1;
        }
        debug_assert_eq!(self.ring.is_empty(), self.count == 0, "{} packets", self.count);
        debug_assert!(self.count > 0 || self.bytes == 0, "{} bytes", self.bytes);
        Some(taken)
    }

    /// Returns the size of a packet in flight.
    pub fn size_of(&self, packet: u64) -> Option<u16> {
        let at = usize::try_from(packet.checked_sub(self.first)?).ok()?;
        self.ring.get(at).filter(|flight| flight.outstanding).map(|flight| flight.bytes)
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.ring.clear();
        (self.count, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_are_nobodys() {
        let mut flights = SentPackets::default();
        for packet in [3, 4, 7] {
            flights.push(packet, PacketDeliveryState::default(), 100, 0);
        }
        assert_eq!((flights.count(), flights.bytes(), flights.next_number()), (3, 300, 3));
        assert!(
            flights.take(5).is_none() && flights.take(2).is_none() && flights.take(8).is_none()
        );
        assert_eq!(flights.take(4).map(|flight| flight.number), Some(1));
        assert!(flights.take(4).is_none(), "once");
        assert_eq!(flights.first_number(), 0);
        assert_eq!(flights.take(3).map(|flight| flight.number), Some(0));
        assert_eq!((flights.first_number(), flights.size_of(7)), (2, Some(100)));
        assert!(flights.take(7).is_some());
        assert_eq!((flights.count(), flights.bytes(), flights.first_number()), (0, 0, 3));
    }

    proptest! {
        /// Whatever is sent, and taken in whatever order: the counts are those of a plain list.
        #[test]
        fn counts_are_those_of_a_list(steps in prop::collection::vec((0u64..4, 0usize..8), 1..200)) {
            let mut flights = SentPackets::default();
            let mut list: Vec<(u64, u16)> = Vec::new();
            let mut packet = 0;
            for (gap, taken) in steps {
                packet += 1 + gap;
                let bytes = 1 + packet as u16 % 1000;
                flights.push(packet, PacketDeliveryState::default(), bytes, 0);
                list.push((packet, bytes));
                if taken < list.len() {
                    let (packet, bytes) = list.remove(taken);
                    prop_assert_eq!(flights.take(packet).map(|it| it.bytes), Some(bytes));
                }
                prop_assert_eq!(flights.count() as usize, list.len());
                prop_assert_eq!(flights.bytes(), list.iter().map(|it| u64::from(it.1)).sum::<u64>());
            }
        }
    }
}
