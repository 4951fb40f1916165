//! Proteus's intervals and decisions.

use jostle_registry::ParameterValue;
use jostle_units::{Rate, Span};

use super::*;
use crate::test_support::ack;
use crate::test_support::pcc::{NOW, established};
use crate::test_support::{RTT, controller_inputs};
use jostle_congestion::{CongestionController, RecoveryState, SendEvent};

/// 2²⁰ · 2²⁰, in (Mbit/s)².
const CONVERSION: f64 = 1.048_576 * 1.048_576;

fn proteus(seed: u64, given: &[(&str, ParameterValue)]) -> Pcc<Proteus> {
    let mut proteus = Pcc::new(Proteus::new(controller_inputs(&ROW, seed, given)));
    proteus.on_established(&established(10));
    proteus
}

fn of_mode(mode: &str) -> Pcc<Proteus> {
    proteus(1, &[("mode", ParameterValue::Text(mode.to_owned()))])
}

/// A controller in the middle of a probe around 10 Mbit/s.
fn probing(mode: &str) -> Pcc<Proteus> {
    let mut proteus = of_mode(mode);
    proteus.rate_bps = 20e6;
    proteus.leave(NOW);
    assert_eq!((proteus.mode(), proteus.rate_bps), ("probing", 10e6));
    // The application has data.
    proteus.last.sent_bps = f64::INFINITY;
    proteus
}

#[test]
fn an_unused_rate_does_not_rise() {
    let mut proteus = probing("primary");
    proteus.last.sent_bps = 4.9e6;
    proteus.decide(NOW, &results(&[0.9, 0.9, 0.9]));
    assert_eq!((proteus.mode(), proteus.rate_bps), ("probing", 10e6));
    // Down it goes in spite of that.
    proteus.decide(NOW, &results(&[-0.9, -0.9, -0.9]));
    assert_eq!(proteus.mode(), "moving");
    assert!(proteus.rate_bps < 9.5e6);
    // A move upwards ends as well.
    let mut proteus = probing("primary");
    proteus.decide(NOW, &results(&[0.9, 0.9, 0.9]));
    let rate_bps = proteus.rate_bps;
    proteus.last.sent_bps = 0.4 * rate_bps;
    proteus.moved(NOW, (rate_bps, 200.0));
    assert_eq!((proteus.mode(), proteus.rate_bps), ("probing", rate_bps));
}

/// Results of pairs around 10 Mbit/s whose utility has the given slopes per Mbit/s.
fn results(slopes: &[f64]) -> Vec<[RateUtility; 2]> {
    let at = |mbps: f64, slope: f64| (mbps * 1e6, 100.0 + slope * (mbps - 10.0));
    slopes.iter().map(|&slope| [at(10.5, slope), at(9.5, slope)]).collect()
}

fn mbps(proteus: &Pcc<Proteus>) -> f64 {
    proteus.rate_bps / 1e6
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

/// Release: ten packets per 100 ms until an RTT is measured; with 40 ms two and a half times as
/// much, with 200 ms the same.
#[test]
fn it_starts_with_the_initial_window_per_nominal_rtt() {
    for (rtt_ms, faster) in [(40, 2.5), (200, 1.0)] {
        let mut proteus = proteus(1, &[]);
        assert_eq!(proteus.pacing_rate(), Some(Rate::from_bps(10 * 1448 * 8 * 10)));
        assert_eq!((proteus.mode(), proteus.max_burst_packets()), ("starting", Some(1)));
        assert!(!proteus.monitor.measuring);
        proteus.on_ack(&AckSample { rtt: Some(Span::from_ms(rtt_ms)), ..ack_at(0) });
        assert!(proteus.monitor.measuring);
        close(proteus.monitor.pacing_bps, faster * 10.0 * 1448.0 * 8.0 * 10.0);
    }
}

/// An ACK of a packet that was sent an RTT ago, `ms` after [`NOW`].
fn ack_at(ms: u64) -> AckSample {
    let now = NOW + Span::from_ms(ms);
    AckSample {
        now,
        sent_at: NOW + Span::from_ms(ms) - RTT,
        rtt: Some(RTT),
        total_sent: 1_000,
        in_flight: 500,
        ..ack(0)
    }
}

/// The least RTT is over at 40 ms. The first ACK of the interval comes then, its RTT can be trusted when
/// the second comes, and the fourth when the fifth does.
#[test]
fn an_interval_lasts_until_four_of_its_rtts_are_known() {
    let mut proteus = proteus(1, &[]);
    proteus.on_ack(&ack_at(0));
    proteus.monitor.drop_measurements();
    proteus.measure(NOW, 0, 10e6);
    proteus.on_send(&SendEvent {
        now: NOW,
        packets: 1_000,
        total_sent: 1_000,
        next_to_send: 1_000,
        prior_in_flight: 0,
        after_idle: false,
    });
    for ms in 1..44 {
        proteus.on_ack(&ack_at(ms));
        assert!(proteus.monitor.measuring, "{ms} ms");
    }
    assert!(proteus.next_wakeup().is_some_and(|at| at > NOW + LEAST_PATIENCE), "ACKs end it first");
    proteus.on_ack(&ack_at(44));
    assert!(!proteus.monitor.measuring);
}

/// RTTs that cannot be trusted, or none: at 10 Mbit/s the interval of 40 ms is extended once, and
/// ends a second after that.
#[test]
fn an_interval_without_rtts_ends_in_bounded_time() {
    let mut proteus = proteus(1, &[]);
    proteus.measure(NOW, 0, 10e6);
    proteus.monitor.total_sent = 100;
    let mut wakeups = Vec::new();
    while let Some(at) = proteus.next_wakeup() {
        wakeups.push(at.since(NOW).as_us() / 1_000);
        proteus.on_wakeup(at);
    }
    assert!(!proteus.monitor.measuring);
    assert_eq!(wakeups, [40, 1_040, 1_080]);
}

/// Retransmissions that are delivered end an interval. The first RTT cannot be trusted, for lack of
/// an ACK before it, which extends the interval from 40 to 80 ms.
#[test]
fn retransmissions_give_rtts() {
    let mut proteus = proteus(1, &[]);
    proteus.has_rtt = true;
    proteus.measure(NOW, 0, 10e6);
    proteus.monitor.total_sent = 1_000;
    let end = (40..100).find(|&ms| {
        proteus.on_ack(&AckSample { rtt: None, ..ack_at(ms) });
        !proteus.monitor.measuring
    });
    assert_eq!(end, Some(80));
}

/// In an interval since [`NOW`], of ten RTTs of which seven can be trusted, no more than 0.8.
fn with_little_trust() -> Pcc<Proteus> {
    let mut proteus = proteus(1, &[]);
    proteus.has_rtt = true;
    proteus.measure(NOW, 0, 10e6);
    proteus.monitor.total_sent = 100;
    let interval = proteus.monitor.interval_at(NOW).unwrap();
    for i in 0..7 {
        interval.trend.add(f64::from(i), 0.04);
    }
    interval.heard = 10;
    proteus
}

#[test]
fn an_interval_of_which_little_can_be_trusted_takes_twice_as_long() {
    let mut proteus = with_little_trust();
    proteus.on_wakeup(NOW + RTT);
    assert!(proteus.monitor.measuring);
    assert_eq!(proteus.next_wakeup(), Some(NOW + RTT + RTT));
    proteus.on_wakeup(NOW + RTT + RTT);
    assert!(!proteus.monitor.measuring);
}

/// RTTs may be so far above the least one that they are known when both lengths are over.
#[test]
fn nobody_is_woken_up_in_the_past() {
    let mut proteus = with_little_trust();
    proteus.on_ack(&ack_at(120));
    assert!(!proteus.monitor.measuring && proteus.next_wakeup().is_none());
}

#[test]
fn a_probe_tries_three_pairs_and_that_of_a_scavenger_two() {
    for (mode, pairs) in [("primary", 3), ("scavenger", 2)] {
        let mut proteus = probing(mode);
        let mut rates = Vec::new();
        while proteus.monitor.measuring {
            rates.push(proteus.monitor.pacing_bps.round() as u64);
            proteus.go_on(NOW);
        }
        assert_eq!(rates.len(), 2 * pairs, "{mode}");
        for pair in rates.chunks(2) {
            assert!(pair.contains(&10_500_000) && pair.contains(&9_500_000), "{pair:?}");
        }
        assert_eq!(proteus.monitor.pacing_bps, 10e6, "waits at the present rate");
    }
}

#[test]
fn the_order_of_a_pair_is_random() {
    let mut orders = alloc::collections::BTreeSet::new();
    for seed in 0..60 {
        let mut proteus = proteus(seed, &[]);
        proteus.leave(NOW);
        let Phase::Probing(mut trials) = proteus.phase else { panic!("not probing") };
        let others = core::iter::from_fn(|| trials.begin(0.05)).map(|factor| factor > 1.0);
        orders.insert(others.collect::<Vec<_>>());
    }
    assert_eq!(orders.len(), 8);
}

/// Two pairs of three agree: up by ε, and by Δu/Δx shared out over three pairs. The slopes of the two
/// are 0.9 per Mbit/s, the bound is 5 % of 10.5 Mbit/s.
#[test]
fn a_primary_moves_up_by_majority() {
    let mut proteus = probing("primary");
    proteus.decide(NOW, &results(&[0.9, -0.9, 0.9]));
    assert_eq!(proteus.mode(), "moving");
    close(mbps(&proteus), 10.5 * 1.05);
    let mut proteus = probing("primary");
    proteus.parameters.min_change_bps = 0.0;
    proteus.decide(NOW, &results(&[0.3, -0.9, 0.3]));
    close(mbps(&proteus), 10.5 + 0.2 * CONVERSION);
    assert_eq!(proteus.latest.0, 10.5e6);
}

#[test]
fn a_primary_moves_down_only_if_all_pairs_agree() {
    let mut proteus = probing("primary");
    proteus.decide(NOW, &results(&[-0.9, -0.9, 0.9]));
    assert_eq!((proteus.mode(), mbps(&proteus)), ("probing", 10.0));
    proteus.decide(NOW, &results(&[-0.1, -0.1, -0.1]));
    // The least change is 0.5 Mbit/s.
    close(mbps(&proteus), 9.5 - 0.5);
    assert_eq!((proteus.mode(), proteus.latest.0), ("moving", 9.5e6));
}

#[test]
fn a_scavenger_moves_if_both_pairs_agree() {
    for (slopes, rate, mode) in [
        ([0.1, 0.1], 11.0, "moving"),
        ([-0.1, 0.1], 10.0, "probing"),
        ([-0.1, -0.1], 9.0, "moving"),
    ] {
        let mut proteus = probing("scavenger");
        proteus.decide(NOW, &results(&slopes));
        close(mbps(&proteus), rate);
        assert_eq!(proteus.mode(), mode, "{slopes:?}");
    }
}

/// Moves one after the other: (n + 1)/2 rounded down, to the power 1.2, is 1, 2^1.2, 2^1.2, 3^1.2.
#[test]
fn moves_are_amplified_every_other_time() {
    let mut proteus = probing("primary");
    proteus.rate_bps = 1000e6;
    proteus.phase = Phase::Moving;
    for expected in [1.0, 2.297_396_709_994_07, 2.297_396_709_994_07, 3.737_192_818_846_552] {
        let before = proteus.rate_bps;
        let (rate, utility) = proteus.latest;
        proteus.moved(NOW, (rate + 1e6, utility + 10.0));
        assert_eq!(proteus.mode(), "moving");
        close(mbps(&proteus) - before / 1e6, 10.0 * CONVERSION * expected);
    }
}

/// 5 %, then 10 %, then 15 % of the rate; a move below the bound narrows it by one step.
#[test]
fn the_bound_widens_while_it_is_hit() {
    let mut proteus = probing("primary");
    let shares: Vec<_> =
        (0..3).map(|_| (proteus.change(1.0) / proteus.rate_bps * 100.0).round()).collect();
    assert_eq!(shares, [5.0, 10.0, 15.0]);
    proteus.change(0.0);
    assert_eq!(proteus.widened, 2);
}

/// It goes back by what the slope found says, not by what it had gone.
#[test]
fn a_move_that_did_not_pay_is_taken_back() {
    let mut proteus = probing("primary");
    proteus.decide(NOW, &results(&[0.9, 0.9, 0.9]));
    let rate = mbps(&proteus);
    let (latest, utility) = proteus.latest;
    proteus.moved(NOW, (1e6 * rate, utility - 1e-6));
    assert!(latest < 1e6 * rate);
    assert_eq!(proteus.mode(), "probing");
    close(mbps(&proteus), rate - 0.5);
}

#[test]
fn going_down_is_right_where_the_utility_rises_that_way() {
    let mut proteus = probing("primary");
    proteus.decide(NOW, &results(&[-0.1, -0.1, -0.1]));
    let utility = proteus.latest.1;
    proteus.moved(NOW, (9.0e6, utility + 0.01));
    assert_eq!(proteus.mode(), "moving");
    close(mbps(&proteus), 8.5);
}

#[test]
fn starting_doubles_while_the_utility_rises_and_then_halves() {
    let mut proteus = proteus(1, &[]);
    let first = proteus.rate_bps;
    proteus.started(NOW, (first, 2.0));
    assert_eq!((proteus.mode(), proteus.rate_bps), ("starting", 2.0 * first));
    proteus.started(NOW, (2.0 * first, 1.9));
    assert_eq!((proteus.mode(), proteus.rate_bps), ("probing", first));
}

/// At the lowest rate it starts again, where it had not decided or had moved.
#[test]
fn it_starts_again_at_the_lowest_rate() {
    let mut proteus = probing("primary");
    proteus.rate_bps = proteus.monitor.allowed(0.0);
    let lowest = proteus.rate_bps;
    proteus.decide(NOW, &results(&[-0.9, 0.9, -0.9]));
    assert_eq!((proteus.mode(), proteus.rate_bps), ("starting", lowest));
    // A step that would lead below is a probe there.
    let mut proteus = probing("primary");
    proteus.rate_bps = proteus.monitor.allowed(0.0);
    proteus.decide(NOW, &results(&[-0.9, -0.9, -0.9]));
    assert_eq!((proteus.mode(), proteus.rate_bps), ("probing", lowest));
}

/// 600 µs in 40 ms are overlooked while starting, and punished later: 0.015 · 900 per Mbit/s.
#[test]
fn starting_overlooks_small_growth() {
    let mut proteus = proteus(1, &[]);
    let growing = |ms: f64| {
        let mut interval = crate::pcc::MonitorInterval::new(NOW, 0, 10e6);
        interval.close(NOW + RTT, 40);
        interval.delivered = 40.0;
        for i in 0..40 {
            let at = f64::from(i) * 1e-3;
            interval.trend.add(at, 0.04 + at / 0.04 * ms * 1e-3);
        }
        interval
    };
    for (ms, punished) in [(0.6, false), (1.1, true)] {
        proteus.evaluate(&growing(ms));
        assert_eq!(proteus.last.gradient > 0.0, punished, "{ms} ms");
    }
    proteus.leave(NOW);
    proteus.evaluate(&growing(0.6));
    close(proteus.last.gradient, 0.015);
    assert_eq!(proteus.last.deviation_s, proteus.last.raw_deviation_s);
}

#[test]
fn a_hybrid_is_what_its_rate_says_when_it_begins_to_probe() {
    let mut proteus = of_mode("hybrid");
    // Half of 19 Mbit/s and ε are 9.975, below the threshold; of 19.2 they are 10.08.
    for (before_bps, yields) in [(19e6, false), (19.2e6, true)] {
        proteus.phase = Phase::Starting;
        proteus.rate_bps = before_bps;
        proteus.leave(NOW);
        assert_eq!(proteus.yields, yields, "{before_bps}");
    }
}

/// The packets that a timeout marks lost are those of the interval: nothing else changes.
#[test]
fn a_timeout_is_a_loss_like_any_other() {
    let mut proteus = probing("primary");
    proteus.monitor.total_sent = 100;
    let before = proteus.monitor.pacing_bps;
    proteus.on_recovery_state(NOW, RecoveryState::Loss);
    assert_eq!((proteus.mode(), proteus.monitor.pacing_bps), ("probing", before));
    assert!(proteus.monitor.measuring && proteus.monitor.pending() == 1);
    // 99 of 100 packets were marked between two ACKs.
    proteus.on_ack(&AckSample { total_sent: 100, in_flight: 0, total_lost: 99, ..ack_at(300) });
    let interval = proteus.monitor.interval_at(NOW).unwrap();
    close(interval.loss(), 0.99);
}

#[test]
fn the_lowest_rate_is_the_releases_however_short_the_path() {
    close(proteus(1, &[]).monitor.allowed(0.0) / 1e6, 0.5);
}
