//! The packets that a sender has in the network, by packet number.

use std::collections::VecDeque;

use jostle_control::SendStamp;

/// A packet that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub stamp: SendStamp,
    /// Counts the packets of the connection that are followed, from 0: packet numbers have gaps.
    pub number: u64,
    /// Size, as the stack counts it against the window.
    pub bytes: u16,
    /// Bytes of streams in it.
    pub stream_bytes: u16,
    outstanding: bool,
}

/// A ring of packets, by packet number. Constant time for each; memory as for the span between the
/// oldest outstanding packet and the newest.
#[derive(Debug, Default)]
pub(super) struct Flights {
    ring: VecDeque<Flight>,
    /// Packet number of the ring's first.
    first: u64,
    count: u32,
    bytes: u64,
    next: u64,
}

impl Flights {
    /// Packets in flight.
    #[inline]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Bytes in flight.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of the next packet to be followed.
    #[inline]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Number of the oldest packet in flight; of the next one, if there is none.
    #[inline]
    pub fn first_number(&self) -> u64 {
        self.ring.front().map_or(self.next, |flight| flight.number)
    }

    /// A packet was sent. Packet numbers only grow.
    pub fn push(&mut self, packet: u64, stamp: SendStamp, bytes: u16, stream_bytes: u16) {
        if self.ring.is_empty() {
            self.first = packet;
        }
        let gap = packet.saturating_sub(self.first + self.ring.len() as u64);
        for _ in 0..gap {
            self.ring.push_back(Flight { number: self.next, ..Flight::default() });
        }
        let number = self.next;
        self.ring.push_back(Flight { stamp, number, bytes, stream_bytes, outstanding: true });
        self.next += 1;
        self.count += 1;
        self.bytes += u64::from(bytes);
    }

    /// A packet has left the network: what was known of it, if it is followed.
    pub fn take(&mut self, packet: u64) -> Option<Flight> {
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
        Some(taken)
    }

    /// The size of a packet in flight.
    pub fn size_of(&self, packet: u64) -> Option<u16> {
        let at = usize::try_from(packet.checked_sub(self.first)?).ok()?;
        self.ring.get(at).filter(|flight| flight.outstanding).map(|flight| flight.bytes)
    }

    /// Everything that is in flight was discarded.
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
        let mut flights = Flights::default();
        for packet in [3, 4, 7] {
            flights.push(packet, SendStamp::default(), 100, 0);
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
            let mut flights = Flights::default();
            let mut list: Vec<(u64, u16)> = Vec::new();
            let mut packet = 0;
            for (gap, taken) in steps {
                packet += 1 + gap;
                let bytes = 1 + packet as u16 % 1000;
                flights.push(packet, SendStamp::default(), bytes, 0);
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
