//! The queue for packets, which each packet passes several times.

use alloc::vec::Vec;

/// A FIFO queue of values that are copied. The capacity is a power of two, so that a mask finds the
/// slot of a value. [`alloc::collections::VecDeque`] supports any capacity and needs a comparison and
/// a subtraction for each access.
#[derive(Clone, Debug)]
pub struct RingBuffer<T> {
    /// Slots that were used so far. The content of a free slot has no meaning.
    slots: Vec<T>,
    /// Capacity minus 1. The capacity is a power of two, or 0 before the first value.
    mask: usize,
    /// Number of values removed so far; may wrap.
    taken: usize,
    /// Number of values added so far; may wrap.
    put: usize,
}

impl<T> Default for RingBuffer<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), mask: usize::MAX, taken: 0, put: 0 }
    }
}

impl<T: Copy> RingBuffer<T> {
    /// Capacity after the first value.
    const INITIAL_CAPACITY: usize = 4;

    /// Returns the number of values.
    #[inline]
    pub const fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    /// Returns whether the queue is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    #[inline]
    const fn slot(&self, count: usize) -> usize {
        count & self.mask
    }

    /// Returns the first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { Some(&self.slots[self.slot(self.taken)]) }
    }

    /// Returns the value at `index`, counted from the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        (index < self.len()).then(|| &self.slots[self.slot(self.taken.wrapping_add(index))])
    }

    /// Returns the value at `index`, counted from the first, mutably.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let slot = self.slot(self.taken.wrapping_add(index));
        if index < self.len() { Some(&mut self.slots[slot]) } else { None }
    }

    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Removes the value at `index` and moves the values before it.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let value = *self.get(index)?;
        for behind in (0..index).rev() {
            let from = self.slot(self.taken.wrapping_add(behind));
            let to = self.slot(self.taken.wrapping_add(behind + 1));
            self.slots[to] = self.slots[from];
        }
        self.taken = self.taken.wrapping_add(1);
        Some(value)
    }

    /// Removes and returns the first value.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.forget_front();
        Some(value)
    }

    /// Removes the first value without returning it. The queue must not be empty.
    #[inline]
    pub fn forget_front(&mut self) {
        debug_assert!(!self.is_empty(), "there is none");
        self.taken = self.taken.wrapping_add(1);
    }

    /// Appends a value.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        if self.len() == self.mask.wrapping_add(1) {
            self.grow();
        }
        let slot = self.slot(self.put);
        match self.slots.get_mut(slot) {
            Some(free) => *free = value,
            // The slot is used for the first time.
            None => self.slots.push(value),
        }
        self.put = self.put.wrapping_add(1);
    }

    /// Inserts a value before those at the end that are `later`.
    pub fn push_before(&mut self, value: T, later: impl Fn(&T) -> bool) {
        self.push_back(value);
        let mut count = self.put.wrapping_sub(1);
        while count != self.taken {
            let (before, slot) = (self.slot(count.wrapping_sub(1)), self.slot(count));
            if !later(&self.slots[before]) {
                break;
            }
            self.slots.swap(before, slot);
            count = count.wrapping_sub(1);
        }
    }

    /// Doubles the capacity. The new value is not an argument, so that callers can build it in its
    /// slot. Only the values that wrapped around are moved, to the end: the operating system can
    /// enlarge a large allocation without a copy, and each page that a copy touches first causes a
    /// page fault.
    #[cold]
    fn grow(&mut self) {
        let count = self.len();
        let capacity = (2 * count).max(Self::INITIAL_CAPACITY);
        let first = if count == 0 { 0 } else { self.slot(self.taken) };
        self.slots.reserve_exact(capacity - count);
        self.slots.extend_from_within(..first);
        (self.taken, self.put) = (first, first + count);
        self.mask = capacity - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_plain_queue(
            start in prop_oneof![Just(0), Just(usize::MAX - 100)],
            steps in prop::collection::vec(prop::option::of(0u32..50), 0..400),
        ) {
            let mut ring = RingBuffer { taken: start, put: start, ..RingBuffer::default() };
            let mut plain = VecDeque::new();
            for step in steps {
                match step {
                    Some(value) if value < 10 => {
                        let index = value as usize;
                        prop_assert_eq!(ring.remove(index), plain.remove(index));
                    }
                    Some(value) if value < 40 => {
                        ring.push_back(value);
                        plain.push_back(value);
                    }
                    Some(value) => {
                        ring.push_before(value, |other| *other > value);
                        let behind = plain.iter().rev().take_while(|other| **other > value).count();
                        plain.insert(plain.len() - behind, value);
                    }
                    None => prop_assert_eq!(ring.pop_front(), plain.pop_front()),
                }
                prop_assert_eq!(ring.front(), plain.front());
                prop_assert_eq!((ring.len(), ring.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert!(ring.iter().eq(&plain));
            }
            prop_assert!(core::iter::from_fn(|| ring.pop_front()).eq(plain));
        }
    }
}
