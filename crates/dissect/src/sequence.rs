//! Sequence numbers that do not wrap.

/// The first numbers lie here, so that what lies before them is still a number.
const BASE: u64 = 1 << 32;

/// No window reaches further (RFC 7323 §2.2: below 2³⁰).
pub(crate) const WINDOW_MAX: u64 = 1 << 30;

/// A number that nothing is known before.
pub(crate) fn first(raw: u32) -> u64 {
    BASE + u64::from(raw)
}

/// The number whose lower half is `raw` and that is next to `reference`.
pub(crate) fn near(reference: u64, raw: u32) -> u64 {
    let distance = raw.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(distance))
}

/// Whether one time stamp, or number of 32 bits, comes after another (RFC 7323 §5.2).
pub(crate) fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) as i32 > 0
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
