//! Pool of the packets in transit. Links carry slot numbers, so that a packet is copied only twice:
//! from one device and to the other.

use jostle_link::{PacketClass, TransportHeader};
use jostle_units::Time;

/// Slot number of a packet, and its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId(u32, PacketClass);

impl PacketId {
    /// Sets the class of the packet.
    pub const fn of_class(self, class: PacketClass) -> Self {
        Self(self.0, class)
    }
}

/// Queues use only the fields outside the payload. Faults also use the class.
impl TransportHeader for PacketId {
    fn class(&self) -> PacketClass {
        self.1
    }
}

/// A pool of slots of equal size. Slots are reused, so that a steady state does not allocate
/// memory.
pub struct PacketPool {
    slot_bytes: usize,
    /// Maximum number of slots.
    most: usize,
    bodies: Vec<Body>,
    free: Vec<u32>,
}

struct Body {
    /// Longer than the packet if it was filled with `fill`.
    buffer: Vec<u8>,
    length: usize,
    entered: Time,
}

impl PacketPool {
    /// Creates a pool for packets of at most `slot_bytes`, and of at most `most_bytes` together.
    pub fn new(slot_bytes: usize, most_bytes: usize) -> Self {
        let most = (most_bytes / slot_bytes).clamp(1, u32::MAX as usize);
        Self { slot_bytes, most, bodies: Vec::new(), free: Vec::new() }
    }

    /// Returns whether all slots are in use.
    pub fn is_full(&self) -> bool {
        self.slots_in_use() >= self.most
    }

    /// Allocates a slot. `fill` writes the packet into the buffer and returns its length.
    pub fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<PacketId, E> {
        let number = self.free_slot();
        let body = &mut self.bodies[number as usize];
        body.buffer.resize(self.slot_bytes, 0);
        match fill(&mut body.buffer) {
            Ok(length) => {
                body.length = length;
                Ok(PacketId(number, PacketClass::default()))
            }
            Err(error) => {
                self.free.push(number);
                Err(error)
            }
        }
    }

    /// Allocates a slot for a packet, without copying it: `packet` is then an empty buffer of an
    /// earlier packet.
    pub fn exchange(&mut self, packet: &mut Vec<u8>) -> PacketId {
        let number = self.free_slot();
        let body = &mut self.bodies[number as usize];
        body.length = packet.len();
        std::mem::swap(&mut body.buffer, packet);
        packet.clear();
        PacketId(number, PacketClass::default())
    }

    /// Returns the number of a slot that is not in use.
    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.bodies.push(Body { buffer: Vec::new(), length: 0, entered: Time::ZERO });
            self.bodies.len() as u32 - 1
        })
    }

    /// Copies a packet into another slot. The copies may exceed the memory limit, which arriving
    /// packets then find reached.
    pub fn copy(&mut self, slot: PacketId) -> PacketId {
        let packet = self.get(slot).to_vec();
        let copied = self.fill(|buffer| {
            buffer[..packet.len()].copy_from_slice(&packet);
            Ok::<_, std::convert::Infallible>(packet.len())
        });
        let copy = match copied {
            Ok(copy) => copy.of_class(slot.1),
            Err(never) => match never {},
        };
        self.set_entered(copy, self.entered(slot));
        copy
    }

    /// Sets the time at which a packet entered the first link.
    pub fn set_entered(&mut self, slot: PacketId, at: Time) {
        self.bodies[slot.0 as usize].entered = at;
    }

    /// Returns the time at which a packet, or the original of a copy, entered the first link.
    pub fn entered(&self, slot: PacketId) -> Time {
        self.bodies[slot.0 as usize].entered
    }

    /// Returns the packet in a slot.
    pub fn get(&self, slot: PacketId) -> &[u8] {
        let body = &self.bodies[slot.0 as usize];
        &body.buffer[..body.length]
    }

    /// Returns the packet in a slot for modification.
    pub fn get_mut(&mut self, slot: PacketId) -> &mut [u8] {
        let body = &mut self.bodies[slot.0 as usize];
        &mut body.buffer[..body.length]
    }

    /// Frees a slot. The caller must not use its number afterwards.
    pub fn give_back(&mut self, slot: PacketId) {
        self.free.push(slot.0);
    }

    /// Returns the number of slots in use.
    pub fn slots_in_use(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(slots: &mut PacketPool, bytes: &[u8]) -> PacketId {
        let copy = |buffer: &mut [u8]| {
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok::<_, ()>(bytes.len())
        };
        slots.fill(copy).unwrap()
    }

    #[test]
    fn slots_are_used_again_and_keep_their_packets_apart() {
        let mut slots = PacketPool::new(8, 1000);
        let (one, two) = (put(&mut slots, b"one"), put(&mut slots, b"second"));
        assert_eq!((slots.get(one), slots.get(two)), (&b"one"[..], &b"second"[..]));
        slots.give_back(one);
        assert_eq!(put(&mut slots, b"again"), one);
        assert_eq!(
            (slots.get(two), slots.bodies.len(), slots.slots_in_use()),
            (&b"second"[..], 2, 2)
        );
    }

    #[test]
    fn a_packet_is_exchanged_for_the_buffer_of_an_earlier_one() {
        let mut slots = PacketPool::new(8, 1000);
        let mut packet = b"first".to_vec();
        let first = slots.exchange(&mut packet);
        assert!(packet.is_empty());
        assert_eq!(slots.get(first), b"first");
        let copy = slots.copy(first);
        slots.give_back(first);
        packet.extend_from_slice(b"another");
        assert_eq!(slots.exchange(&mut packet), first);
        assert!(packet.is_empty() && packet.capacity() >= 5);
        assert_eq!((slots.get(first), slots.get(copy)), (&b"another"[..], &b"first"[..]));
        // It may be filled again.
        slots.give_back(first);
        let longer = put(&mut slots, b"8 bytes.");
        assert_eq!((longer, slots.get(longer)), (first, &b"8 bytes."[..]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut slots = PacketPool::new(8, 17);
        let first = put(&mut slots, b"one");
        assert!(!slots.is_full());
        put(&mut slots, b"two");
        assert!(slots.is_full());
        slots.give_back(first);
        assert!(!slots.is_full());
    }

    #[test]
    fn nothing_read_holds_no_slot() {
        let mut slots = PacketPool::new(8, 1000);
        assert_eq!(slots.fill(|_| Err("nothing there")), Err("nothing there"));
        assert_eq!(slots.slots_in_use(), 0);
    }
}
