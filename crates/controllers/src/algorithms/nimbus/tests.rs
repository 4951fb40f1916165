//! Nimbus's rates and modes.

use alloc::collections::BTreeMap;

use jostle_registry::ParameterValue;

use super::*;
use crate::test_support::ack;

const RTT: Span = Span::from_ms(50);
const START: Time = Time::from_ns(50_000_000);

fn nimbus(given: &[(&str, ParameterValue)]) -> Nimbus {
    let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    let mut nimbus = Nimbus::new(Parameters::new(&ROW.entry.resolve(&given).unwrap()));
    nimbus.on_established(&EstablishedEvent {
        now: START,
        mss_bytes: 1250,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
    nimbus
}

/// A link of 96 Mbit/s, of which packets that left at `sent_bps` arrived at `received_bps`.
fn on_link(sent_bps: f64, received_bps: f64) -> Nimbus {
    let mut nimbus = nimbus(&[("link_rate", ParameterValue::Integer(96_000_000))]);
    (nimbus.cross.sent_bps, nimbus.cross.received_bps) = (sent_bps, received_bps);
    nimbus
}

fn loss_at(now: Time) -> CongestionEvent {
    CongestionEvent { now, signal: CongestionSignal::Loss, in_flight: 0, next_to_send: 0 }
}

/// 10 packets of 10 000 bit in 50 ms.
#[test]
fn it_starts_with_the_initial_window_per_rtt() {
    let nimbus = nimbus(&[]);
    assert_eq!(nimbus.pacing_rate(), Some(Rate::from_mbps(2)));
    assert_eq!((nimbus.cwnd(), nimbus.mode()), (20, "slow_start"));
}

/// z = 96 · 48/40 − 48 = 67.2: −19.2 Mbit/s are left over. At 60 ms the RTT is below what is aimed at,
/// 62.5 ms, by 2.5 ms: 48 − 0.8 · 19.2 + 0.5 · 96 · 2.5/60 = 34.64 Mbit/s.
#[test]
fn delay_is_controlled_by_what_is_left_over_and_by_the_rtt() {
    let mut nimbus = on_link(48e6, 40e6);
    nimbus.rtt = Span::from_ms(60);
    assert!((nimbus.delay_bps() / 34.64e6 - 1.0).abs() < 1e-9);
    // At 125 ms, twice as much, half of the link less: 48 − 15.36 − 24.
    nimbus.rtt = Span::from_ms(125);
    assert!((nimbus.delay_bps() / 8.64e6 - 1.0).abs() < 1e-9);
}

/// From 1.26 to 1.255 to 1.25, and no further.
#[test]
fn what_is_aimed_at_comes_down_step_by_step() {
    let mut nimbus = on_link(48e6, 48e6);
    nimbus.delay_threshold = 1.26;
    let mut seen = Vec::new();
    for _ in 0..4 {
        nimbus.delay_bps();
        seen.push((nimbus.delay_threshold * 1e4).round() / 1e4);
    }
    assert_eq!(seen, [1.255, 1.25, 1.25, 1.25]);
}

/// A quarter of the link above the rate and a twelfth below; never below a twentieth of the link.
#[test]
fn pulses_are_a_quarter_of_the_link() {
    let mut nimbus = on_link(0.0, 0.0);
    // 240 packets per round trip are 48 Mbit/s.
    (nimbus.window.cwnd, nimbus.window.ssthresh) = (240, 2);
    let (mut most, mut least) = (0.0_f64, f64::INFINITY);
    for ms in (0..1_000).step_by(5) {
        nimbus.report(&AckSample { now: START + Span::from_ms(ms), ..ack(0) });
        assert!((nimbus.rate_bps - 48e6).abs() < 1.0);
        (most, least) = (most.max(nimbus.pacing_bps), least.min(nimbus.pacing_bps));
    }
    assert!((most / 72e6 - 1.0).abs() < 0.01, "{most}");
    assert!((least / 40e6 - 1.0).abs() < 0.01, "{least}");
    nimbus.window.cwnd = 2;
    nimbus.report(&AckSample { now: START + Span::from_ms(1_120), ..ack(0) });
    assert!((nimbus.pacing_bps / 4.8e6 - 1.0).abs() < 1e-9);
}

#[test]
fn a_loss_costs_what_it_costs_the_competitor_once_per_round_trip() {
    for (competitor, left) in [("cubic", 70), ("reno", 50)] {
        let mut nimbus = nimbus(&[("competitive", ParameterValue::Text(competitor.into()))]);
        nimbus.window.cwnd = 100;
        let at = |ms| loss_at(START + Span::from_ms(ms));
        nimbus.on_congestion_event(&at(0));
        assert_eq!(nimbus.window.cwnd, left, "{competitor}");
        nimbus.on_congestion_event(&at(49));
        assert_eq!(nimbus.window.cwnd, left);
        assert!((nimbus.pacing_bps / (f64::from(left) * 200_000.0) - 1.0).abs() < 1e-9);
        nimbus.on_undo(START);
        assert_eq!((nimbus.window.cwnd, nimbus.mode()), (100, "slow_start"));
    }
}

/// Losses that go on are answered once per round trip, within an episode of recovery as well; an ACK that
/// tells of one lets nothing grow.
#[test]
fn losses_that_go_on_are_answered_again() {
    let mut nimbus = nimbus(&[]);
    (nimbus.window.cwnd, nimbus.window.ssthresh) = (100, 2);
    let mut seen = Vec::new();
    for ms in [0, 20, 40, 60, 80, 120] {
        let now = START + Span::from_ms(ms);
        nimbus.on_ack(&AckSample { now, lost: 1, acked: 50, ..ack(0) });
        seen.push(nimbus.window.cwnd);
    }
    assert_eq!(seen, [70, 70, 70, 49, 49, 34]);
}

/// Modes change at an age of 15 s, 5 s after the last change at the soonest.
#[test]
fn the_mode_follows_the_elasticity() {
    let mut nimbus = on_link(48e6, 48e6);
    nimbus.window.ssthresh = 2;
    let at = |ms| START + Span::from_ms(ms);
    nimbus.choose_mode(at(14_999));
    assert_eq!(nimbus.mode(), "competitive");
    nimbus.srtt = Span::from_ms(100);
    nimbus.choose_mode(at(15_000));
    assert_eq!((nimbus.mode(), nimbus.delay_threshold), ("delay", 2.0));
    assert_eq!(nimbus.frequency_hz(), 6.0);
    // Elastic traffic: five seconds ago 40 Mbit/s arrived, which are 200 packets per round trip.
    for sample in 0..500 {
        nimbus.elasticity.push(0.0, if sample == 0 { 40e6 } else { 1e6 });
    }
    nimbus.elasticity.average = 2.3;
    nimbus.window.cwnd = 900;
    nimbus.on_congestion_event(&loss_at(at(15_004)));
    nimbus.choose_mode(at(15_005));
    assert_eq!(
        (nimbus.mode(), nimbus.window.cwnd, nimbus.window.ssthresh),
        ("competitive", 200, 200)
    );
    nimbus.on_undo(at(15_006));
    assert_eq!(nimbus.window.cwnd, 200, "and not what it was before a loss in the other mode");
    nimbus.elasticity.average = 1.9;
    nimbus.choose_mode(at(20_004));
    assert_eq!(nimbus.mode(), "competitive");
    nimbus.choose_mode(at(20_005));
    assert_eq!(nimbus.mode(), "delay");
}

/// Between the two thresholds everything stays as it is.
#[test]
fn what_is_neither_changes_nothing() {
    let mut nimbus = on_link(48e6, 48e6);
    nimbus.elasticity.average = 2.1;
    nimbus.choose_mode(START + Span::from_ms(15_000));
    assert_eq!(nimbus.mode, Mode::Competitive);
    nimbus.mode = Mode::Delay;
    nimbus.choose_mode(START + Span::from_ms(15_005));
    assert_eq!(nimbus.mode, Mode::Delay);
}

/// However seldom ACKs come. Of a pause no more is seen than a window holds.
#[test]
fn samples_are_taken_every_ten_milliseconds() {
    let mut nimbus = on_link(48e6, 48e6);
    nimbus.take_samples(START + Span::from_ms(1_000));
    assert_eq!(nimbus.next_sample, START + Span::from_ms(1_010));
    nimbus.take_samples(START + Span::from_ms(60_000));
    assert_eq!(nimbus.next_sample, START + Span::from_ms(60_010));
    assert_eq!(nimbus.elasticity.received_ago(SAMPLES), 48e6);
}

/// What a queue that lasts makes of the transport's least RTT, which it takes anew, is none of ours.
#[test]
fn the_least_rtt_is_that_of_the_connection() {
    let mut nimbus = nimbus(&[]);
    nimbus.on_ack(&AckSample { min_rtt: Span::from_ms(48), ..ack(1) });
    nimbus.on_ack(&AckSample { min_rtt: Span::from_ms(58), ..ack(1) });
    assert_eq!(nimbus.min_rtt, Span::from_ms(48));
}

/// Recovery may last as long as there are losses, and the window is cut in it.
#[test]
fn it_grows_in_recovery_as_well() {
    let mut nimbus = nimbus(&[]);
    let before = nimbus.window.cwnd;
    nimbus.on_ack(&AckSample { acked: 3, can_increase_cwnd: false, ..ack(3) });
    assert_eq!(nimbus.window.cwnd, before + 3);
}

/// A receive window holds 5 packets in flight.
#[test]
fn an_unused_window_does_not_grow() {
    for (in_flight, cwnd) in [(5, 20), (4, 10)] {
        let mut nimbus = nimbus(&[]);
        for number in 1..=100 {
            let now = START + Span::from_ms(10 * number);
            nimbus.on_ack(&AckSample { now, prior_in_flight: in_flight, ..ack(number) });
        }
        assert!(nimbus.window.cwnd <= cwnd, "{} of {in_flight}", nimbus.window.cwnd);
        assert_eq!(nimbus.window.cwnd > 10, in_flight == 5);
    }
}
