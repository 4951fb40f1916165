use super::test_support::{ArrivalWithAcks, acknowledge, take};
use super::*;
use crate::segment::test_support::{data, syn};

/// Where the time does not matter.
const NOW: Time = Time::ZERO;

fn at_us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn arrive(receiver: &mut Receiver, us: u64, number: u32) -> ArrivalWithAcks {
    take(receiver, at_us(us), &data(number, 1448, 7, false), Ecn::NotCapable)
}

/// A receiver whose window has grown as far as it will.
fn settled() -> (Receiver, u32) {
    let mut receiver = Receiver::new(1448, 100_000, Span::from_ms(40), EcnFeedback::Classic);
    for i in 0..100 {
        arrive(&mut receiver, u64::from(i) * 100, i);
    }
    (receiver, 100)
}

#[test]
fn every_segment_is_acknowledged_while_the_window_grows() {
    let mut receiver = Receiver::new(1448, 1 << 20, Span::from_ms(40), EcnFeedback::Classic);
    for i in 0..40 {
        let ack = arrive(&mut receiver, u64::from(i) * 100, i).ack.unwrap();
        assert_eq!(ack.number, i + 1);
    }
}

#[test]
fn then_every_second_one() {
    let (mut receiver, next) = settled();
    let acks: Vec<_> = (next..next + 10)
        .map(|i| arrive(&mut receiver, 10_000 + u64::from(i), i).ack.is_some())
        .collect();
    assert_eq!(acks.iter().filter(|&&sent| sent).count(), 5);
    assert!(acks.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let (mut receiver, next) = settled();
    let mut number = next;
    while arrive(&mut receiver, 20_000, number).ack.is_some() {
        number += 1;
    }
    let at = receiver.deadline();
    assert_eq!(at, at_us(60_000));
    assert!(receiver.on_timer(at_us(59_999)).is_none());
    assert_eq!(receiver.on_timer(at).unwrap().number, number + 1);
}

#[test]
fn blocks_name_the_most_recent_run_first() {
    let (mut receiver, next) = settled();
    arrive(&mut receiver, 20_000, next + 2);
    arrive(&mut receiver, 20_000, next + 5);
    let ack = arrive(&mut receiver, 20_000, next + 3).ack.unwrap();
    let block = |start, end| SackBlock { start: next + start, end: next + end };
    assert_eq!(ack.blocks(), [block(2, 4), block(5, 6)]);
    let merged = arrive(&mut receiver, 20_000, next + 4);
    assert_eq!(receiver.recent[0], block(2, 6));
    assert_eq!(merged.bytes, 0);
}

#[test]
fn duplicate_acks_are_compressed_after_the_third() {
    let (mut receiver, next) = settled();
    let sent: Vec<_> =
        (next + 1..next + 8).map(|i| arrive(&mut receiver, 20_000, i).ack.is_some()).collect();
    assert_eq!(sent, [true, true, true, false, false, false, false]);
    assert_eq!(receiver.deadline(), at_us(21_100));
}

/// `tcp_timer.c::tcp_delack_timer_handler`: "Handling the sack compression case". The timer was set
/// for a delayed ACK, which the second segment sent.
#[test]
fn the_timer_of_an_earlier_delayed_ack_ends_a_compression() {
    let (mut receiver, mut next) = settled();
    while arrive(&mut receiver, 20_000, next).ack.is_some() {
        next += 1;
    }
    assert!(arrive(&mut receiver, 20_000, next + 1).ack.is_some());
    assert_eq!(receiver.deadline(), Time::NEVER);
    for number in next + 3..next + 6 {
        assert!(arrive(&mut receiver, 58_000, number).ack.is_some());
    }
    for (us, number, deadline_us) in
        [(58_100, 6, 59_200), (59_500, 7, 60_000), (60_000, 8, 61_100), (62_000, 9, 63_100)]
    {
        assert!(arrive(&mut receiver, us, next + number).ack.is_none());
        assert_eq!(receiver.deadline(), at_us(deadline_us), "segment {number}");
        let ack = receiver.on_timer(at_us(deadline_us)).unwrap();
        assert_eq!(ack.blocks(), [SackBlock { start: next + 3, end: next + number + 1 }]);
    }
    // No delayed ACK was missed.
    assert_eq!(receiver.patience, ack::DELAYED_ACK_MIN);
}

#[test]
fn duplicate_acks_are_not_compressed_in_linux_4_15() {
    let (receiver, next) = settled();
    let mut receiver = receiver.uncompressed();
    for number in next + 1..next + 8 {
        assert!(arrive(&mut receiver, 20_000, number).ack.is_some());
    }
}

#[test]
fn the_segment_that_closes_the_last_gap_is_acknowledged_at_once() {
    let (mut receiver, next) = settled();
    arrive(&mut receiver, 20_000, next + 1);
    let arrival = arrive(&mut receiver, 20_100, next);
    assert_eq!(arrival.bytes, 2 * 1448);
    assert_eq!(arrival.ack.unwrap().number, next + 2);
}

#[test]
fn duplicates_are_reported() {
    let (mut receiver, next) = settled();
    let ack = arrive(&mut receiver, 20_000, next - 5).ack.unwrap();
    assert!(ack.duplicate);
    assert_eq!(ack.blocks(), [SackBlock { start: next - 5, end: next - 4 }]);
}

#[test]
fn ece_stands_until_cwr() {
    let mut receiver = Receiver::new(1448, 100_000, Span::from_ms(40), EcnFeedback::Classic);
    receiver.on_syn(NOW, &syn(true, 1));
    let marked = take(&mut receiver, at_us(0), &data(0, 1448, 1, false), Ecn::Marked);
    assert!(marked.ack.unwrap().ece);
    let still = take(&mut receiver, at_us(1), &data(1, 1448, 1, false), Ecn::Capable);
    assert!(still.ack.unwrap().ece);
    let answered = take(&mut receiver, at_us(2), &data(2, 1448, 1, true), Ecn::Capable);
    assert!(!answered.ack.unwrap().ece);
}

/// A segment sent at `stamp_ms`.
fn stamped(receiver: &mut Receiver, us: u64, number: u32, stamp_ms: u32) -> ArrivalWithAcks {
    take(receiver, at_us(us), &data(number, 1448, stamp_ms, false), Ecn::NotCapable)
}

/// RFC 7323 §2.2: a SYN-ACK's window is not scaled. Then two segments more for every one that
/// arrives (`tcp_input.c::tcp_grow_window`), up to the limit.
#[test]
fn the_window_grows_by_two_segments_up_to_the_limit() {
    let mut receiver = Receiver::new(1448, 200 * 1448, Span::from_ms(40), EcnFeedback::Classic);
    assert_eq!(receiver.on_syn(NOW, &syn(false, 1)).window, 45);
    for number in 0..150 {
        let ack = arrive(&mut receiver, u64::from(number), number).ack;
        let expected = (65_535 + 2 * 1448 * (u64::from(number) + 1)).min(200 * 1448) / 1448;
        if let Some(ack) = ack {
            assert_eq!(u64::from(ack.window), expected, "segment {number}");
        }
    }
    assert_eq!(receiver.offer(), 200);
}

#[test]
fn a_window_smaller_than_that_of_a_syn_ack_is_respected() {
    let mut receiver = Receiver::new(1448, 3 * 1448, Span::from_ms(40), EcnFeedback::Classic);
    assert_eq!(receiver.on_syn(NOW, &syn(false, 1)).window, 3);
    assert_eq!(arrive(&mut receiver, 0, 0).ack.unwrap().window, 3);
}

/// Data beyond a gap fill the buffer, but what was offered stays offered (RFC 9293 §3.8.6: "a
/// receiver SHOULD NOT shrink the window").
#[test]
fn the_window_never_shrinks() {
    let (mut receiver, next) = settled();
    let edge = |ack: Ack| ack.number + ack.window;
    let mut before = edge(acknowledge(&mut receiver, NOW));
    assert_eq!(before, next + 69);
    for number in (next + 1..next + 60).step_by(2) {
        arrive(&mut receiver, 20_000, number);
        let now = edge(acknowledge(&mut receiver, NOW));
        assert!(now >= before, "{now} after {before}");
        before = now;
    }
    assert_eq!(before, next + 69);
    // Gaps close, the buffer is read, and the window opens again.
    arrive(&mut receiver, 20_000, next);
    assert_eq!(edge(acknowledge(&mut receiver, NOW)), next + 69);
    for number in (next + 2..next + 60).step_by(2) {
        arrive(&mut receiver, 20_000, number);
    }
    // What lay beyond the gap is read after the ACK that the closing of the gap brings.
    assert_eq!(edge(acknowledge(&mut receiver, NOW)), next + 60 + 68);
    arrive(&mut receiver, 20_000, next + 60);
    assert_eq!(edge(acknowledge(&mut receiver, NOW)), next + 61 + 69);
}

/// The sender is in slow start: 16 quick ACKs (`TCP_MAX_QUICKACKS`), or as many as half of the
/// window's segments.
#[test]
fn it_starts_with_quick_acks() {
    for (window_bytes, quick) in [(65_535, 16), (10 * 1448, 5), (1448, 2)] {
        let mut receiver =
            Receiver::new(1448, window_bytes, Span::from_ms(40), EcnFeedback::Classic);
        let acked: Vec<_> =
            (0..40).map(|i| arrive(&mut receiver, u64::from(i), i).ack.is_some()).collect();
        let first_delayed = acked.iter().position(|acked| !acked);
        assert_eq!(first_delayed, Some(quick), "{window_bytes} bytes");
        assert!(acked[quick..].chunks_exact(2).all(|pair| pair == [false, true]));
    }
}

/// Quick ACKs do not run out while the window grows, and so some are left afterwards.
#[test]
fn quick_acks_outlast_the_growth_of_the_window() {
    let mut receiver =
        Receiver::new(1448, 65_535 + 40 * 1448, Span::from_ms(40), EcnFeedback::Classic);
    let delayed = (0..100).find(|&i| arrive(&mut receiver, u64::from(i), i).ack.is_none());
    assert_eq!(delayed, Some(20 + 16));
}

/// A delayed ACK comes after 40 ms; when nothing but delayed ACKs is sent, patience grows, up to
/// the RTT and 200 ms.
#[test]
fn patience_grows_with_every_lone_segment() {
    for (rtt_ms, patience_ms) in
        [(40, [40, 40, 40, 40]), (150, [40, 80, 150, 150]), (600, [40, 80, 160, 200])]
    {
        let mut receiver = Receiver::new(1448, 65_535, Span::from_ms(rtt_ms), EcnFeedback::Classic);
        for i in 0..16 {
            arrive(&mut receiver, 0, i);
        }
        let mut now_ms = 0;
        for (i, expected_ms) in (16..).zip(patience_ms) {
            // Not so long a gap that the sender has probably restarted its window.
            now_ms += 239;
            assert!(arrive(&mut receiver, 1_000 * now_ms, i).ack.is_none());
            let due = receiver.deadline();
            assert_eq!(due, at_us(1_000 * (now_ms + expected_ms)), "RTT {rtt_ms} ms");
            assert_eq!(receiver.on_timer(due).unwrap().number, i + 1);
        }
    }
}

#[test]
fn a_long_silence_brings_quick_acks_back() {
    let (mut receiver, next) = settled();
    assert!(arrive(&mut receiver, 10_000_000, next).ack.is_some());
    assert_eq!(receiver.quick, 15);
}

/// `tcp_input.c::tcp_event_data_recv` limits the delay to the RTO, here 240 ms, so that gaps that
/// grow do not hide a silence.
#[test]
fn growing_gaps_do_not_raise_patience_above_the_timeout() {
    let (mut receiver, next) = settled();
    receiver.patience = Span::from_ms(230);
    receiver.last_arrival = at_us(0);
    arrive(&mut receiver, 200_000, next);
    assert_eq!(receiver.patience, Span::from_ms(240), "not 230 / 2 + 200");
    assert_eq!(receiver.quick, 0);
    assert!(arrive(&mut receiver, 441_000, next + 1).ack.is_some());
    assert_eq!(receiver.quick, 15, "after more than the timeout");
}

/// 5 % of the RTT, 1 ms at most (`tcp_comp_sack_delay_ns`), and the 100 µs by which Linux lets the
/// timer be late.
#[test]
fn compressed_acks_wait_for_a_twentieth_of_the_rtt() {
    for (rtt_ms, wait_us) in [(1, 150), (10, 600), (20, 1_100), (600, 1_100)] {
        let (mut receiver, next) = settled();
        receiver.rtt = Span::from_ms(rtt_ms);
        for i in 1..=4 {
            arrive(&mut receiver, 20_000, next + i);
        }
        assert_eq!(receiver.deadline(), at_us(20_000 + wait_us));
        let ack = receiver.on_timer(at_us(20_000 + wait_us)).unwrap();
        assert_eq!(ack.blocks(), [SackBlock { start: next + 1, end: next + 5 }]);
    }
}

/// `tcp_comp_sack_nr`: 44 ACKs at most become one.
#[test]
fn no_more_than_44_acks_are_compressed() {
    let (mut receiver, next) = settled();
    let acked: Vec<_> =
        (1..=60).map(|i| arrive(&mut receiver, 20_000, next + i).ack.is_some()).collect();
    let gap = acked.iter().skip(3).position(|acked| *acked);
    assert_eq!(gap, Some(44));
}

/// A compressed ACK has room for few blocks: news of a third one goes out at once.
#[test]
fn a_third_block_is_not_withheld() {
    let (mut receiver, next) = settled();
    for i in [1, 2, 3, 4, 10, 20] {
        let compressed = arrive(&mut receiver, 20_000, next + i).ack.is_none();
        assert_eq!(compressed, [4, 10].contains(&i), "segment {i}");
    }
}

#[test]
fn a_copy_beyond_the_gap_is_reported_but_does_not_hurry() {
    let (mut receiver, next) = settled();
    arrive(&mut receiver, 20_000, next + 1);
    let ack = arrive(&mut receiver, 20_000, next + 1).ack.unwrap();
    assert!(ack.duplicate);
    let block = SackBlock { start: next + 1, end: next + 2 };
    assert_eq!(ack.blocks(), [block, block]);
    assert_eq!(receiver.quick, 0);
}

/// A report of a copy is sent once, and in place of the oldest of three blocks.
#[test]
fn a_duplicate_takes_one_of_three_blocks() {
    let (mut receiver, next) = settled();
    for i in [2, 4, 6, 8] {
        arrive(&mut receiver, 20_000, next + i);
    }
    let block = |i| SackBlock::of(next + i);
    let ack = arrive(&mut receiver, 20_000, next - 1).ack.unwrap();
    assert_eq!(
        (ack.duplicate, ack.blocks()),
        (true, &[SackBlock::of(next - 1), block(8), block(6)][..])
    );
    let ack = acknowledge(&mut receiver, NOW);
    assert_eq!((ack.duplicate, ack.blocks()), (false, &[block(8), block(6), block(4)][..]));
}

/// RFC 7323 §4.3: of two segments that one ACK covers the timestamp of the first is echoed, since
/// it waited longest; of those beyond a gap none is.
#[test]
fn the_timestamp_of_the_left_edge_is_echoed() {
    let (mut receiver, next) = settled();
    stamped(&mut receiver, 20_000, next, 50);
    let ack = stamped(&mut receiver, 20_001, next + 1, 51).ack.unwrap();
    assert_eq!((ack.number, ack.tsecr_ms), (next + 2, 50));
    let ack = stamped(&mut receiver, 20_002, next + 3, 53).ack.unwrap();
    assert_eq!(ack.tsecr_ms, 50);
    let ack = stamped(&mut receiver, 20_003, next + 2, 60).ack.unwrap();
    assert_eq!((ack.number, ack.tsecr_ms), (next + 4, 60));
}

/// RFC 7323 §5.3: what is older than what was echoed is dropped. Here an original that is late by
/// more than its neighbour's repair took.
#[test]
fn a_segment_from_before_the_last_echo_is_dropped() {
    let (mut receiver, next) = settled();
    stamped(&mut receiver, 20_000, next + 2, 50);
    stamped(&mut receiver, 20_000, next, 100);
    let late = stamped(&mut receiver, 20_000, next + 1, 50);
    assert_eq!((late.bytes, late.ack.unwrap().number), (0, next + 1));
    let repaired = stamped(&mut receiver, 20_000, next + 1, 101);
    assert_eq!(repaired.bytes, 2 * 1448);
    // A late copy does not set the clock back.
    let copy = stamped(&mut receiver, 20_000, next, 50);
    assert_eq!((copy.bytes, copy.ack.unwrap().tsecr_ms), (0, 101));
}

/// RFC 9293 §3.10.7.4: a copy that ends before the left edge is not acceptable, and its timestamp is
/// not stored. Originals that a longer path delays are then not older than it.
#[test]
fn a_copy_of_acknowledged_data_does_not_advance_the_clock() {
    let (mut receiver, next) = settled();
    stamped(&mut receiver, 20_000, next, 50);
    let ack = stamped(&mut receiver, 20_001, next + 1, 51).ack.unwrap();
    assert_eq!(ack.number, next + 2);
    let copy = stamped(&mut receiver, 20_002, next, 100).ack.unwrap();
    assert_eq!((copy.number, copy.tsecr_ms), (next + 2, 50));
    assert_eq!(stamped(&mut receiver, 20_003, next + 2, 52).bytes, 1448);
}

/// `ICSK_ACK_PUSHED`: the application reads to the end, and that is told.
#[test]
fn the_end_of_a_message_is_acknowledged_at_once() {
    let (mut receiver, mut next) = settled();
    while arrive(&mut receiver, 20_000, next).ack.is_none() {
        next += 1;
    }
    let runt = data(next + 1, 10, 7, false);
    let arrival = take(&mut receiver, at_us(20_000), &runt, Ecn::NotCapable);
    assert_eq!((arrival.bytes, arrival.ack.unwrap().number), (10, next + 2));
}

#[test]
fn a_short_segment_beyond_a_gap_is_delivered_with_its_own_length() {
    let (mut receiver, next) = settled();
    let runt = data(next + 1, 10, 7, false);
    assert_eq!(take(&mut receiver, at_us(20_000), &runt, Ecn::NotCapable).bytes, 0);
    arrive(&mut receiver, 20_000, next + 2);
    assert_eq!(arrive(&mut receiver, 20_000, next).bytes, 2 * 1448 + 10);
    assert!(receiver.short.is_empty());
}

fn marked(receiver: &mut Receiver, number: u32, cwr: bool, ecn: Ecn) -> Option<Ack> {
    take(receiver, at_us(20_000), &data(number, 1448, 7, cwr), ecn).ack
}

/// The sender's window may be down to a packet, at the mark as at CWR: it should not wait for ACKs.
#[test]
fn marks_and_their_answers_are_acknowledged_at_once() {
    let (mut receiver, next) = settled();
    assert!(marked(&mut receiver, next, false, Ecn::Marked).is_some_and(|ack| ack.ece));
    assert!(marked(&mut receiver, next + 1, false, Ecn::Marked).is_some_and(|ack| ack.ece));
    assert!(marked(&mut receiver, next + 2, false, Ecn::Capable).is_none());
    assert!(marked(&mut receiver, next + 3, true, Ecn::Capable).is_some_and(|ack| !ack.ece));
    assert!(marked(&mut receiver, next + 4, true, Ecn::Capable).is_some_and(|ack| !ack.ece));
    // CWR and a new mark in one: the echo goes on.
    assert!(marked(&mut receiver, next + 5, true, Ecn::Marked).is_some_and(|ack| ack.ece));
}

/// What is not ECN-capable amid what is must be a repair, and its sender waits for the ACK.
#[test]
fn a_repair_among_capable_segments_is_acknowledged_at_once() {
    let (mut receiver, next) = settled();
    assert!(marked(&mut receiver, next, false, Ecn::NotCapable).is_none());
    assert!(marked(&mut receiver, next + 1, false, Ecn::Capable).is_some());
    assert!(marked(&mut receiver, next + 2, false, Ecn::NotCapable).is_some());
    assert!(marked(&mut receiver, next + 3, false, Ecn::Capable).is_some(), "two quick ACKs");
    assert!(marked(&mut receiver, next + 4, false, Ecn::Capable).is_none());
}

/// A receiver that has offered no more than ten segments, of which the first is missing.
fn full_but_for_the_first() -> Receiver {
    let mut receiver = Receiver::new(1448, 10 * 1448, Span::from_ms(40), EcnFeedback::Classic);
    assert_eq!(receiver.on_syn(NOW, &syn(false, 1)).window, 10);
    for number in 1..10 {
        assert!(!arrive(&mut receiver, 0, number).reopens);
    }
    receiver
}

/// `tcp_input.c::tcp_data_queue`: what lies beyond the window is dropped and acknowledged at once.
#[test]
fn nothing_beyond_the_window_is_taken() {
    let mut receiver = full_but_for_the_first();
    for number in [10, 11, 40] {
        let beyond = arrive(&mut receiver, 0, number);
        let ack = beyond.ack.unwrap();
        assert_eq!((beyond.bytes, ack.number, ack.window, ack.duplicate), (0, 0, 10, false));
        assert_eq!(ack.blocks(), [SackBlock { start: 1, end: 10 }]);
    }
    assert_eq!(arrive(&mut receiver, 1, 0).bytes, 10 * 1448);
    assert_eq!(arrive(&mut receiver, 2, 10).bytes, 1448, "now it fits");
}

/// `tcp.c::tcp_cleanup_rbuf`: the ACK comes before the read; a window that is twice as large after it is
/// told at once, and one that is not has to wait for the next ACK.
#[test]
fn a_read_that_opens_the_window_is_told() {
    for (arrived, reopens) in [(10, true), (6, true), (5, false), (2, false)] {
        let mut receiver = Receiver::new(1448, 10 * 1448, Span::from_ms(40), EcnFeedback::Classic);
        receiver.on_syn(NOW, &syn(false, 1));
        for number in 1..arrived {
            assert!(!arrive(&mut receiver, 0, number).reopens);
        }
        let arrival = arrive(&mut receiver, 0, 0);
        let told = arrival.ack.unwrap();
        // All but the first, which the ACK leaves out, are still in the buffer.
        assert_eq!((told.number, told.window), (arrived, 10 - (arrived - 1)));
        assert_eq!(arrival.reopens, reopens, "{arrived} segments");
        assert_eq!(receiver.build_window_update(NOW).window, 10);
    }
}

/// A window of one segment is told as open after each; larger ones with the delayed ACK.
#[test]
fn only_tiny_windows_are_told_after_every_read() {
    for (segments, reopens) in [(1, true), (2, true), (3, false), (40, false)] {
        let window_bytes = segments * 1448;
        let mut receiver =
            Receiver::new(1448, window_bytes, Span::from_ms(40), EcnFeedback::Classic);
        receiver.on_syn(NOW, &syn(false, 1));
        // As after the quick ACKs of the beginning.
        receiver.patience = Span::from_ms(40);
        let arrival = arrive(&mut receiver, 0, 0);
        assert!(arrival.ack.is_none());
        assert_eq!(arrival.reopens, reopens, "{segments} segments");
    }
}

/// `tcp_output.c::__tcp_select_window`: less than a sixteenth of the buffer is nothing.
#[test]
fn a_window_that_is_nearly_closed_is_closed() {
    let mut window = ReceiveWindow::new(1448, 40 * 1448);
    assert_eq!(window.offer(40, 37 * 1448), 3);
    let mut window = ReceiveWindow::new(1448, 40 * 1448);
    assert_eq!(window.offer(40, 38 * 1448), 0);
}

/// `tcp_input.c::tcp_send_dupack`: a probe of the window is answered, but not more often than every 500
/// ms (`tcp_input.c::tcp_oow_rate_limited`), and is not a segment that has arrived again.
#[test]
fn window_probes_are_answered_twice_in_a_second() {
    let (mut receiver, next) = settled();
    let probe = data(next - 1, 0, 7, false);
    let mut answered = Vec::new();
    for us in [20_000, 20_001, 519_999, 520_000, 1_020_000] {
        let arrival = take(&mut receiver, at_us(us), &probe, Ecn::NotCapable);
        assert_eq!((arrival.bytes, arrival.reopens), (0, false));
        if let Some(ack) = arrival.ack {
            assert_eq!((ack.number, ack.duplicate, ack.blocks().len()), (next, false, 0));
            assert_eq!(ack.window, 69);
            answered.push(us);
        }
    }
    assert_eq!(answered, [20_000, 520_000, 1_020_000]);
}

/// What the application has not read occupies the buffer, down to a sixteenth of which there is a window
/// (`tcp_output.c::__tcp_select_window`); what it reads opens the window again, which the sender is
/// told.
#[test]
fn what_is_not_read_closes_the_window() {
    let mut receiver = Receiver::new(1448, 32 * 1448, Span::from_ms(40), EcnFeedback::None);
    receiver.read_later();
    let mut last = None;
    for number in 0..31 {
        last = arrive(&mut receiver, u64::from(number) * 100, number).ack.or(last);
    }
    assert_eq!(receiver.unread_bytes(), 31 * 1448);
    // A segment is 1/32 of it. The first was not counted yet when it was acknowledged, as of any
    // receiver, and what was offered once stays offered.
    let offered = last.unwrap();
    assert_eq!(offered.number + offered.window, 33);
    arrive(&mut receiver, 4_000, 31);
    arrive(&mut receiver, 4_100, 32);
    // What comes in order is taken until no window was told, as it is here in answer to a duplicate.
    let closed = arrive(&mut receiver, 4_150, 32).ack.unwrap();
    assert_eq!((closed.number, closed.window), (33, 0));
    assert_eq!(arrive(&mut receiver, 4_200, 33).bytes, 0, "there was no room for it");

    assert_eq!(receiver.read(at_us(5_000), 1448).map(|ack| ack.window), None, "too little to tell");
    let update = receiver.read(at_us(6_000), 20 * 1448).unwrap();
    assert_eq!((update.number, update.window), (33, 20));
    assert_eq!(receiver.unread_bytes(), 12 * 1448);
}

/// An application that reads whatever comes has the same window as one that does not wait.
#[test]
fn who_reads_at_once_has_the_window_of_any_other() {
    let make = || Receiver::new(1448, 100_000, Span::from_ms(40), EcnFeedback::None);
    let (mut plain, mut relayed) = (make(), make());
    relayed.read_later();
    for number in 0..200 {
        let us = u64::from(number) * 100;
        let (one, other) = (arrive(&mut plain, us, number), arrive(&mut relayed, us, number));
        assert_eq!(one.ack.map(|it| it.window), other.ack.map(|it| it.window), "{number}");
        assert_eq!(one.bytes, other.bytes);
        assert!(relayed.read(at_us(us), other.bytes).is_none());
    }
}
