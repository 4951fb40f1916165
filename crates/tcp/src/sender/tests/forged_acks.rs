//! What a sender makes of a receiver that lies.

use super::*;
use crate::receiver_behaviour::ReceiverBehaviour;

/// Two connections of Reno in slow start, both with ten segments in flight at 80 ms: one gets every
/// ACK, the other what a receiver of some conduct sends in place of it. Windows of both, in the end.
fn windows(mut conduct: ReceiverBehaviour, numbers: &[u32]) -> (u32, u32) {
    let mut honest = Script::bulk(10);
    let mut lied_to = Script::bulk(10);
    for script in [&mut honest, &mut lied_to] {
        script.until(ms(80));
    }
    for &number in numbers {
        honest.receive(honest.ack(number));
        let due = lied_to.ack(number);
        for answer in conduct.acks_for(due) {
            lied_to.receive(answer);
        }
    }
    assert_eq!(honest.numbers(), lied_to.numbers(), "both send the same");
    assert_eq!((lied_to.state(), lied_to.wire.retransmitted), (RecoveryState::Open, 0));
    (honest.sender.cwnd, lied_to.sender.cwnd)
}

/// Savage et al. 1999, section 2.1: a sender that adds a segment to its window for each ACK gets to
/// 10 + 5 · 64. RFC 3465 §2.1 counts bytes, and Linux whole segments
/// (`tcp_input.c::tcp_clean_rtx_queue`).
#[test]
fn divided_acks_open_the_window_no_further() {
    assert_eq!(windows(ReceiverBehaviour::ack_division(64), &[2, 4, 6, 8, 10]), (20, 20));
    assert_eq!(windows(ReceiverBehaviour::ack_division(3), &[1, 2, 3]), (13, 13));
}

/// Section 2.2: each duplicate ACK stood for a segment that has left the network. With SACK none does
/// that has no block.
#[test]
fn repeated_acks_open_the_window_no_further() {
    assert_eq!(windows(ReceiverBehaviour::dupack_spoofing(99), &[2, 4, 6, 8, 10]), (20, 20));
}

/// The same in recovery, where duplicate ACKs would have inflated the window: PRR counts what is
/// delivered (RFC 6937 §3).
#[test]
fn repeated_acks_let_nothing_out_in_recovery() {
    let run = |copies| {
        let mut conduct = ReceiverBehaviour::dupack_spoofing(copies);
        let mut script = Script::bulk(20);
        script.until(ms(80));
        for i in 2..=10 {
            script.until(ms(80) + Span::from_us(100 * i));
            let due = script.sack(0, &[(1, i as u32)]);
            for answer in conduct.acks_for(due) {
                script.receive(answer);
            }
        }
        assert_eq!(script.state(), RecoveryState::Recovery);
        script.timed_numbers()
    };
    assert_eq!(run(0), run(50));
}

/// Section 2.3, and RFC 9293 §3.10.7.4: an ACK of what has not been sent is dropped.
#[test]
fn acks_of_what_was_never_sent_are_ignored() {
    let mut script = Script::bulk(10);
    script.left();
    script.until(ms(80));
    script.receive(ack(11, 41, 1 << 20, false));
    assert_eq!((script.sender.cwnd, script.sender.board.outstanding()), (10, 10));
    script.sends_nothing();
}

/// What is in flight it believes to have come: the RTT is what the receiver says it is, and what was
/// lost is never sent again.
#[test]
fn acks_of_what_is_in_flight_are_believed() {
    let mut script = Script::bulk(10);
    script.left();
    // Nothing of it can be there before 60 ms.
    script.until(ms(50));
    script.receive(ack(10, 41, 1 << 20, false));
    assert_eq!(script.sender.cwnd, 20);
    assert_eq!(script.sender.rtt.min_rtt(), Span::from_ms(10));
    assert_eq!(script.numbers(), range(10, 30));
    script.until(ms(60));
    script.receive(ack(30, 51, 1 << 20, false));
    assert_eq!(script.wire.retransmitted, 0);
}
