//! The queue that every packet passes several times.

/// A first-in-first-out queue of values that are copied. A place is found by a mask:
/// [`std::collections::VecDeque`], which may have room for any number, compares and subtracts for
/// every look at it.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// Those that were used so far, in the order in which they come round. What lies in a place that
    /// is free has no meaning.
    places: Vec<T>,
    /// One less than there is room for: a power of two, or none before the first value.
    mask: usize,
    /// Values taken out since the beginning; it may wrap.
    taken: usize,
    /// Values put in since the beginning; it may wrap.
    put: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { places: Vec::new(), mask: usize::MAX, taken: 0, put: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// Room at first.
    const FIRST_ROOM: usize = 4;

    /// Number of values.
    #[inline]
    pub const fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    #[inline]
    const fn place(&self, count: usize) -> usize {
        count & self.mask
    }

    /// The first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { Some(&self.places[self.place(self.taken)]) }
    }

    /// The value at `index`, counted from the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        (index < self.len()).then(|| &self.places[self.place(self.taken.wrapping_add(index))])
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let place = self.place(self.taken.wrapping_add(index));
        if index < self.len() { Some(&mut self.places[place]) } else { None }
    }

    /// The values in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Takes the value at `index` out, and moves those before it.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let value = *self.get(index)?;
        for behind in (0..index).rev() {
            let from = self.place(self.taken.wrapping_add(behind));
            let to = self.place(self.taken.wrapping_add(behind + 1));
            self.places[to] = self.places[from];
        }
        self.taken = self.taken.wrapping_add(1);
        Some(value)
    }

    /// Takes the first value out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.forget_front();
        Some(value)
    }

    /// Takes the first value out, which there must be, where it has been looked at already.
    #[inline]
    pub fn forget_front(&mut self) {
        debug_assert!(!self.is_empty(), "there is none");
        self.taken = self.taken.wrapping_add(1);
    }

    /// Puts a value in, as the last.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        if self.len() == self.mask.wrapping_add(1) {
            self.grow();
        }
        let place = self.place(self.put);
        match self.places.get_mut(place) {
            Some(free) => *free = value,
            // The next one, for the first time.
            None => self.places.push(value),
        }
        self.put = self.put.wrapping_add(1);
    }

    /// Puts a value in before those at the end that are `later`.
    pub fn push_before(&mut self, value: T, later: impl Fn(&T) -> bool) {
        self.push_back(value);
        let mut count = self.put.wrapping_sub(1);
        while count != self.taken {
            let (before, place) = (self.place(count.wrapping_sub(1)), self.place(count));
            if !later(&self.places[before]) {
                break;
            }
            self.places.swap(before, place);
            count = count.wrapping_sub(1);
        }
    }

    /// Makes room for twice as many. It is not given the value that comes next, so that its callers
    /// can put that together in its place. Only what had come round moves, to behind the others: the
    /// system can enlarge a large allocation without a copy, and every page that a copy touches first
    /// costs a fault.
    #[cold]
    fn grow(&mut self) {
        let count = self.len();
        let room = (2 * count).max(Self::FIRST_ROOM);
        let first = if count == 0 { 0 } else { self.place(self.taken) };
        self.places.reserve_exact(room - count);
        self.places.extend_from_within(..first);
        (self.taken, self.put) = (first, first + count);
        self.mask = room - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_plain_queue(
            start in prop_oneof![Just(0), Just(usize::MAX - 100)],
            steps in prop::collection::vec(prop::option::of(0u32..50), 0..400),
        ) {
            let mut ring = Ring { taken: start, put: start, ..Ring::default() };
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
            prop_assert!(std::iter::from_fn(|| ring.pop_front()).eq(plain));
        }
    }
}
