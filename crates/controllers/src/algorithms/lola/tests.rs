use alloc::collections::BTreeMap;

use jostle_registry::ParameterValue;

use super::*;
use crate::slow_start::Standard;
use crate::test_support::{ack, loss, measured, measurement};

const PATH: (u64, u64) = (105_000, 100_000);

/// LoLa on a kernel of so many ticks per second.
fn lola_at(hz: i64) -> Lola {
    let given = BTreeMap::from([("hz".to_owned(), ParameterValue::Integer(hz))]);
    let mut law = Lola::new(&ROW.entry.resolve(&given).unwrap());
    law.base_us = Some(PATH.1);
    law
}

/// A tick is a millisecond.
fn lola() -> Lola {
    lola_at(1000)
}

fn time(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn at(cwnd: u32) -> CongestionWindow {
    CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
}

/// A judgement at `now_ms` of a full interval whose least RTT was `rtt_us`.
fn judge(law: &mut Lola, window: &mut CongestionWindow, now_ms: u64, rtt_us: u64) {
    if !matches!(law.phase, Phase::Hold(_)) {
        (law.rtt_us, law.samples) = (Some(rtt_us), INTERVAL_SAMPLES);
    }
    law.judge(window, time(now_ms));
}

/// LoLa in congestion avoidance, its epoch just begun.
fn growing(window: &mut CongestionWindow) -> Lola {
    let mut law = lola();
    law.increase_cwnd(window, 1, &ack(1));
    assert_eq!(law.cubic.epoch_ms(), Some(0));
    law
}

#[test]
fn the_target_is_the_cube_of_time_over_phi() {
    let law = lola();
    for (elapsed_ms, packets) in [(0, 0), (74, 0), (75, 1), (150, 8), (750, 1_000)] {
        assert_eq!(law.target(elapsed_ms), packets, "after {elapsed_ms} ms");
    }
}

#[test]
fn a_flow_adds_what_it_lacks_of_the_target_and_waits_if_it_has_more() {
    let mut law = lola();
    // 1050 · 5/105 = 50 packets of its own; the target after 300 ms is 64, and was 18 a base
    // RTT before. It grows by 14 in 40 ms, or 36 in a round trip.
    law.per_increase = 1_050;
    law.balance(1_050, 300, PATH);
    assert_eq!(law.per_increase, 1_050 * 40 / (14 * 105));
    // At 250 ms it is 37.
    law.balance(1_050, 250, PATH);
    assert_eq!(law.per_increase, 105_000);
}

#[test]
fn growth_balancing_hold_and_reduction_follow_one_another() {
    let mut window = at(1_000);
    let mut law = growing(&mut window);
    judge(&mut law, &mut window, 190, 101_000);
    assert_eq!(law.phase, Phase::Growth, "not before two round trips");
    judge(&mut law, &mut window, 300, 100_500);
    assert_eq!(law.phase, Phase::Growth, "0.5 ms are not more than 0.5 ms");
    judge(&mut law, &mut window, 340, 100_501);
    assert_eq!(law.phase, Phase::Balancing(340));
    judge(&mut law, &mut window, 379, 106_000);
    assert_eq!(law.phase, Phase::Balancing(340), "the interval is not over");
    judge(&mut law, &mut window, 380, 105_001);
    assert_eq!(law.phase, Phase::Hold(380));
    judge(&mut law, &mut window, 630, 100_000);
    assert_eq!((law.phase, window.cwnd), (Phase::Hold(380), 1_000));
    judge(&mut law, &mut window, 631, 100_000);
    // 1000 · 100000/105001 · 927/1024, by the RTT before the hold.
    assert_eq!((law.phase, window.cwnd, window.ssthresh), (Phase::Growth, 862, 2));
    assert_eq!(law.cubic.epoch_ms(), None);
}

#[test]
fn what_slow_start_queued_is_drained_without_a_hold() {
    let mut window = at(1_000);
    let mut law = growing(&mut window);
    law.overshot = true;
    judge(&mut law, &mut window, 1, 200_000);
    assert_eq!((law.phase, window.cwnd), (Phase::Growth, 452));
}

#[test]
fn a_base_that_nobody_sees_any_more_is_forgotten() {
    let mut law = lola();
    for _ in 0..10 {
        law.reduce(&mut at(1_000), PATH);
    }
    assert_eq!(law.base_us, Some(100_000));
    law.reduce(&mut at(1_000), PATH);
    assert_eq!(law.base_us, None);
}

#[test]
fn a_small_window_is_left_with_five_packets() {
    let mut window = at(6);
    lola().reduce(&mut window, (400_000, 100_000));
    assert_eq!(window.cwnd, 5);
}

/// Samples of packets that each had an ACK count twice: the ninth ACK is the first to be judged.
#[test]
fn slow_start_ends_when_a_round_shows_a_millisecond_of_queue() {
    for (rtt_us, ends) in [(101_000, false), (101_001, true)] {
        let (mut law, mut window) =
            (lola(), CongestionWindow { cwnd: 100, ..CongestionWindow::default() });
        law.rounds.begin(0, 0);
        for i in 0..9 {
            assert!(window.in_slow_start(), "after {i} ACKs");
            // No train: 3 ms apart.
            let now = time(3 + 3 * i);
            law.on_ack_before_loss_detection(
                &mut window,
                &measured(now, 1, Some(Span::from_us(rtt_us))),
            );
        }
        assert_eq!((law.overshot, window.in_slow_start()), (ends, !ends), "{rtt_us} us");
    }
}

/// With a base of 100 ms a train of 51 ms is long enough, and nothing needs to be drained.
#[test]
fn slow_start_ends_at_a_train_of_half_the_base_rtt() {
    let (mut law, mut window) =
        (lola(), CongestionWindow { cwnd: 100, ..CongestionWindow::default() });
    law.rounds.begin(0, 0);
    for now_ms in 1..=51 {
        assert!(window.in_slow_start(), "before {now_ms} ms");
        law.on_ack_before_loss_detection(
            &mut window,
            &measured(time(now_ms), 1, Some(Span::from_ms(100))),
        );
    }
    assert_eq!((window.ssthresh, law.overshot), (100, false));
    // It is not looked for again.
    window.ssthresh = 200;
    for now_ms in 52..200 {
        law.on_ack_before_loss_detection(
            &mut window,
            &measured(time(now_ms), 1, Some(Span::from_ms(110))),
        );
    }
    assert_eq!(window.ssthresh, 200);
}

#[test]
fn only_the_first_slow_start_drains() {
    let (mut law, mut window) =
        (lola(), CongestionWindow { cwnd: 100, ..CongestionWindow::default() });
    law.ssthresh_after(&window, &loss());
    law.samples = EXIT_SAMPLES;
    law.on_ack_before_loss_detection(&mut window, &measurement(Span::from_ms(102)));
    assert!(!window.in_slow_start() && !law.overshot);
}

/// Ticks of 4 ms. The module takes 202 ms, two RTTs, for 202 ticks, and waits longer than that.
#[test]
fn times_are_ticks_and_rtts_are_taken_for_ticks() {
    let mut window = at(1_000);
    let mut law = lola_at(250);
    law.increase_cwnd(&mut window, 1, &ack(1));
    judge(&mut law, &mut window, 808, 101_000);
    assert_eq!(law.phase, Phase::Growth);
    judge(&mut law, &mut window, 812, 101_000);
    assert_eq!(law.phase, Phase::Balancing(203));
    // 40 ms are 10 ticks.
    judge(&mut law, &mut window, 848, 106_000);
    assert_eq!(law.phase, Phase::Balancing(203));
    judge(&mut law, &mut window, 852, 106_000);
    assert_eq!(law.phase, Phase::Hold(213));
    // 250 ms are 63 ticks, rounded up, and have to be exceeded.
    judge(&mut law, &mut window, 852 + 252, 100_000);
    assert_eq!(law.phase, Phase::Hold(213));
    judge(&mut law, &mut window, 852 + 256, 100_000);
    assert_eq!(law.phase, Phase::Growth);
}

#[test]
fn idle_time_does_not_count() {
    let mut window = at(1_000);
    let mut law = growing(&mut window);
    law.phase = Phase::Balancing(100);
    law.on_flight_start(&mut window, time(900), Span::from_ms(300));
    assert_eq!((law.phase, law.cubic.epoch_ms()), (Phase::Balancing(400), Some(300)));
    law.on_flight_start(&mut window, time(1_000), Span::from_ms(990));
    assert_eq!(law.phase, Phase::Balancing(1_000), "nothing begins in the future");
}

/// After a reduction an epoch begins with the next ACK, which need not find the window full.
#[test]
fn an_epoch_begins_whether_the_window_is_full_or_not() {
    let (mut law, mut window) = (lola(), at(1_000));
    let unused = AckSample { cwnd_limited: false, ..ack(1) };
    law.on_cwnd_limited_ack(&mut window, &mut Standard, &unused);
    assert_eq!(law.cubic.epoch_ms(), Some(0));
    let count = window.count;
    law.on_cwnd_limited_ack(&mut window, &mut Standard, &unused);
    assert_eq!(window.count, count, "but growth is for full ones");
}
