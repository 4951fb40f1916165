//! What a receiver's card does before TCP sees anything (generic receive offload).

use crate::segment::Data;

/// Payload that is put together at most: what fits behind one header of IP and of TCP with its
/// timestamps option, as `skb_gro_receive` (net/core/gro.c) has it: "p->len + len >= gro_max_size" is too
/// much, where `p->len` counts both headers and `gro_max_size` is 65,536 (`GRO_LEGACY_MAX_SIZE`, of which
/// IPv4 may have no more in Linux 6.1). That makes 45 segments of 1448 bytes. `MAX_SKB_FRAGS` does not
/// limit them: what finds no place among the fragments is kept in a list.
const MERGED_MAX_BYTES: u32 = 65_536 - 1 - 20 - 32;

/// Whether a card puts `second` together with `first`, which it follows (`tcp_gro_receive`) and which
/// is the last of `count` that are together already: consecutive data with the same timestamps, all
/// but the last of full size (`mss_bytes`), and no more than fit. Their ECN fields, of
/// IP, have to be the same, too: whoever knows them asks for that. What announces a reduced window
/// (CWR) may be the first of a lump, and nothing else. PSH, which ends a lump in Linux, is not
/// modelled.
#[inline]
pub const fn merges(mss_bytes: u16, count: u32, first: &Data, second: &Data) -> bool {
    first.number.wrapping_add(1) == second.number
        && first.payload_bytes == mss_bytes
        && !second.cwr
        && first.tsval_ms == second.tsval_ms
        && first.tsecr_ms == second.tsecr_ms
        && count * mss_bytes as u32 + second.payload_bytes as u32 <= MERGED_MAX_BYTES
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
        assert!(merges(1448, 1, &data(5), &next));
        let others = [
            ("a gap", data(7)),
            ("a repetition", data(5)),
            ("a later timestamp", Data { tsval_ms: 8, ..next }),
            ("a later echo", Data { tsecr_ms: 4, ..next }),
        ];
        for (what, other) in others {
            assert!(!merges(1448, 1, &data(5), &other), "{what}");
        }
    }

    #[test]
    fn a_short_segment_is_the_last_of_a_lump() {
        let short = |number| Data { payload_bytes: 100, ..data(number) };
        assert!(merges(1448, 1, &data(5), &short(6)));
        assert!(!merges(1448, 1, &short(5), &data(6)));
    }

    /// `flush |= flags & TCP_FLAG_CWR` is asked of the packet that comes, not of the one it follows.
    #[test]
    fn a_reduced_window_is_announced_by_the_first_of_a_lump() {
        let cwr = |number| Data { cwr: true, ..data(number) };
        assert!(merges(1448, 1, &cwr(5), &data(6)));
        assert!(!merges(1448, 1, &data(5), &cwr(6)));
    }

    /// 52 bytes of headers and what is put together stay below 65,536.
    #[test]
    fn a_lump_is_one_packet_of_ip() {
        for (mss_bytes, most) in [(524, 124), (1448, 45), (8_948, 7), (65_483, 1)] {
            let full = |number| Data { payload_bytes: mss_bytes, ..data(number) };
            let together = |count| merges(mss_bytes, count, &full(5), &full(6));
            assert!((1..most).all(together), "{mss_bytes}");
            assert!(!together(most), "{mss_bytes}");
        }
        // 45 · 1448 bytes leave 323.
        let last = |payload_bytes| Data { payload_bytes, ..data(6) };
        assert!(merges(1448, 45, &data(5), &last(323)));
        assert!(!merges(1448, 45, &data(5), &last(324)));
    }
}
