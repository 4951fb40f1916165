//! What a receiver's card does before TCP sees anything (generic receive offload).

use jostle_units::FULL_PAYLOAD_BYTES;

use crate::segment::{Kind, SimPacket};

/// Full-sized segments that a card puts together at most, of one IP packet of 65,535 bytes.
pub(crate) const MERGED_MAX: u32 = 44;

/// Whether a card puts the packet `next` together with `packet`, which it follows
/// (`tcp_gro_receive`): consecutive data, the first of full size, with the same ECN field and
/// timestamps. What announces a reduced window (CWR) may be the first of a lump, and nothing else.
/// PSH, which ends a lump in Linux, is not modelled.
pub(crate) fn merges(packet: &SimPacket, next: &SimPacket) -> bool {
    let (first, second) = (&packet.body, &next.body);
    first.kind == Kind::Data
        && second.kind == Kind::Data
        && first.number.wrapping_add(1) == second.number
        && u32::from(first.payload) == FULL_PAYLOAD_BYTES
        && !second.ecn_flag
        && packet.ecn == next.ecn
        && first.timestamp_ms == second.timestamp_ms
        && first.tsecr_ms() == second.tsecr_ms()
}

#[cfg(test)]
mod tests {
    use jostle_path::{Ecn, Packet};
    use jostle_units::Time;

    use super::*;
    use crate::segment::Segment;

    fn packet(body: Segment, ecn: Ecn) -> SimPacket {
        let size_bytes = body.wire_bytes();
        Packet { flow: 0, size_bytes, queued_at: Time::ZERO, ecn, hop: 0, body }
    }

    fn data(number: u32) -> SimPacket {
        packet(Segment::data(number, 1448, 7, false).echoing(3), Ecn::NotCapable)
    }

    #[test]
    fn only_what_follows_and_has_the_same_header_is_put_together() {
        let first = data(5);
        assert!(merges(&first, &data(6)));
        let (body, capable) = (data(6).body, Ecn::Capable);
        let others = [
            ("a gap", data(7)),
            ("a repetition", data(5)),
            ("another ECN field", packet(body, capable)),
            ("a later timestamp", packet(Segment { timestamp_ms: 8, ..body }, Ecn::NotCapable)),
            ("a later echo", packet(body.echoing(4), Ecn::NotCapable)),
        ];
        for (what, other) in others {
            assert!(!merges(&first, &other), "{what}");
        }
    }

    #[test]
    fn a_short_segment_is_the_last_of_a_lump() {
        let short = |number| {
            let body = data(number).body;
            packet(Segment { payload: 100, ..body }, Ecn::NotCapable)
        };
        assert!(merges(&data(5), &short(6)));
        assert!(!merges(&short(5), &data(6)));
    }

    /// `flush |= flags & TCP_FLAG_CWR` is asked of the packet that comes, not of the one it follows.
    #[test]
    fn a_reduced_window_is_announced_by_the_first_of_a_lump() {
        let cwr = |number| {
            let body = data(number).body;
            packet(Segment { ecn_flag: true, ..body }, Ecn::NotCapable)
        };
        assert!(merges(&cwr(5), &data(6)));
        assert!(!merges(&data(5), &cwr(6)));
    }
}
