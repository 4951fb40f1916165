use super::*;
use crate::segment::test_support::{ack, data};

fn at_ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

fn numbers(conduct: &mut ReceiverBehaviour, number: u32) -> Vec<u32> {
    conduct.acks_for(ack(number, 1, 50, false)).map(|it| it.number).collect()
}

#[test]
fn pieces_of_an_ack_end_where_their_bytes_do() {
    let mut conduct = ReceiverBehaviour::ack_division(4);
    // Two segments in quarters: half of the first, the first, half of the second, both.
    assert_eq!(numbers(&mut conduct, 2), [0, 1, 1, 2]);
    assert_eq!(numbers(&mut conduct, 3), [2, 2, 2, 3]);
    assert_eq!(numbers(&mut conduct, 3), [3], "it acknowledges nothing that could be divided");
    assert_eq!(numbers(&mut conduct, 2), [2], "and an earlier one is sent as it is");
    assert_eq!(numbers(&mut conduct, 13), [5, 8, 10, 13]);
}

#[test]
fn copies_of_an_ack_are_all_alike() {
    let mut conduct = ReceiverBehaviour::dupack_spoofing(2);
    let due = Ack { block_count: 1, ece: true, ..ack(7, 1, 50, false) };
    assert_eq!(conduct.acks_for(due).collect::<Vec<_>>(), [due; 3]);
}

#[test]
fn who_hides_marks_sees_none() {
    let conduct = ReceiverBehaviour::hides_ecn_marks();
    assert_eq!(conduct.visible_ecn(Ecn::Marked), Ecn::Capable);
    assert_eq!(conduct.visible_ecn(Ecn::NotCapable), Ecn::NotCapable);
    assert_eq!(conduct.visible_ecn(Ecn::L4s), Ecn::L4s);
    assert_eq!(ReceiverBehaviour::ack_division(2).visible_ecn(Ecn::Marked), Ecn::Marked);
}

/// Number that is acknowledged, and payload that can be read.
fn taken(conduct: &mut ReceiverBehaviour, ms: u64, number: u32) -> (u32, u64) {
    let arrival = conduct.receive_data(at_ms(ms), &data(number, 1448, 1, false), false).unwrap();
    (arrival.ack.unwrap().number, arrival.bytes)
}

#[test]
fn an_optimist_conceals_what_is_missing() {
    let mut conduct = ReceiverBehaviour::optimistic_acking(0.0, Span::from_ms(40), 144_800, 1448);
    assert_eq!(taken(&mut conduct, 20, 0), (1, 1448));
    assert_eq!(taken(&mut conduct, 21, 3), (4, 1448), "1 and 2 are missing");
    assert_eq!(taken(&mut conduct, 22, 2), (4, 0), "it goes without what comes late");
    let window =
        conduct.receive_data(at_ms(23), &data(4, 1448, 1, false), false).unwrap().ack.unwrap();
    assert_eq!((window.window, window.block_count, window.ece), (100, 0, false));
}

#[test]
fn an_optimist_is_ahead_by_a_part_of_a_round_trip() {
    let mut conduct = ReceiverBehaviour::optimistic_acking(0.5, Span::from_ms(40), 144_800, 1448);
    let first: Vec<_> = (0..10).map(|i| taken(&mut conduct, 20, i).0).collect();
    assert_eq!(first, (1..=10).collect::<Vec<_>>(), "nothing is known of a round trip");
    // Ten came in the last one, half of which are five.
    assert_eq!(taken(&mut conduct, 60, 10).0, 11 + 5);
    assert_eq!(taken(&mut conduct, 61, 12).0, 13 + 5);
    assert_eq!(taken(&mut conduct, 62, 12), (13, 0), "what was sent again it does not exceed");
    // Three came in the round trip from 60 ms on.
    assert_eq!(taken(&mut conduct, 100, 13).0, 14 + 1);
    assert_eq!(taken(&mut conduct, 180, 14).0, 15, "a pause leaves nothing to go by");
}

#[test]
fn a_card_that_puts_segments_together_gets_one_ack_of_an_optimist() {
    let mut conduct = ReceiverBehaviour::optimistic_acking(0.0, Span::from_ms(40), 144_800, 1448);
    let part = conduct.receive_data(at_ms(20), &data(0, 1448, 1, false), true).unwrap();
    assert_eq!((part.ack, part.bytes), (None, 1448));
    assert_eq!(taken(&mut conduct, 20, 1).0, 2);
}
