//! Slow start, validation of the window, bursts, pacing, small queues.

use super::*;
use jostle_units::{FULL_PAYLOAD_BYTES, Rate};

const FULL: u64 = FULL_PAYLOAD_BYTES as u64;

/// algorithms.md §4: "round n sends 10·2ⁿ".
#[test]
fn slow_start_doubles_every_round() {
    let mut path = Loopback::new(OPTIONS, reno(), RTT);
    path.start(None);
    let mut before = 1;
    for round in 0..6 {
        path.until(ms(40 + 40 * round) + Span::from_ms(39));
        let departures = path.script.wire.departures.len();
        assert_eq!(departures - before, 10 << round, "round {round}");
        before = departures;
    }
}

/// A path on which the window has grown to 80 packets and the application rests.
fn eighty() -> Loopback {
    let mut path = Loopback::new(OPTIONS, reno(), RTT);
    path.start(Some(70 * FULL));
    path.until(ms(200));
    assert!(path.script.sender.is_drained());
    assert_eq!(path.script.sender.cwnd(), 80);
    path
}

/// algorithms.md §5: "W = 80 falls to 10 within 4 RTOs": it halves once per RTO of silence.
#[test]
fn the_window_halves_for_every_rto_of_silence() {
    for (silent_rtos, cwnd) in [(1, 80), (2, 40), (3, 20), (4, 10), (5, 10), (100, 10)] {
        let mut path = eighty();
        let sender = &mut path.script.sender;
        let (last, rto) = (sender.last_send, sender.rto.span());
        path.until(last + Span::from_ns(rto.as_ns() * silent_rtos));
        path.supply(Some(1));
        assert_eq!(path.script.sender.cwnd(), cwnd, "after {silent_rtos} RTOs");
    }
}

#[test]
fn the_threshold_remembers_three_quarters_of_an_idle_window() {
    let mut path = eighty();
    path.script.sender.controller.set_ssthresh(20);
    path.script.sender.copy_controller_outputs();
    path.until(ms(5_000));
    path.supply(None);
    assert_eq!(path.script.sender.cwnd(), 10);
    assert_eq!(path.script.sender.ssthresh, 60);
}

/// The window grows only as far as it is used: to twice that in slow start.
#[test]
fn an_application_limited_flow_does_not_grow() {
    let mut path = Loopback::new(OPTIONS, reno(), RTT);
    path.start(Some(4 * FULL));
    for round in 1..100 {
        path.until(ms(40 + 41 * round));
        path.supply(Some(4 * FULL));
    }
    assert_eq!(path.script.sender.cwnd(), 10);
    // Six packets per round: slow start may go to 12.
    for round in 100..200 {
        path.until(ms(40 + 41 * round));
        path.supply(Some(6 * FULL));
    }
    let cwnd = path.script.sender.cwnd();
    assert!((10..=14).contains(&cwnd), "{cwnd}");
}

/// RFC 2861 lets a window that is used in part shrink once in an RTO. Linux counts that RTO from the
/// last ACK that might have raised the window (`tcp_input.c::tcp_cong_avoid`), so that it hardly
/// ever ends.
#[test]
fn a_window_that_is_acknowledged_does_not_shrink() {
    let mut path = eighty();
    path.script.sender.controller.set_ssthresh(40);
    path.script.sender.copy_controller_outputs();
    for round in 0..40 {
        path.until(ms(200 + 41 * round));
        path.supply(Some(4 * FULL));
        assert_eq!(path.script.sender.cwnd(), 80, "round {round}");
    }
    assert_eq!(path.script.sender.ssthresh, 40);
}

/// RFC 2861: after an RTO of under-use without an ACK the window goes half-way to what was used, the
/// initial window at least.
#[test]
fn an_unused_window_shrinks() {
    let mut script = eighty().script;
    let (rto, last_ack) = (script.sender.rto.span(), script.sender.usage.since);
    script.until(script.sender.last_send + rto);
    script.supply(Some(4 * FULL));
    assert_eq!(script.sender.cwnd(), 80, "no silence beyond an RTO");
    script.until(last_ack + rto);
    script.supply(Some(4 * FULL));
    assert_eq!(script.sender.cwnd(), 45);
    assert_eq!(script.sender.ssthresh, u32::MAX, "¾ of a window are the least");
}

/// A bulk application always fills its socket's buffer: it is never the limit.
#[test]
fn a_window_limited_by_the_receiver_does_not_shrink_under_a_bulk_flow() {
    let mut path = Loopback::new(OPTIONS, reno(), RTT);
    path.receiver = Receiver::new(1448, 20 * FULL, RTT, EcnFeedback::Classic);
    path.start(None);
    path.until(ms(5_000));
    let cwnd = path.script.sender.cwnd();
    assert!((20..=41).contains(&cwnd), "twice what the receiver allows: {cwnd}");
}

/// A burst is what the rate sends in about a millisecond, 45 packets at most.
#[test]
fn bursts_follow_the_rate() {
    // 200 % of 1000 packets per 40 ms are 50 packets/ms.
    assert!(Script::bulk(1_000).wire.bursts.iter().all(|&burst| burst == 45 || burst == 10));
    // 200 % of 100 packets: 5 per ms.
    let script = Script::bulk(100);
    assert_eq!(script.wire.bursts[..9], [4, 4, 4, 4, 4, 4, 4, 4, 4], "{:?}", script.wire.bursts);
    // At least two, whatever the rate.
    assert_eq!(Script::bulk(10).wire.bursts, [2; 5]);
    // On a path of 2 ms 64 KiB >> 3 more; half a window at most, so that two bursts are out.
    let mut short = Script::new(OPTIONS, reno());
    short.supply(None);
    short.connect(Span::from_ms(2));
    assert_eq!(short.wire.bursts, [5, 5]);
    assert_eq!(short.sender.burst_segments(), 15);
    // Linux 4.15 has no more than the rate's.
    let mut old = Script::new(SenderConfig { short_path_bursts: false, ..OPTIONS }, reno());
    old.supply(None);
    old.connect(Span::from_ms(2));
    assert_eq!(old.sender.burst_segments(), 9);
}

/// `tcp_output.c::tcp_tso_should_defer`: with the next ACK at hand, less than a burst and less than
/// a third of the window waits for it.
#[test]
fn small_bursts_wait_for_the_next_ack() {
    let controller = Box::new(Still { cwnd: 100, ssthresh: Some(100) });
    let mut script = Script::new(OPTIONS, controller);
    script.supply(None);
    script.connect(RTT);
    script.left();
    script.until(ms(80));
    let burst = script.sender.burst_segments();
    assert_eq!(
        burst, 2,
        "120 % of 100 packets per 40 ms are 3 packets/ms of 1448 bytes, less 2.4 %"
    );
    // Nothing was sent for a millisecond: no waiting.
    script.receive(script.ack(1));
    assert_eq!(script.numbers(), [100]);
    script.receive(script.ack(2));
    script.sends_nothing();
    assert!(script.sender.is_cwnd_limited());
    script.receive(script.ack(3));
    assert_eq!(script.numbers(), [101, 102]);
    script.until(us(81_001));
    script.receive(script.ack(4));
    assert_eq!(script.numbers(), [103]);
}

/// A third of the window is compared exactly, not in whole packets.
#[test]
fn a_third_of_the_window_is_not_rounded_down() {
    for (cwnd, deferred) in [(12, false), (13, true), (14, true)] {
        let mut script = Script::new(OPTIONS, Box::new(Still { cwnd, ssthresh: None }));
        script.supply(None);
        script.connect(Span::from_ms(2));
        script.left();
        script.until(ms(4));
        assert!(script.sender.burst_segments() > 4);
        script.receive(script.ack(1));
        assert_eq!(script.numbers(), [cwnd]);
        script.receive(script.ack(5));
        assert_eq!(script.numbers().is_empty(), deferred, "cwnd {cwnd}");
    }
}

/// Time between the departures of the first flight of a paced window of 100 packets.
fn paced_gaps(ssthresh: Option<u32>) -> (Vec<Departure>, f64) {
    let options = SenderConfig { pacing: true, ..OPTIONS };
    let mut script = Script::new(options, Box::new(Still { cwnd: 100, ssthresh }));
    script.supply(None);
    script.connect(RTT);
    script.left();
    script.seen = 1;
    script.until(ms(79));
    let flight = script.left();
    assert_eq!(flight.len(), 100);
    let (first, last) = (flight[20], flight[99]);
    // All packets of a burst share one time: count whole bursts.
    let from = flight.iter().position(|it| it.at == first.at).unwrap();
    let to = flight.iter().position(|it| it.at == last.at).unwrap();
    let per_s = (to - from) as f64 / last.at.since(first.at).as_secs_f64();
    (flight, per_s)
}

/// algorithms.md §5: 120 % of W/srtt in avoidance, 200 % in the early part of slow start.
#[test]
fn packets_are_paced_above_the_rate_of_the_window() {
    let window_per_s = 100.0 / 0.040;
    for (ssthresh, factor) in [(Some(100), 1.2), (None, 2.0), (Some(201), 1.2), (Some(202), 2.0)] {
        let (_, per_s) = paced_gaps(ssthresh);
        let ratio = per_s / window_per_s;
        assert!((ratio / factor - 1.0).abs() < 0.05, "{ratio} instead of {factor} at {ssthresh:?}");
    }
}

#[test]
fn the_first_ten_packets_are_not_paced() {
    let (flight, _) = paced_gaps(None);
    let at_once = flight.iter().filter(|it| it.at == flight[0].at).count();
    assert!((10..=14).contains(&at_once), "{at_once}");
    assert!(flight[14].at > flight[0].at);
}

/// Nothing but the window governs a flow without pacing, though it has a rate for its bursts.
#[test]
fn without_pacing_a_window_leaves_at_once() {
    let mut script = Script::bulk(100);
    let flight = script.left();
    assert_eq!(flight.len(), 100);
    assert!(flight.iter().all(|it| it.at == ms(40)));
    assert_eq!(script.sender.visible_pacing_rate(), None);
    assert_eq!(script.sender.pacer.rate, Rate::from_bytes_per_s(2 * 100 * 1_448 * 25));
}

/// TCP small queues: two bursts, or a millisecond of the flow's rate, wait in the host.
#[test]
fn small_queues_hold_back_what_the_card_has_not_sent() {
    let mut script = Script::new(SenderConfig { initial_window: 1_000, ..OPTIONS }, reno());
    script.wire.card_bytes = Some(0);
    script.supply(None);
    script.connect(RTT);
    script.wire.card_bytes = Some(script.wire.card_bytes.unwrap() - 74);
    let first = script.left().len();
    // 45 packets per burst: the third one finds more than two bursts' worth waiting.
    assert!((90..=180).contains(&first), "{first}");
    assert!(script.sender.throttled);
    // One packet leaves: still too many. The card empties: two bursts more.
    script.wire.card_bytes = script.wire.card_bytes.map(|bytes| bytes - 1_514);
    script.sender.on_host_queue_drained(script.now, &mut script.wire);
    let second = script.left().len();
    assert!(second <= 45, "{second}");
    script.wire.card_bytes = Some(0);
    script.sender.on_host_queue_drained(script.now, &mut script.wire);
    let third = script.left().len();
    assert!((90..=180).contains(&third), "{third}");
}

/// Only what small queues held back is pushed by the card, nothing that waits for an ACK.
#[test]
fn an_idle_card_does_not_push_what_waits_for_an_ack() {
    let mut script = Script::new(OPTIONS, Box::new(Still { cwnd: 100, ssthresh: Some(100) }));
    script.wire.card_bytes = Some(0);
    script.supply(None);
    script.connect(RTT);
    while script.sender.in_flight() < 100 {
        script.wire.card_bytes = Some(0);
        script.sender.on_host_queue_drained(script.now, &mut script.wire);
    }
    script.left();
    script.until(ms(80));
    script.wire.card_bytes = Some(0);
    script.receive(script.ack(1));
    assert_eq!(script.numbers(), [100]);
    script.receive(script.ack(2));
    script.until(us(81_100));
    script.sender.on_host_queue_drained(script.now, &mut script.wire);
    script.sends_nothing();
}

/// An initial window of 100 packets that is spread over the 40 ms of the handshake: every packet at
/// its share of the round trip, but for the burst of two that it is in, and the half of a burst's
/// time that Linux credits the first one with.
#[test]
fn an_initial_window_is_paced_over_the_handshake() {
    let options = SenderConfig { initial_window: 100, initial_pacing: true, ..OPTIONS };
    let mut script = Script::new(options, reno());
    script.supply(None);
    script.connect(RTT);
    script.until(ms(80));
    let left = script.timed_numbers();
    assert_eq!(left.len(), 100);
    for (at, number) in left {
        let share = |number: u32| ms(40) + Span::from_us(400 * u64::from(number));
        let window = share(number.saturating_sub(2))..=share(number) + Span::from_us(1);
        assert!(window.contains(&at), "{number} at {at:?}");
    }
    // Then as ACKs come, without pacing: the two of slow start for each.
    script.receive(script.ack(2));
    assert_eq!(script.numbers(), range(100, 104));
}
