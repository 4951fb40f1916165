//! ACK filter of CAKE (Linux, `sch_cake.c::cake_ack_filter`): drops the first waiting
//! ACK of a connection if a later one confirms the same data and more.

use jostle_units::RingBuffer;

use crate::packet::Packet;
use crate::transport_headers::{PureAck, TransportHeader};

/// Mode of the filter, `CAKE_ACK_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Keeps one redundant ACK in addition to the newest.
    Filter,
    /// Also drops a redundant ACK that directly precedes the newest.
    Aggressive,
}

/// Returns the index of the ACK that its successors make redundant, after the arrival of the last
/// packet. Like Linux, the search starts at the head and ends at the second redundant ACK.
pub(super) fn superfluous<B: TransportHeader + Copy>(
    packets: &RingBuffer<Packet<B>>,
    filter: Filter,
) -> Option<usize> {
    let last = packets.len().checked_sub(1)?;
    let newest = packets.get(last)?;
    let news = newest.transport.pure_ack()?;
    let mut first: Option<(usize, PureAck)> = None;
    for (index, packet) in packets.iter().take(last).enumerate() {
        // Several flows can share a queue, and packets of the sender belong to the other direction.
        if packet.connection != newest.connection {
            continue;
        }
        let Some(older) = packet.transport.pure_ack() else { continue };
        // An ACK before a change of its flags is not redundant.
        first = first.filter(|(_, ack)| ack.marks == older.marks);
        if !news.supersedes(&older) {
            continue;
        }
        match first {
            Some((found, _)) => return Some(found),
            None => first = Some((index, older)),
        }
    }
    let (found, older) = first?;
    let directly = found + 1 == last && older.marks == news.marks;
    (filter == Filter::Aggressive && directly).then_some(found)
}

#[cfg(test)]
mod tests {
    use jostle_units::{ConnectionId, Time};

    use super::*;
    use crate::packet::Ecn;

    impl TransportHeader for Option<PureAck> {
        fn pure_ack(&self) -> Option<PureAck> {
            *self
        }
    }

    fn ack(number: u32) -> PureAck {
        PureAck { number, tsecr_ms: number, ..PureAck::default() }
    }

    fn sacking(number: u32, given: &[(u32, u32)]) -> PureAck {
        let mut blocks = [(0, 0); 3];
        blocks[..given.len()].copy_from_slice(given);
        PureAck { blocks, block_count: given.len() as u8, tsecr_ms: 0, ..ack(number) }
    }

    fn dropped(filter: Filter, bodies: &[Option<PureAck>]) -> Option<usize> {
        let mut ring = RingBuffer::default();
        for body in bodies.iter().copied() {
            let (queued_at, ecn) = (Time::ZERO, Ecn::NotCapable);
            ring.push_back(Packet {
                connection: ConnectionId(1),
                size_bytes: 66,
                queued_at,
                ecn,
                hop: 0,
                is_corrupted: false,
                dscp: 0,
                transport: body,
            });
        }
        superfluous(&ring, filter)
    }

    fn of_acks(filter: Filter, acks: &[PureAck]) -> Option<usize> {
        dropped(filter, &acks.iter().map(|ack| Some(*ack)).collect::<Vec<_>>())
    }

    #[test]
    fn one_of_three_goes_and_the_aggressive_filter_takes_one_of_two() {
        for (filter, of_two) in [(Filter::Filter, None), (Filter::Aggressive, Some(0))] {
            assert_eq!(of_acks(filter, &[ack(1)]), None);
            assert_eq!(of_acks(filter, &[ack(1), ack(3)]), of_two);
            assert_eq!(of_acks(filter, &[ack(1), ack(3), ack(5)]), Some(0));
        }
    }

    #[test]
    fn duplicates_stay() {
        for filter in [Filter::Filter, Filter::Aggressive] {
            assert_eq!(of_acks(filter, &[ack(3), ack(3), ack(3)]), None);
            assert_eq!(of_acks(filter, &[ack(3), ack(3), ack(5)]), Some(0));
        }
        let overtaken = [ack(9), ack(3), ack(5)];
        assert_eq!(of_acks(Filter::Filter, &overtaken), None, "one that says more is no older one");
        assert_eq!(of_acks(Filter::Aggressive, &overtaken), Some(1));
    }

    #[test]
    fn what_is_no_pure_ack_is_passed_over_and_filters_nothing() {
        let (one, three, five) = (Some(ack(1)), Some(ack(3)), Some(ack(5)));
        assert_eq!(dropped(Filter::Filter, &[one, None, three, five]), Some(0));
        assert_eq!(
            dropped(Filter::Aggressive, &[one, None, three]),
            None,
            "not directly before it"
        );
        assert_eq!(dropped(Filter::Aggressive, &[one, three, None]), None);
    }

    #[test]
    fn flags_that_change_keep_what_is_before_them() {
        let marked = |number| PureAck { marks: (true, 0), ..ack(number) };
        for filter in [Filter::Filter, Filter::Aggressive] {
            assert_eq!(
                of_acks(filter, &[ack(1), marked(3), marked(5)]),
                match filter {
                    Filter::Filter => None,
                    Filter::Aggressive => Some(1),
                }
            );
            assert_eq!(of_acks(filter, &[ack(1), marked(3)]), None);
            assert_eq!(of_acks(filter, &[ack(1), marked(3), marked(5), marked(7)]), Some(1));
        }
    }

    #[test]
    fn blocks_go_only_when_later_ones_cover_them() {
        let one = sacking(4, &[(6, 7)]);
        let more = sacking(4, &[(6, 9)]);
        let most = sacking(4, &[(11, 12), (6, 9)]);
        assert_eq!(of_acks(Filter::Filter, &[one, more, most]), Some(0));
        assert_eq!(of_acks(Filter::Aggressive, &[one, more]), Some(0));
        assert_eq!(of_acks(Filter::Aggressive, &[more, more]), None, "duplicates");
        assert_eq!(of_acks(Filter::Aggressive, &[most, more]), None);
        assert_eq!(of_acks(Filter::Aggressive, &[sacking(4, &[(1, 2)]), sacking(9, &[])]), None);
        // RFC 2883: what had arrived before; the sender learns from it that it was wrong.
        assert_eq!(
            of_acks(Filter::Aggressive, &[sacking(4, &[(2, 3)]), sacking(9, &[(2, 3)])]),
            None
        );
        // The hole is filled, and the newest has no blocks: what it covers by its number alone
        // is not compared (`sack_a` without `sack_b`).
        assert_eq!(of_acks(Filter::Aggressive, &[one, ack(9)]), None);
    }

    #[test]
    fn timestamps_that_would_go_back_stay() {
        let late = PureAck { tsecr_ms: 9, ..ack(1) };
        assert_eq!(of_acks(Filter::Aggressive, &[late, ack(3)]), None);
    }
}
