//! Out-of-order segments, stored as runs.
//!
//! A ring with boundary tags: the first and the last segment of a run refer to each other. Adding a
//! segment therefore takes constant time for any number of runs.

use crate::segment::SackBlock;

/// Initial capacity in segments.
const INITIAL_TAGS: usize = 16;

/// A set of segments after the first missing segment.
#[derive(Debug, Default)]
pub(crate) struct OutOfOrderSegments {
    /// For each segment 0 if it is missing, otherwise 1 + the other end of its run. Only the tags
    /// of a run's first and last segment are current. Empty before the first gap.
    tags: Box<[u32]>,
    /// First segment number that has not been removed.
    floor: u32,
    /// End of the highest segment.
    ceiling: u32,
    len: u32,
}

impl OutOfOrderSegments {
    /// Returns the number of segments.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn index(&self, number: u32) -> usize {
        number as usize & (self.tags.len() - 1)
    }

    /// Returns whether the set contains `number`.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.len > 0
            && (self.floor..self.ceiling).contains(&number)
            && self.tags[self.index(number)] != 0
    }

    /// Adds `number`, which must be missing and not below `floor`. Returns its run.
    pub fn insert(&mut self, number: u32) -> SackBlock {
        debug_assert!(number >= self.floor && !self.contains(number));
        while (number - self.floor) as usize >= self.tags.len() {
            self.grow();
        }
        let mut run = SackBlock { start: number, end: number + 1 };
        if number > self.floor && self.contains(number - 1) {
            run.start = self.tags[self.index(number - 1)] - 1;
        }
        if self.contains(number + 1) {
            run.end = self.tags[self.index(number + 1)];
        }
        let own = self.index(number);
        self.tags[own] = number + 1;
        let (first, last) = (self.index(run.start), self.index(run.end - 1));
        self.tags[first] = run.end;
        self.tags[last] = run.start + 1;
        self.len += 1;
        self.ceiling = self.ceiling.max(run.end);
        debug_assert!(self.len <= self.ceiling - self.floor);
        run
    }

    /// Removes `number`, the first missing segment that has just arrived, and the run after it.
    /// Returns the segment that is missing next.
    #[inline]
    pub fn take_from(&mut self, number: u32) -> u32 {
        let mut end = number + 1;
        if self.len > 0 {
            while self.contains(end) {
                let index = self.index(end);
                self.tags[index] = 0;
                self.len -= 1;
                end += 1;
            }
        }
        self.floor = end;
        end
    }

    #[cold]
    fn grow(&mut self) {
        let mut tags = vec![0; (self.tags.len() * 2).max(INITIAL_TAGS)].into_boxed_slice();
        let mask = tags.len() - 1;
        for number in self.floor..self.ceiling {
            tags[number as usize & mask] = self.tags[self.index(number)];
        }
        self.tags = tags;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(arrivals in prop::collection::vec(0u32..300, 1..600)) {
            let mut runs = OutOfOrderSegments::default();
            let mut plain = BTreeSet::new();
            let mut next = 0;
            for offset in arrivals {
                let number = next + offset % 200;
                if number == next {
                    let end = runs.take_from(next);
                    next += 1;
                    while plain.remove(&next) { next += 1; }
                    prop_assert_eq!(end, next);
                } else if plain.contains(&number) {
                    prop_assert!(runs.contains(number));
                } else {
                    let run = runs.insert(number);
                    plain.insert(number);
                    let (mut start, mut end) = (number, number + 1);
                    while start > 0 && plain.contains(&(start - 1)) { start -= 1; }
                    while plain.contains(&end) { end += 1; }
                    prop_assert_eq!(run, SackBlock { start, end });
                }
                prop_assert_eq!(runs.len() as usize, plain.len());
            }
        }
    }
}
