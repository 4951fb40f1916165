//! Feedback of marks that tells more than RFC 3168: RFC 8257's and counts.

use super::test_support::{ArrivalWithAcks, take};
use super::*;
use crate::segment::test_support::{data, syn};

/// Where the time does not matter.
const NOW: Time = Time::ZERO;

fn at_us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

/// A receiver whose window has grown as far as it will, and the number of the next segment.
fn settled(feedback: EcnFeedback) -> (Receiver, u32) {
    let mut receiver = Receiver::new(1448, 100_000, Span::from_ms(40), feedback);
    assert!(receiver.on_syn(NOW, &syn(true, 1)).ecn);
    let mut next = 0;
    let mut acknowledged = false;
    while next < 100 || !acknowledged {
        acknowledged = arrive(&mut receiver, next, false).ack.is_some();
        next += 1;
    }
    (receiver, next)
}

fn arrive(receiver: &mut Receiver, number: u32, marked: bool) -> ArrivalWithAcks {
    let ecn = if marked { Ecn::Marked } else { Ecn::Capable };
    take(receiver, at_us(20_000), &data(number, 1448, 7, false), ecn)
}

/// The number and the flag of an ACK.
fn says(ack: Option<Ack>) -> Option<(u32, bool)> {
    ack.map(|ack| (ack.number, ack.ece))
}

#[test]
fn of_a_delayed_ack_and_a_change_of_marks_two_acks_tell() {
    let (mut receiver, next) = settled(EcnFeedback::DctcpEcho);
    let first = arrive(&mut receiver, next, false);
    assert!(first.early.is_none() && first.ack.is_none(), "delayed");
    // What was delayed is told of as it was, then the change.
    let second = arrive(&mut receiver, next + 1, true);
    assert_eq!(says(second.early), Some((next + 1, false)));
    assert_eq!(says(second.ack), Some((next + 2, true)));
    let third = arrive(&mut receiver, next + 2, true);
    assert!(third.early.is_none() && third.ack.is_none(), "no change, delayed again");
    let fourth = arrive(&mut receiver, next + 3, false);
    assert_eq!(says(fourth.early), Some((next + 3, true)));
    assert_eq!(says(fourth.ack), Some((next + 4, false)));
}

#[test]
fn a_change_without_a_delayed_ack_is_told_at_once() {
    let (mut receiver, next) = settled(EcnFeedback::DctcpEcho);
    let change = arrive(&mut receiver, next, true);
    assert_eq!((says(change.early), says(change.ack)), (None, Some((next + 1, true))));
}

/// RFC 8257 §3.2: the receiver's ECE tells the sender exactly which packets were marked, whatever
/// the pattern of marks.
#[test]
fn every_mark_is_echoed_and_no_other_packet_counts_as_marked() {
    let (mut receiver, next) = settled(EcnFeedback::DctcpEcho);
    let (mut acked, mut echoed, mut marks, mut acks) = (next, 0, 0, 0);
    for i in 0..2_000u32 {
        // Runs of marked and unmarked packets of lengths 1 … 7.
        let marked = (i / (1 + i % 7)).is_multiple_of(3);
        marks += u32::from(marked);
        let arrival = arrive(&mut receiver, next + i, marked);
        for ack in [arrival.early, arrival.ack].into_iter().flatten() {
            if ack.ece {
                echoed += ack.number - acked;
            }
            acked = ack.number;
            acks += 1;
        }
    }
    if receiver.next > acked {
        echoed += u32::from(receiver.ece);
    }
    assert_eq!(echoed, marks);
    assert!(acks < 2_000, "{acks}: ACKs are still delayed");
}

/// CWR means nothing to RFC 8257: ECE follows the packet that came last.
#[test]
fn cwr_does_not_end_the_echo_of_a_marked_packet() {
    let (mut receiver, next) = settled(EcnFeedback::DctcpEcho);
    arrive(&mut receiver, next, true);
    let answer = data(next + 1, 1448, 7, true);
    let arrival = take(&mut receiver, at_us(20_000), &answer, Ecn::Marked);
    assert_eq!(says(arrival.ack), Some((next + 2, true)), "at once, because of CWR");
}

/// Out of order nothing advances, so the early ACK is an ordinary duplicate.
#[test]
fn a_mark_beyond_a_gap_is_told_after_what_was_delayed() {
    let (mut receiver, next) = settled(EcnFeedback::DctcpEcho);
    arrive(&mut receiver, next, false);
    let arrival = arrive(&mut receiver, next + 2, true);
    assert_eq!(says(arrival.early), Some((next + 1, false)));
    assert_eq!(arrival.early.unwrap().block_count, 0);
    assert_eq!(says(arrival.ack), Some((next + 1, true)));
    assert_eq!(arrival.ack.unwrap().block_count, 1);
}

#[test]
fn counts_grow_with_every_mark_and_the_first_of_a_run_is_told_at_once() {
    let (mut receiver, next) = settled(EcnFeedback::AccEcn);
    assert!(arrive(&mut receiver, next, false).ack.is_none());
    let counts = |ack: &Ack| (ack.accecn.ace(), ack.accecn.option_beyond(0));
    let first = arrive(&mut receiver, next + 1, true).ack.unwrap();
    assert_eq!((first.ece, counts(&first)), (false, (1, Some(1))));
    assert!(arrive(&mut receiver, next + 2, true).ack.is_none(), "delayed as ever");
    let third = arrive(&mut receiver, next + 3, true).ack.unwrap();
    assert_eq!(counts(&third), (3, Some(3)));
    let last = arrive(&mut receiver, next + 5, false).ack.unwrap();
    assert_eq!(counts(&last), (3, Some(3)), "a duplicate ACK brings no news");
}

/// Three SACK blocks and timestamps fill the header's options.
#[test]
fn the_option_gives_way_to_sack_blocks_and_may_be_off() {
    let (mut receiver, next) = settled(EcnFeedback::AccEcn);
    let mut has_option = Vec::new();
    for gap in 1..=3 {
        let ack = arrive(&mut receiver, next + 2 * gap, true).ack.unwrap();
        assert_eq!((u32::from(ack.block_count), ack.accecn.ace()), (gap, gap));
        has_option.push(ack.accecn.option_beyond(0).is_some());
    }
    assert_eq!(has_option, [true, true, false]);
    let mut bare = receiver.without_accecn_option();
    let ack = arrive(&mut bare, next, true).ack.unwrap();
    assert_eq!((ack.accecn.ace(), ack.accecn.option_beyond(0)), (4, None));
}

/// Who does not offer ECN gets none; a repeated SYN without the offer changes nothing.
#[test]
fn the_first_syn_decides() {
    for (offers, agreed) in [([true, false], true), ([false, true], false)] {
        let mut receiver = Receiver::new(1448, 100_000, Span::from_ms(40), EcnFeedback::DctcpEcho);
        for (stamp_ms, offer) in (1..).zip(offers) {
            let answer = receiver.on_syn(NOW, &syn(offer, stamp_ms));
            assert_eq!(answer.ecn, agreed);
        }
        assert_eq!(receiver.ecn() == Ecn::Capable, agreed);
    }
    let mut deaf = Receiver::new(1448, 100_000, Span::from_ms(40), EcnFeedback::None);
    assert!(!deaf.on_syn(NOW, &syn(true, 1)).ecn);
    assert_eq!(deaf.ecn(), Ecn::NotCapable);
}
