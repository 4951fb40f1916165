//! The connection and what the application does with it.

use super::*;
use jostle_units::FULL_PAYLOAD_BYTES;

const FULL: u64 = FULL_PAYLOAD_BYTES as u64;

#[test]
fn a_syn_is_repeated_after_1_2_and_4_s() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(None);
    script.open();
    script.until(ms(14_000));
    let at: Vec<_> = script.left().iter().map(|it| it.at).collect();
    assert_eq!(at, [ms(0), ms(1_000), ms(3_000), ms(7_000)]);
    assert_eq!(script.sender.mode(), "handshake");
}

/// RFC 7323 §4: "the sender's timestamp is echoed", so a repeated SYN has an RTT all the same.
#[test]
fn the_rtt_of_a_repeated_syn_comes_from_its_timestamp() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(None);
    script.open();
    script.until(ms(1_100));
    script.syn_ack(timestamp_ms(ms(1_000)), 1 << 20);
    assert_eq!(script.sender.srtt(), Span::from_ms(100));
    assert_eq!(script.sender.rto.span(), Span::from_ms(300));
    assert_eq!(script.sender.cwnd(), 10, "one lost SYN costs nothing");
}

#[test]
fn two_lost_syns_cost_the_initial_window() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(None);
    script.open();
    script.until(ms(3_040));
    script.syn_ack(timestamp_ms(ms(3_000)), 1 << 20);
    assert_eq!(script.sender.cwnd(), 1);
}

#[test]
fn a_second_syn_ack_changes_nothing() {
    let mut script = Script::bulk(10);
    script.left();
    script.until(ms(60));
    script.syn_ack(1, 1 << 20);
    script.sends_nothing();
    assert_eq!(script.sender.srtt(), RTT);
}

#[test]
fn ten_packets_leave_at_once() {
    let mut script = Script::bulk(10);
    assert_eq!(script.numbers(), range(0, 10));
    assert_eq!(script.wire.bursts, [2; 5]);
}

#[test]
fn nothing_leaves_before_the_handshake_is_done() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(5 * FULL));
    script.sends_nothing();
    assert!(!script.sender.is_drained());
    script.connect(RTT);
    assert_eq!(script.numbers(), range(0, 5));
}

#[test]
fn the_last_segment_carries_the_rest() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(2 * FULL + 100));
    script.connect(RTT);
    script.supply(Some(1));
    script.supply(Some(FULL));
    let payloads: Vec<_> = script.left().iter().map(|it| it.payload_bytes()).collect();
    assert_eq!(payloads, [1448, 1448, 100, 1, 1448]);
}

#[test]
fn what_was_not_sent_can_be_withdrawn() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(12 * FULL + 7));
    script.connect(RTT);
    assert!(script.sender.withdraw(), "two segments and a bit were left");
    assert!(!script.sender.withdraw());
    script.until(ms(80));
    script.receive(script.ack(10));
    assert_eq!(script.numbers(), range(0, 10));
    assert!(script.sender.is_drained());
    // What is written next is full sized where the withdrawn rest was not.
    script.supply(Some(3 * FULL));
    let sent: Vec<_> = script.left().iter().filter_map(|it| it.data().copied()).collect();
    assert_eq!(sent.iter().map(|it| it.number).collect::<Vec<_>>(), range(10, 13));
    assert!(sent.iter().all(|it| u32::from(it.payload_bytes) == FULL_PAYLOAD_BYTES));
}

#[test]
fn a_stopped_stream_can_start_again() {
    let mut script = Script::bulk(10);
    script.sender.withdraw();
    script.until(ms(80));
    script.receive(script.ack(10));
    assert!(script.sender.is_drained());
    script.left();
    script.supply(None);
    assert_eq!(script.numbers().len(), 20, "slow start went on");
    assert!(!script.sender.is_drained());
}

#[test]
fn a_stream_is_drained_when_its_last_segment_is_acknowledged() {
    let mut path = Loopback::new(OPTIONS, reno(), RTT);
    path.lost = vec![0, 37, 38, 99];
    path.start(Some(99 * FULL + 1));
    let mut drained_at = Time::NEVER;
    for step in 40..2_000 {
        path.until(ms(step));
        if path.script.sender.is_drained() {
            drained_at = ms(step);
            break;
        }
        assert!(path.delivered_bytes <= 99 * FULL + 1);
    }
    assert!(drained_at < ms(1_000), "{drained_at}");
    assert_eq!(path.delivered_bytes, 99 * FULL + 1);
    assert_eq!(path.script.wire.retransmitted, 4);
    path.until(ms(5_000));
    assert_eq!(path.script.wire.retransmitted, 4, "nothing is left to repeat");
}

#[test]
fn the_receivers_window_is_not_exceeded() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(None);
    script.connect_with(RTT, 5);
    assert_eq!(script.numbers(), range(0, 5));
    script.until(ms(80));
    script.receive(Ack { window: 5, ..script.ack(2) });
    assert_eq!(script.numbers(), range(5, 7));
    // A window that shrinks takes nothing back and lets nothing out.
    script.receive(Ack { window: 1, ..script.ack(3) });
    script.sends_nothing();
    script.receive(Ack { window: 5, ..script.ack(4) });
    assert_eq!(script.numbers(), range(7, 9));
    // A window update without progress lets out what it allows.
    script.receive(Ack { window: 9, ..script.ack(4) });
    assert_eq!(script.numbers(), range(9, 13));
}

#[test]
fn an_ack_of_what_was_never_sent_is_ignored() {
    let mut script = Script::bulk(10);
    script.left();
    script.until(ms(80));
    script.receive(ack(11, 1, 1 << 20, false));
    script.sends_nothing();
    assert_eq!(script.sender.in_flight(), 10);
}

/// 9 PB are more segments than can be counted: the number stops at the last.
#[test]
fn the_largest_message_does_not_overflow() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(1 << 53));
    script.supply(Some(1 << 53));
    script.connect(RTT);
    assert_eq!(script.numbers(), range(0, 10));
    assert_eq!(script.sender.queue.end(), u32::MAX);
}

/// `tcp.c::tcp_sendmsg_locked` appends to the tail of the write queue as long as that has not been
/// sent.
#[test]
fn what_has_not_left_takes_what_is_written_next() {
    let mut script = Script::new(OPTIONS, reno());
    for bytes in [100, 50, 2_000] {
        script.supply(Some(bytes));
    }
    script.connect(RTT);
    let payloads = |script: &mut Script| -> Vec<_> {
        script.left().iter().filter_map(Departure::data).map(|data| data.payload_bytes).collect()
    };
    assert_eq!(payloads(&mut script), [1_448, 2_150 - 1_448]);
    script.supply(Some(10));
    script.supply(Some(20));
    assert_eq!(payloads(&mut script), [10, 20], "what has left takes no more");
}
