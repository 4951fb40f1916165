//! What a receiver's card does before TCP sees anything (generic receive offload).

use crate::segment::Data;

/// Full-sized segments that a card puts together at most: as many of the MSS that TCP announces,
/// which counts the timestamps option (RFC 6691), as one IP packet of 65,535 bytes holds.
pub const fn merged_max(mss_bytes: u16) -> u32 {
    65_535 / (mss_bytes as u32 + 12)
}

/// Whether a card puts `second` together with `first`, which it follows (`tcp_gro_receive`):
/// consecutive data, the first of full size (`mss_bytes`), with the same timestamps. Their ECN fields, of
/// IP, have to be the same, too: whoever knows them asks for that. What announces a reduced window
/// (CWR) may be the first of a lump, and nothing else. PSH, which ends a lump in Linux, is not
/// modelled.
#[inline]
pub const fn merges(mss_bytes: u16, first: &Data, second: &Data) -> bool {
    first.number.wrapping_add(1) == second.number
        && first.payload_bytes == mss_bytes
        && !second.cwr
        && first.tsval_ms == second.tsval_ms
        && first.tsecr_ms == second.tsecr_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Trip;

    const fn data(number: u32) -> Data {
        Data { cwr: false, payload_bytes: 1448, number, tsval_ms: 7, tsecr_ms: 3, trip: Trip::NONE }
    }

    #[test]
    fn only_what_follows_and_has_the_same_header_is_put_together() {
        let next = data(6);
        assert!(merges(1448, &data(5), &next));
        let others = [
            ("a gap", data(7)),
            ("a repetition", data(5)),
            ("a later timestamp", Data { tsval_ms: 8, ..next }),
            ("a later echo", Data { tsecr_ms: 4, ..next }),
        ];
        for (what, other) in others {
            assert!(!merges(1448, &data(5), &other), "{what}");
        }
    }

    #[test]
    fn a_short_segment_is_the_last_of_a_lump() {
        let short = |number| Data { payload_bytes: 100, ..data(number) };
        assert!(merges(1448, &data(5), &short(6)));
        assert!(!merges(1448, &short(5), &data(6)));
    }

    /// `flush |= flags & TCP_FLAG_CWR` is asked of the packet that comes, not of the one it follows.
    #[test]
    fn a_reduced_window_is_announced_by_the_first_of_a_lump() {
        let cwr = |number| Data { cwr: true, ..data(number) };
        assert!(merges(1448, &cwr(5), &data(6)));
        assert!(!merges(1448, &data(5), &cwr(6)));
    }
}
