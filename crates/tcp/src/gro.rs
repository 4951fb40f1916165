//! Generic receive offload: the NIC merges segments before TCP processes them.

use crate::segment::Data;

/// Maximum payload of merged segments: the rest of an IP packet after the IP header and the TCP
/// header with the timestamps option. `gro.c::skb_gro_receive` rejects a segment if
/// "p->len + len >= gro_max_size", where `p->len` counts both headers and `gro_max_size` is 65,536
/// (`GRO_LEGACY_MAX_SIZE`, the maximum for IPv4 in Linux 6.1). This is 45 segments of 1448 bytes.
/// `MAX_SKB_FRAGS` is no limit, because further segments are linked in a list.
const MERGED_MAX_BYTES: u32 = 65_536 - 1 - 20 - 32;

/// Returns whether the NIC merges `second` with its predecessor `first`, the last of `count` merged
/// segments (`tcp_offload.c::tcp_gro_receive`). Merged segments are consecutive, have equal
/// timestamps, and all but the last are full-sized (`mss_bytes`). Their ECN fields in the IP header
/// must also be equal, which the caller checks. A segment with CWR can only be the first of a merged
/// packet. PSH, which ends a merged packet in Linux, is not modelled.
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
    use crate::segment::TransitTimes;

    const fn data(number: u32) -> Data {
        Data {
            cwr: false,
            payload_bytes: 1448,
            number,
            tsval_ms: 7,
            tsecr_ms: 3,
            trip: TransitTimes::NONE,
        }
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
