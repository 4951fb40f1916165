//! What a receiver's card does before TCP sees anything (generic receive offload).

use jostle_units::{Ecn, FULL_PAYLOAD_BYTES};

use crate::segment::{Kind, Segment};

/// Full-sized segments that a card puts together at most, of one IP packet of 65,535 bytes.
pub const MERGED_MAX: u32 = 44;

/// Whether a card puts `second` together with `first`, which it follows (`tcp_gro_receive`):
/// consecutive data, the first of full size, with the same ECN field and timestamps. What announces a reduced window (CWR) may be the first of a lump, and nothing else.
/// PSH, which ends a lump in Linux, is not modelled.
#[inline]
pub fn merges(first: (&Segment, Ecn), second: (&Segment, Ecn)) -> bool {
    let ((first, first_ecn), (second, second_ecn)) = (first, second);
    first.kind == Kind::Data
        && second.kind == Kind::Data
        && first.number.wrapping_add(1) == second.number
        && u32::from(first.payload) == FULL_PAYLOAD_BYTES
        && !second.ecn_flag
        && first_ecn == second_ecn
        && first.timestamp_ms == second.timestamp_ms
        && first.tsecr_ms() == second.tsecr_ms()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Ecn = Ecn::NotCapable;

    fn data(number: u32) -> Segment {
        Segment::data(number, 1448, 7, false).echoing(3)
    }

    #[test]
    fn only_what_follows_and_has_the_same_header_is_put_together() {
        let first = data(5);
        let next = data(6);
        assert!(merges((&first, PLAIN), (&next, PLAIN)));
        let others = [
            ("a gap", data(7), PLAIN),
            ("a repetition", data(5), PLAIN),
            ("another ECN field", next, Ecn::Capable),
            ("a later timestamp", Segment { timestamp_ms: 8, ..next }, PLAIN),
            ("a later echo", next.echoing(4), PLAIN),
        ];
        for (what, other, ecn) in others {
            assert!(!merges((&first, PLAIN), (&other, ecn)), "{what}");
        }
    }

    #[test]
    fn a_short_segment_is_the_last_of_a_lump() {
        let short = |number| Segment { payload: 100, ..data(number) };
        assert!(merges((&data(5), PLAIN), (&short(6), PLAIN)));
        assert!(!merges((&short(5), PLAIN), (&data(6), PLAIN)));
    }

    /// `flush |= flags & TCP_FLAG_CWR` is asked of the packet that comes, not of the one it follows.
    #[test]
    fn a_reduced_window_is_announced_by_the_first_of_a_lump() {
        let cwr = |number| Segment { ecn_flag: true, ..data(number) };
        assert!(merges((&cwr(5), PLAIN), (&data(6), PLAIN)));
        assert!(!merges((&data(5), PLAIN), (&cwr(6), PLAIN)));
    }
}
