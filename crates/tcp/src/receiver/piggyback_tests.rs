use super::test_support::take;
use super::*;
use crate::segment::test_support::data;

const RTT: Span = Span::from_ms(40);

fn at_ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// An end whose window has grown as far as it will, and which has no ACK to send.
fn settled() -> (Receiver, u32) {
    let mut receiver = Receiver::new(1448, 100_000, RTT, EcnFeedback::Classic);
    let mut next = 0;
    while next < 100 || receiver.quick > 0 || receiver.next > receiver.acked {
        take(&mut receiver, at_ms(0), &data(next, 1448, 7, false), Ecn::NotCapable);
        next += 1;
    }
    (receiver, next)
}

/// Data arrive, and no data are sent before the decision on the ACK. Returns the ACK.
fn arrive(receiver: &mut Receiver, ms: u64, number: u32, bytes: u16) -> Option<Ack> {
    let now = at_ms(ms);
    let arrival = receiver.on_data_before_ack(now, &data(number, bytes, 7, false), Ecn::NotCapable);
    let answers = arrival.answers || receiver.conclude(now, RTT).answers;
    answers.then(|| receiver.build_ack(now))
}

/// Data arrive, and data are sent as a reply. Returns the ACK that they carry, and a separate one.
fn reply(receiver: &mut Receiver, ms: u64, number: u32) -> (Ack, Option<Ack>) {
    let now = at_ms(ms);
    receiver.on_data_before_ack(now, &data(number, 1448, 7, false), Ecn::NotCapable);
    let carried = receiver.build_piggybacked_ack(now, true);
    let answers = receiver.conclude(now, RTT).answers;
    (carried, answers.then(|| receiver.build_ack(now)))
}

#[test]
fn data_carry_the_ack_and_no_other_is_sent() {
    let (mut receiver, next) = settled();
    for i in 0..10 {
        let (carried, separate) = reply(&mut receiver, 10 + u64::from(i), next + i);
        assert_eq!((carried.number, separate), (next + i + 1, None));
    }
    assert_eq!(receiver.deadline(), Time::NEVER, "nothing waits for a timer");
}

/// "More than one full frame received".
#[test]
fn the_second_segment_without_data_is_acknowledged_at_once() {
    let (mut receiver, next) = settled();
    reply(&mut receiver, 10, next);
    assert_eq!(arrive(&mut receiver, 11, next + 1, 1448), None);
    assert_eq!(arrive(&mut receiver, 11, next + 2, 1448).unwrap().number, next + 3);
}

/// The conditions of `tcp_input.c::tcp_rcv_established` that data decide.
#[test]
fn header_prediction_expects_the_next_segment_while_nothing_is_missing() {
    let (mut receiver, next) = settled();
    let at = |number| data(number, 1448, 7, false);
    assert!(receiver.predicts(&at(next)) && !receiver.predicts(&at(next + 1)));
    assert!(!receiver.predicts(&data(next, 1448, 7, true)), "CWR");
    arrive(&mut receiver, 10, next + 1, 1448);
    assert!(!receiver.predicts(&at(next)), "a segment is missing");
    arrive(&mut receiver, 10, next, 1448);
    assert!(receiver.predicts(&at(next + 2)));
}

/// `tcp_input.c::tcp_rcv_established` drops the segment with its ACK.
#[test]
fn the_ack_of_a_segment_outside_of_the_window_is_not_processed() {
    let (receiver, next) = settled();
    let at = |number| data(number, 1448, 7, false);
    assert!(receiver.accepts_ack_of(&at(next)) && receiver.accepts_ack_of(&at(next - 1)));
    assert!(!receiver.accepts_ack_of(&at(next - 2)), "before the left edge");
    assert!(receiver.accepts_ack_of(&at(receiver.window.end())));
    assert!(!receiver.accepts_ack_of(&at(receiver.window.end() + 1)));
    let stale = Receiver { echo_ms: PAWS_WINDOW_MS + 8, ..receiver };
    assert!(!stale.accepts_ack_of(&at(next)), "a timestamp of 7 ms");
}

#[test]
fn data_take_over_an_ack_that_waits_for_its_timer() {
    let (mut receiver, next) = settled();
    reply(&mut receiver, 10, next);
    assert_eq!(arrive(&mut receiver, 11, next + 1, 1448), None);
    assert!(receiver.deadline() < Time::NEVER);
    assert_eq!(receiver.build_piggybacked_ack(at_ms(20), true).number, next + 2);
    assert_eq!(receiver.deadline(), Time::NEVER);
}

/// Linux: "icsk->icsk_ack.quick && !inet_csk_in_pingpong_mode(sk)".
#[test]
fn replies_end_the_quick_acks_of_the_beginning() {
    let mut receiver = Receiver::new(1448, 1 << 20, RTT, EcnFeedback::Classic);
    assert!(arrive(&mut receiver, 1, 0, 1448).is_some(), "quick");
    reply(&mut receiver, 2, 1);
    assert_eq!(arrive(&mut receiver, 3, 2, 1448), None, "interactive");
    // Nothing was sent for 40 ms: no interactive session, and the quick ACKs go on.
    let ack = receiver.on_timer(receiver.deadline()).unwrap();
    assert_eq!(ack.number, 3);
    assert!(arrive(&mut receiver, 50, 3, 1448).is_some());
}

/// Data later than `ato` after the last arrival are no reply.
#[test]
fn late_data_begin_no_interactive_session() {
    let mut receiver = Receiver::new(1448, 1 << 20, RTT, EcnFeedback::Classic);
    assert!(arrive(&mut receiver, 1, 0, 1448).is_some());
    receiver.build_piggybacked_ack(at_ms(42), true);
    assert!(arrive(&mut receiver, 43, 1, 1448).is_some(), "quick");
    receiver.build_piggybacked_ack(at_ms(43), false);
    assert!(arrive(&mut receiver, 44, 2, 1448).is_some(), "a window probe is no data");
}

/// `ICSK_ACK_PUSHED` without an interactive session, `ICSK_ACK_PUSHED2` within.
#[test]
fn of_an_interactive_session_the_second_message_is_acknowledged() {
    let (mut receiver, next) = settled();
    assert!(arrive(&mut receiver, 10, next, 100).is_some());
    reply(&mut receiver, 11, next + 1);
    assert_eq!(arrive(&mut receiver, 12, next + 2, 100), None);
    assert_eq!(arrive(&mut receiver, 13, next + 3, 100).unwrap().number, next + 4);
}

/// RFC 5681 §4.2: an out-of-order segment is acknowledged at once; the loss of the data that carried
/// its ACK is no reason for another.
#[test]
fn a_gap_is_reported_with_data_or_at_once() {
    let (mut receiver, next) = settled();
    let (carried, separate) = reply(&mut receiver, 10, next + 1);
    assert_eq!((carried.number, carried.blocks()), (next, &[SackBlock::of(next + 1)][..]));
    assert_eq!((carried.option_bytes(), separate), (12, None));
    let duplicate = arrive(&mut receiver, 11, next + 2, 1448).unwrap();
    assert_eq!(duplicate.blocks(), [SackBlock { start: next + 1, end: next + 3 }]);
    let (filled, _) = reply(&mut receiver, 12, next);
    assert_eq!((filled.number, filled.block_count), (next + 3, 0));
}

/// A retransmission that was not needed is reported as a duplicate (RFC 2883), which ends the session.
#[test]
fn old_data_are_acknowledged_at_once() {
    let (mut receiver, next) = settled();
    reply(&mut receiver, 10, next);
    let ack = arrive(&mut receiver, 11, next, 1448).unwrap();
    assert!(ack.duplicate && !receiver.is_interactive());
    assert_eq!(ack.blocks(), [SackBlock::of(next)]);
}

/// `tcp_input.c::tcp_replace_ts_recent`: "!after(seq, tp->rcv_wup)".
#[test]
fn an_ack_renews_the_echoed_timestamp_only_if_all_data_before_it_are_acknowledged() {
    let (mut receiver, next) = settled();
    let ack = Ack { clock: TimestampClock::at(at_ms(500)), ..Ack::default() };
    receiver.on_ack_timestamp(at_ms(520), &ack, next + 1);
    assert_eq!(receiver.build_ack(at_ms(520)).tsecr_ms, 7);
    receiver.on_ack_timestamp(at_ms(520), &ack, next);
    assert_eq!(receiver.build_ack(at_ms(520)).tsecr_ms, 501);
}

/// RFC 9293 §3.10.7.4: a segment beyond the window is answered at once, also in a session.
#[test]
fn a_segment_beyond_the_window_is_answered_at_once() {
    let (mut receiver, next) = settled();
    reply(&mut receiver, 10, next);
    let beyond = receiver.window.end() + 3;
    assert_eq!(arrive(&mut receiver, 11, beyond, 1448).unwrap().number, next + 1);
}
