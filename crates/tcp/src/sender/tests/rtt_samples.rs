//! RTT samples: the segments that they measure, and samples that a delayed ACK may have lengthened.

use std::sync::{Arc, Mutex};

use super::controller_calls::{Notes, noted};
use super::*;

/// The RTT of the ACK that arrives now.
fn rtt_of(script: &mut Script, ack: Ack) -> Option<Span> {
    let outcome = script.sender.on_ack(script.now, &ack, &mut script.wire);
    outcome.unwrap().rtt
}

/// Twenty packets left at 40 ms, and `now` is a time that milliseconds cannot express.
fn twenty_at(now: Time) -> Script {
    let mut script = Script::bulk(20);
    script.until(now);
    script
}

/// `tcp_input.c::tcp_ack_update_rtt` prefers the send time of the segment, in microseconds, to its
/// timestamp.
#[test]
fn a_segment_sent_once_gives_a_sample_in_microseconds() {
    let mut script = twenty_at(us(83_300));
    let first = script.ack(1);
    assert_eq!(rtt_of(&mut script, first), Some(Span::from_us(43_300)));
    // SRTT <- 7/8 · SRTT + 1/8 · R (RFC 6298 §2 (2.3)).
    assert_eq!(script.sender.srtt(), Span::from_ns(40_000_000 + 3_300_000 / 8));
    let sack = script.sack(1, &[(2, 3)]);
    assert_eq!(rtt_of(&mut script, sack), Some(Span::from_us(43_300)), "SACKed");
}

/// Karn's algorithm (RFC 6298 §3): segment 0 was retransmitted, so the ACK that covers it and
/// originals is timed by its timestamp.
#[test]
fn an_ack_that_covers_a_retransmission_is_timed_by_its_timestamp() {
    let mut script = twenty_at(ms(80));
    script.receive(script.sack(0, &[(1, 4)]));
    assert_eq!(script.wire.retransmitted, 1);
    script.until(us(120_400));
    let ack = script.ack(20);
    assert_eq!(ack.tsecr_ms, timestamp_ms(ms(80)));
    assert_eq!(rtt_of(&mut script, ack), Some(Span::from_ms(40)), "not the 80.4 ms of segment 19");
}

/// The same for SACKs, which carry no timestamp of their segment.
#[test]
fn a_sack_of_a_retransmission_gives_no_sample() {
    let mut script = twenty_at(ms(80));
    script.receive(script.sack(0, &[(2, 6)]));
    assert_eq!(script.wire.retransmitted, 2);
    script.until(ms(120));
    let sack = script.sack(0, &[(1, 6)]);
    assert_eq!(rtt_of(&mut script, sack), None);
}

/// Without news there is nothing to time, whatever the timestamp.
#[test]
fn a_duplicate_ack_gives_no_sample() {
    let mut script = twenty_at(ms(80));
    let ack = Ack { tsecr_ms: timestamp_ms(ms(40)), ..script.ack(0) };
    assert_eq!(rtt_of(&mut script, ack), None);
}

#[test]
fn acknowledged_bytes_are_those_of_the_segments() {
    let mut script = Script::new(OPTIONS, reno());
    script.supply(Some(3 * 1448 + 100));
    script.connect(RTT);
    script.until(ms(80));
    for (number, bytes) in [(2, 2 * 1448), (4, 3 * 1448 + 100)] {
        script.receive(script.ack(number));
        assert_eq!(script.sender.acked_bytes(), bytes);
    }
}

/// A connected sender without data, which records the samples of its controller.
fn idle(ecn: bool) -> (Script, Arc<Mutex<Notes>>) {
    let (mut script, notes) = noted(SenderConfig { ecn, ..OPTIONS });
    script.connect(RTT);
    (script, notes)
}

/// Sends `bytes` now, and acknowledges them after `rtt`.
fn exchange(script: &mut Script, bytes: u64, rtt: Span, ece: bool) {
    script.supply(Some(bytes));
    script.until(script.now + rtt);
    let end = script.sender.board.next();
    script.receive(Ack { ece, ..script.ack(end) });
}

fn was_delayed(notes: &Arc<Mutex<Notes>>) -> bool {
    notes.lock().unwrap().samples.last().unwrap().ack_delayed
}

/// `FLAG_ACK_MAYBE_DELAYED` of `tcp_input.c::tcp_clean_rtx_queue`: a lone segment that is not
/// full-sized, and no sign of a CE mark.
#[test]
fn the_ack_of_a_lone_short_segment_may_be_delayed() {
    for (bytes, ece, delayed) in
        [(100, false, true), (1447, false, true), (1448, false, false), (100, true, false)]
    {
        let (mut script, notes) = idle(true);
        exchange(&mut script, bytes, RTT, ece);
        assert_eq!(was_delayed(&notes), delayed, "{bytes} bytes, ECE {ece}");
    }
}

/// "prior_delivered + 1 == delivered": the ACK of a second segment in flight cannot be delayed by
/// the timer, because every second segment is acknowledged at once.
#[test]
fn the_ack_of_the_second_of_two_segments_is_not_delayed() {
    let (mut script, notes) = idle(false);
    script.supply(Some(100));
    script.supply(Some(100));
    script.until(ms(80));
    for (number, delayed) in [(1, true), (2, false)] {
        script.receive(script.ack(number));
        assert_eq!(was_delayed(&notes), delayed, "segment {number}");
    }
}

/// `tcp_input.c::tcp_update_rtt_min`: the minimum ignores a larger RTT that may be a delayed ACK,
/// even if the window of 300 s of the minimum has passed.
#[test]
fn delayed_acks_never_raise_the_minimum_rtt() {
    for (bytes, minimum_ms) in [(100, 40), (1448, 80)] {
        let (mut script, _) = idle(false);
        script.until(ms(400_000));
        exchange(&mut script, bytes, RTT + RTT, false);
        assert_eq!(script.sender.rtt.min_rtt(), Span::from_ms(minimum_ms), "{bytes} bytes");
    }
}

#[test]
fn a_delayed_ack_that_is_no_later_than_the_minimum_counts() {
    let (mut script, _) = idle(false);
    exchange(&mut script, 100, Span::from_ms(30), false);
    assert_eq!(script.sender.rtt.min_rtt(), Span::from_ms(30));
    // An equal sample renews the minimum, which is thus younger than 300 s at 400 s.
    script.until(ms(200_000));
    exchange(&mut script, 100, Span::from_ms(30), false);
    script.until(ms(400_000));
    exchange(&mut script, 1448, Span::from_ms(80), false);
    assert_eq!(script.sender.rtt.min_rtt(), Span::from_ms(30));
}
