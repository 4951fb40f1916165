//! Sets of byte ranges.

/// Maximum number of ranges in a set. A valid capture does not need more.
const RANGES_MAX: usize = 1 << 13;

/// Sorted, disjoint ranges of bytes with metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<Range>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: u64,
    pub end: u64,
    /// Time stamp of the first segment received above the gap before this range, or the time stamp
    /// that the ACK of this range echoes.
    pub stamp: u32,
    /// Whether an ACK of this range was captured before its data.
    pub is_acked: bool,
    /// Time when that segment was captured.
    pub since_ns: u64,
}

impl Ranges {
    /// Returns the end of the last range.
    pub fn highest(&self) -> Option<u64> {
        self.0.last().map(|range| range.end)
    }

    /// Returns the first range that ends after a byte.
    pub fn after(&self, byte: u64) -> Option<&Range> {
        self.0.get(self.0.partition_point(|range| range.end <= byte))
    }

    /// Returns whether one range contains all of `start..end`.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        self.after(start).is_some_and(|range| range.start <= start && end <= range.end)
    }

    /// Adds a range, calls `missing` for each part that was not in the set, and returns the merged
    /// range. `None` if there are too many ranges.
    pub fn add(&mut self, new: Range, mut missing: impl FnMut(u64, u64)) -> Option<(u64, u64)> {
        // Ranges that overlap or touch the new one.
        let first = self.0.partition_point(|range| range.end < new.start);
        let after = first + self.0[first..].partition_point(|range| range.start <= new.end);
        if first == after && self.0.len() >= RANGES_MAX {
            return None;
        }
        let mut at = new.start;
        for range in &self.0[first..after] {
            if range.start > at {
                missing(at, range.start);
            }
            at = at.max(range.end);
        }
        if new.end > at {
            missing(at, new.end);
        }
        if first == after {
            // The new range splits a gap, so it inherits the metadata of the range above that gap.
            let beyond = self.0.get(first).copied();
            let (stamp, since_ns) =
                beyond.map_or((new.stamp, new.since_ns), |range| (range.stamp, range.since_ns));
            self.0.insert(first, Range { stamp, since_ns, ..new });
            return Some((new.start, new.end));
        }
        let old = self.0[first];
        let joined = Range {
            start: new.start.min(old.start),
            end: new.end.max(self.0[after - 1].end),
            stamp: if new.is_acked { new.stamp } else { old.stamp },
            is_acked: new.is_acked && old.is_acked,
            ..old
        };
        self.0[first] = joined;
        self.0.drain(first + 1..after);
        Some((joined.start, joined.end))
    }

    /// Returns how many bytes of `start..end` are in the set.
    pub fn overlap_bytes(&self, start: u64, end: u64) -> u64 {
        let first = self.0.partition_point(|range| range.end <= start);
        let within = self.0[first..].iter().take_while(|range| range.start < end);
        within.map(|range| range.end.min(end).saturating_sub(range.start.max(start))).sum()
    }

    /// Removes `start..end`, which is inside one range.
    pub fn remove(&mut self, start: u64, end: u64) {
        let at = self.0.partition_point(|range| range.end <= start);
        let Some(&range) = self.0.get(at).filter(|range| range.start < end) else { return };
        let below = Range { end: start, ..range };
        let above = Range { start: end, ..range };
        let rest = [below, above].into_iter().filter(|part| part.start < part.end);
        self.0.splice(at..=at, rest);
    }

    /// Removes all bytes below `byte`.
    pub fn forget_before(&mut self, byte: u64) {
        let removed = self.0.partition_point(|range| range.end <= byte);
        self.0.drain(..removed);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(byte);
        }
    }

    /// Removes the first range if it begins at or before a byte. Returns its end.
    pub fn take_from(&mut self, byte: u64) -> Option<u64> {
        let end = self.0.first().filter(|range| range.start <= byte)?.end;
        self.0.remove(0);
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end, stamp: start as u32, since_ns: start, ..Range::default() }
    }

    #[test]
    fn only_what_was_missing_is_told() {
        let mut ranges = Ranges::default();
        let mut told = Vec::new();
        for (start, end) in [(10, 20), (30, 40), (5, 35), (12, 14), (40, 41)] {
            ranges.add(range(start, end), |from, to| told.push((from, to)));
        }
        assert_eq!(told, [(10, 20), (30, 40), (5, 10), (20, 30), (40, 41)]);
        assert_eq!(ranges.highest(), Some(41));
        assert!(ranges.covers(5, 41) && !ranges.covers(4, 6) && !ranges.covers(40, 42));
        ranges.forget_before(7);
        assert_eq!(ranges.after(0).map(|range| range.start), Some(7));
        assert_eq!(ranges.take_from(6), None);
        assert_eq!(ranges.take_from(7), Some(41));
        assert_eq!(ranges.highest(), None);
    }

    #[test]
    fn parts_of_a_range_are_removed() {
        let mut ranges = Ranges::default();
        ranges.add(range(10, 40), |_, _| {});
        ranges.add(range(50, 60), |_, _| {});
        assert_eq!(ranges.overlap_bytes(0, 100), 40);
        assert_eq!(ranges.overlap_bytes(35, 52), 7);
        ranges.remove(20, 30);
        assert_eq!(ranges.overlap_bytes(0, 100), 30);
        assert!(ranges.covers(10, 20) && ranges.covers(30, 40) && !ranges.covers(20, 21));
        ranges.remove(30, 40);
        ranges.remove(45, 50);
        assert_eq!(ranges.after(20).map(|range| range.start), Some(50));
    }

    #[test]
    fn what_splits_a_hole_says_what_opened_it() {
        let mut ranges = Ranges::default();
        ranges.add(range(100, 110), |_, _| {});
        ranges.add(Range { stamp: 7_000, since_ns: 9, ..range(50, 60) }, |_, _| {});
        assert_eq!(ranges.after(0).map(|range| range.stamp), Some(100));
    }
}
