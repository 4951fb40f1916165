//! The packets that are on their way. A link carries numbers of slots, so a packet is copied twice
//! only: out of one device and into the other.

use jostle_path::Headers;

/// Number of a packet's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// Queues see of a packet what stands beside its slot.
impl Headers for Slot {}

/// Slots of one size. Those given back are used again, so a link in its steady state allocates
/// nothing.
pub(crate) struct Slots {
    slot_bytes: usize,
    /// Most slots that there may be.
    most: usize,
    bodies: Vec<Body>,
    free: Vec<u32>,
}

struct Body {
    buffer: Box<[u8]>,
    length: usize,
}

impl Slots {
    /// Room for packets of up to `slot_bytes` each, and of up to `most_bytes` together.
    pub fn new(slot_bytes: usize, most_bytes: usize) -> Self {
        let most = (most_bytes / slot_bytes).clamp(1, u32::MAX as usize);
        Self { slot_bytes, most, bodies: Vec::new(), free: Vec::new() }
    }

    /// Whether every slot that there may be is in use.
    pub fn is_full(&self) -> bool {
        self.held() >= self.most
    }

    /// A slot for a packet that `fill` writes into a buffer, returning its length.
    pub fn fill<E>(&mut self, fill: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<Slot, E> {
        let number = self.free.pop().unwrap_or_else(|| {
            let buffer = vec![0; self.slot_bytes].into_boxed_slice();
            self.bodies.push(Body { buffer, length: 0 });
            self.bodies.len() as u32 - 1
        });
        let body = &mut self.bodies[number as usize];
        match fill(&mut body.buffer) {
            Ok(length) => {
                body.length = length;
                Ok(Slot(number))
            }
            Err(error) => {
                self.free.push(number);
                Err(error)
            }
        }
    }

    /// The packet in a slot.
    pub fn get(&self, slot: Slot) -> &[u8] {
        let body = &self.bodies[slot.0 as usize];
        &body.buffer[..body.length]
    }

    /// The packet in a slot, to be changed.
    pub fn get_mut(&mut self, slot: Slot) -> &mut [u8] {
        let body = &mut self.bodies[slot.0 as usize];
        &mut body.buffer[..body.length]
    }

    /// Gives a slot back. Whoever does so no longer knows its number.
    pub fn give_back(&mut self, slot: Slot) {
        self.free.push(slot.0);
    }

    /// Packets that are held.
    pub fn held(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(slots: &mut Slots, bytes: &[u8]) -> Slot {
        let copy = |buffer: &mut [u8]| {
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok::<_, ()>(bytes.len())
        };
        slots.fill(copy).unwrap()
    }

    #[test]
    fn slots_are_used_again_and_keep_their_packets_apart() {
        let mut slots = Slots::new(8, 1000);
        let (one, two) = (put(&mut slots, b"one"), put(&mut slots, b"second"));
        assert_eq!((slots.get(one), slots.get(two)), (&b"one"[..], &b"second"[..]));
        slots.give_back(one);
        assert_eq!(put(&mut slots, b"again"), one);
        assert_eq!((slots.get(two), slots.bodies.len(), slots.held()), (&b"second"[..], 2, 2));
    }

    #[test]
    fn memory_is_bounded() {
        let mut slots = Slots::new(8, 17);
        let first = put(&mut slots, b"one");
        assert!(!slots.is_full());
        put(&mut slots, b"two");
        assert!(slots.is_full());
        slots.give_back(first);
        assert!(!slots.is_full());
    }

    #[test]
    fn nothing_read_holds_no_slot() {
        let mut slots = Slots::new(8, 1000);
        assert_eq!(slots.fill(|_| Err("nothing there")), Err("nothing there"));
        assert_eq!(slots.held(), 0);
    }
}
