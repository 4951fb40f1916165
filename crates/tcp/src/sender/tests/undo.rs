//! Undo of needless reductions: what D-SACKs and timestamps prove, and what they do not.

use super::recovery::twenty;
use super::*;

/// The ACK echoes the originals, which left at 40 ms.
fn of_originals(ack: Ack) -> Ack {
    Ack { tsecr_ms: timestamp_ms(ms(40)), ..ack }
}

/// Further SACKs in recovery neither begin another reduction nor end the possibility of undo.
#[test]
fn sacks_within_a_recovery_keep_its_undo_state() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    script.receive(script.sack(0, &[(1, 6)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 10));
    script.until(ms(85));
    script.receive(of_originals(script.ack(6)));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, u32::MAX));
}

/// `tcp_input.c::tcp_try_undo_partial`: while another retransmission is in flight, nothing is undone
/// and nothing more is retransmitted.
#[test]
fn a_partial_undo_waits_for_the_other_retransmissions() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(2, 6)]));
    assert_eq!(script.wire.retransmitted, 2);
    script.until(ms(85));
    script.receive(of_originals(script.ack(1)));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 10));
    script.receive(of_originals(script.ack(6)));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, u32::MAX));
    assert_eq!(script.wire.retransmitted, 2);
}

/// The late original of a hole is as much reordering as its distance to the highest SACK.
#[test]
fn a_partial_undo_measures_the_reordering_of_the_hole() {
    let mut script = twenty();
    script.receive(script.ack(2));
    script.receive(script.sack(2, &[(3, 8)]));
    assert_eq!((script.state(), script.sender.reordering.degree()), (RecoveryState::Recovery, 3));
    script.until(ms(85));
    script.receive(of_originals(script.ack(8)));
    assert_eq!((script.state(), script.sender.reordering.degree()), (RecoveryState::Open, 8 - 2));
}

/// `tcp_input.c::tcp_end_cwnd_reduction`: cwnd ends at ssthresh only if the reduction was not
/// undone. cwnd was 11 and ssthresh 10.
#[test]
fn an_undone_recovery_ends_at_the_old_window_and_not_at_ssthresh() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 20)]));
    script.until(ms(120));
    script.receive(script.ack(script.sender.board.next()));
    assert_eq!((script.sender.cwnd(), script.sender.ssthresh), (11, 10));
    let sent_ms = timestamp_ms(script.now);
    let (first, end) = (script.sender.board.first(), script.sender.board.next());
    script.until(script.now + RTT);
    script.receive(script.sack(first, &[(first + 1, first + 5)]));
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Recovery, 5));
    script.until(script.now + Span::from_ms(5));
    script.receive(Ack { tsecr_ms: sent_ms, ..script.ack(end) });
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, 10));
    assert!(script.sender.cwnd() >= 11, "{}", script.sender.cwnd());
}

/// `tcp_input.c::tcp_init_undo`: "First, account for regular retransmits in flight", then for the
/// loss probe. The duplicates of both are needed.
#[test]
fn a_loss_probe_counts_among_the_retransmissions_to_undo() {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.left();
    script.until(ms(122));
    assert_eq!(script.numbers(), [9], "the probe");
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!((script.state(), script.numbers()[0]), (RecoveryState::Recovery, 0));
    let ssthresh = script.sender.ssthresh;
    script.until(ms(162));
    script.receive(script.ack(10));
    script.receive(script.dsack(10, &[(0, 1)]));
    assert_eq!(script.sender.ssthresh, ssthresh, "the probe's duplicate is missing");
    script.receive(script.dsack(10, &[(9, 10)]));
    assert_eq!(script.sender.ssthresh, u32::MAX);
}

/// Segments 0 and 4 of twenty are retransmitted; then the original of 4 arrives.
fn two_holes() -> Script {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4), (5, 9)]));
    assert_eq!(script.wire.retransmitted, 2);
    script.until(ms(85));
    script.receive(script.sack(0, &[(1, 9)]));
    script
}

/// RFC 2883 §4: the first block may report a duplicate within the block that follows it.
#[test]
fn a_duplicate_beyond_snd_una_counts_if_it_was_retransmitted() {
    let mut script = two_holes();
    script.until(ms(120));
    script.receive(script.dsack(0, &[(4, 5), (1, 9)]));
    let end = script.sender.board.next();
    script.receive(script.ack(end));
    assert_eq!(script.sender.ssthresh, 10);
    script.receive(script.dsack(end, &[(0, 1)]));
    assert_eq!(script.sender.ssthresh, u32::MAX);
}

/// `tcp_input.c::tcp_check_dsack`: the network made a copy of segment 2, which was never
/// retransmitted.
#[test]
fn a_duplicate_beyond_snd_una_does_not_count_if_it_was_sent_once() {
    let mut script = two_holes();
    script.until(ms(120));
    script.receive(script.dsack(0, &[(2, 3), (1, 9)]));
    let end = script.sender.board.next();
    script.receive(script.ack(end));
    script.receive(script.dsack(end, &[(0, 1)]));
    assert_eq!(script.sender.ssthresh, 10);
}

/// `tcp_input.c::tcp_dsack_seen`: without reordering, a duplicate does not widen the reordering
/// window.
#[test]
fn a_duplicate_without_reordering_keeps_the_reordering_window() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 20)]));
    script.until(ms(120));
    let next = script.sender.board.next();
    script.receive(script.ack(next));
    script.receive(script.dsack(next, &[(0, 1)]));
    script.until(ms(160));
    script.receive(script.ack(next + 1));
    assert!(!script.sender.reordering.is_seen());
    assert_eq!(script.sender.reordering_window(), RTT.mul_div(1, 4));
}

/// A timeout that the original of segment 2 proves needless, while retransmissions of 3 and 4 are in
/// flight.
fn undone_with_retransmissions_in_flight() -> Script {
    let mut script = Script::bulk(20);
    script.sender.withdraw();
    while script.state() != RecoveryState::Loss {
        script.until(script.deadline());
    }
    let first_ms = timestamp_ms(script.now);
    // Too early for an ACK of the retransmission, so that RACK ignores it.
    script.until(script.now + Span::from_ms(5));
    for number in [1, 2] {
        script.receive(Ack { tsecr_ms: first_ms, ..script.ack(number) });
    }
    assert_eq!(script.sender.board.retransmitted(), 3, "segments 2, 3 and 4");
    script.receive(of_originals(script.ack(3)));
    assert_eq!((script.state(), script.sender.board.lost()), (RecoveryState::Disorder, 0));
    assert_eq!(script.sender.board.retransmitted(), 2);
    script
}

/// The original of segment 4 arrives, and then its retransmission, as the D-SACK says.
#[test]
fn the_duplicate_of_a_retransmission_takes_it_out_of_flight() {
    let mut script = undone_with_retransmissions_in_flight();
    script.receive(script.sack(3, &[(4, 5)]));
    let in_flight = script.sender.in_flight();
    assert_eq!(script.sender.board.retransmitted(), 2);
    script.receive(script.dsack(3, &[(4, 5), (4, 5)]));
    assert_eq!(script.sender.board.retransmitted(), 1);
    assert_eq!(script.sender.in_flight(), in_flight - 1);
}

/// `tcp_input.c::tcp_retrans_stamp_cleanup`: the time of the first retransmission remains as long as
/// one of them is in flight.
#[test]
fn the_first_retransmission_is_remembered_while_others_are_in_flight() {
    let mut script = undone_with_retransmissions_in_flight();
    script.until(script.now + Span::from_ms(5));
    let echo_ms = timestamp_ms(script.now) - 2;
    script.receive(script.sack(3, &[(8, 12)]));
    assert_eq!(script.state(), RecoveryState::Recovery);
    let ssthresh = script.sender.ssthresh;
    script.until(script.now + Span::from_ms(5));
    script.receive(Ack { tsecr_ms: echo_ms, ..script.ack(20) });
    assert_eq!(script.sender.ssthresh, ssthresh, "the echo may be a retransmission's");
}

/// The same function, in `tcp_input.c::tcp_try_undo_partial`: nothing is in flight any more, so the
/// next timeout has its own time. The original of segment 20 left between both.
#[test]
fn a_timeout_after_an_undo_has_its_own_first_retransmission() {
    let mut script = twenty();
    script.receive(script.sack(0, &[(1, 4)]));
    script.until(ms(85));
    script.receive(of_originals(script.ack(19)));
    assert_eq!(script.state(), RecoveryState::Open);
    script.until(ms(90));
    script.receive(of_originals(script.ack(20)));
    let original_ms = script.stamp_of(20);
    assert!(original_ms >= timestamp_ms(ms(80)));
    while script.state() != RecoveryState::Loss {
        script.until(script.deadline());
    }
    script.receive(Ack { tsecr_ms: original_ms, ..script.ack(21) });
    assert_eq!((script.state(), script.sender.ssthresh), (RecoveryState::Open, u32::MAX));
}
