//! Sequence numbers extended to 64 bits, so that they do not wrap.

use crate::packet::Segment;

/// Offset of the first number, so that lower numbers remain positive.
const BASE: u64 = 1 << 32;

/// Largest possible window (RFC 7323 §2.2: below 2³⁰).
pub(crate) const WINDOW_MAX: u64 = 1 << 30;

/// Extends the first sequence number of a connection.
pub(crate) fn first(raw: u32) -> u64 {
    BASE + u64::from(raw)
}

/// Returns the number closest to `reference` whose lower 32 bits are `raw`.
pub(crate) fn near(reference: u64, raw: u32) -> u64 {
    let distance = raw.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(distance))
}

/// Returns whether a time stamp or a 32-bit sequence number is later than another (RFC 7323 §5.2).
pub(crate) fn is_after(value: u32, reference: u32) -> bool {
    value.wrapping_sub(reference) as i32 > 0
}

/// A SACK block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub start: u64,
    pub end: u64,
    /// Whether it is a D-SACK, which reports data that arrived twice.
    pub is_duplicate: bool,
}

/// Returns the SACK blocks of an ACK with the cumulative acknowledgment `number`.
pub(crate) fn blocks(number: u64, segment: &Segment) -> impl Iterator<Item = Block> {
    let every = segment.blocks();
    let place = move |&(start, end): &(u32, u32)| {
        let start = near(number, start);
        (start, start + u64::from(end.wrapping_sub(start as u32)))
    };
    every.iter().enumerate().map(move |(position, block)| {
        let (start, end) = place(block);
        // RFC 2883 §4: the first block is a D-SACK if it is below the cumulative ACK or inside the
        // second block.
        let inside = |other: &(u32, u32)| {
            let (from, to) = place(other);
            from <= start && end <= to && (from, to) != (start, end)
        };
        let is_duplicate = position == 0 && (end <= number || every.get(1).is_some_and(inside));
        Block { start, end, is_duplicate }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_where_they_wrap() {
        let reference = first(u32::MAX - 10);
        assert_eq!(near(reference, 5), reference + 16);
        assert_eq!(near(reference + 16, u32::MAX - 10), reference);
        assert!(is_after(3, u32::MAX) && !is_after(u32::MAX, 3) && !is_after(7, 7));
    }
}
