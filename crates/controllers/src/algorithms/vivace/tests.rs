//! Vivace's decisions.

use jostle_registry::ParameterValue;
use jostle_units::Rate;

use super::step_size::Confidence;
use super::*;
use crate::pcc::RateUtility;
use crate::test_support::ack;
use crate::test_support::pcc::{NOW, established};
use crate::test_support::{RTT, controller_inputs};
use jostle_congestion::{CongestionController, RecoveryState};

fn vivace(seed: u64, given: &[(&str, ParameterValue)]) -> Pcc<Vivace> {
    let mut vivace = Pcc::new(Vivace::new(controller_inputs(&ROW, seed, given)));
    vivace.on_established(&established(10));
    vivace
}

/// "Larger initial congestion windows … (2.5x to 5x larger than either BBR or Cubic)" are a flow's
/// `initial_window`.
#[test]
fn a_larger_initial_window_is_a_higher_first_rate() {
    for (initial_window, larger) in [(25, 2.5), (50, 5.0)] {
        let (mut given, usual) = (vivace(1, &[]), vivace(1, &[]));
        given.on_established(&established(initial_window));
        assert!((given.rate_bps / usual.rate_bps - larger).abs() < 1e-9);
        assert_eq!(given.cwnd(), 2 * initial_window);
    }
}

/// A controller that probes around `rate_bps`.
fn probing(seed: u64, rate_bps: f64) -> Pcc<Vivace> {
    let mut vivace = vivace(seed, &[]);
    vivace.rate_bps = rate_bps;
    vivace.probe(NOW);
    vivace
}

/// Results of a probe around 10 Mbit/s whose utility has the given slopes in the two pairs.
fn results([first, last]: [f64; 2]) -> [[RateUtility; 2]; 2] {
    let at = |mbps: f64, slope: f64| (mbps * 1e6, 100.0 + slope * (mbps - 10.0));
    [[at(10.5, first), at(9.5, first)], [at(9.5, last), at(10.5, last)]]
}

#[test]
fn it_starts_with_the_initial_window_per_rtt() {
    let vivace = vivace(1, &[]);
    assert_eq!(vivace.pacing_rate(), Some(Rate::from_bps(10 * 1448 * 8 * 25)));
    assert_eq!((vivace.cwnd(), vivace.mode()), (20, "starting"));
}

#[test]
fn no_rate_falls_below_the_minimum_or_two_packets_per_rtt() {
    let high = ParameterValue::Integer(5_000_000);
    assert_eq!(vivace(1, &[("minimum_rate", high)]).rate_bps, 5e6);
    let low = vivace(1, &[("minimum_rate", ParameterValue::Integer(1_000))]);
    assert!((low.monitor.allowed(0.0) - 2.0 * 1448.0 * 8.0 * 25.0).abs() < 1e-6);
}

#[test]
fn an_interval_lasts_an_rtt_and_twenty_packets() {
    let mut vivace = vivace(1, &[]);
    vivace.monitor.drop_measurements();
    vivace.measure(NOW, 0, 100e6);
    let length = vivace.monitor.deadline.since(NOW);
    assert!(length >= RTT && length <= Span::from_ms(44), "{length}");
    vivace.monitor.drop_measurements();
    vivace.measure(NOW, 0, 1e6);
    let twenty_packets = Span::from_secs_f64(20.0 * 1448.0 * 8.0 / 1e6);
    assert_eq!(vivace.monitor.deadline.since(NOW), twenty_packets);
    // The deadline passes with nothing sent: the interval goes on, and no timer spins.
    let due = vivace.monitor.deadline;
    vivace.on_wakeup(due);
    assert!(vivace.monitor.measuring && vivace.next_wakeup().is_none());
}

/// algorithms.md: the port's bound is 10 % and widens by 7 %, its intervals have 50 packets.
#[test]
fn the_linear_form_takes_the_bounds_of_the_linux_port() {
    let step = |given: &[(&str, ParameterValue)]| {
        let p = vivace(1, given).parameters;
        (p.steps.bound, p.steps.bound_step, p.interval_packets)
    };
    let linear = ("form", ParameterValue::Text("linear".into()));
    assert_eq!(step(&[]), (0.05, 0.05, 20));
    assert_eq!(step(core::slice::from_ref(&linear)), (0.10, 0.07, 50));
    let given = [
        linear,
        ("change_bound", ParameterValue::Number(0.2)),
        ("interval_packets", ParameterValue::Integer(7)),
    ];
    assert_eq!(step(&given), (0.2, 0.07, 7));
}

#[test]
fn a_probe_tries_both_rates_twice_in_any_order() {
    let mut orders = alloc::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut vivace = probing(seed, 10e6);
        let mut rates = vec![vivace.monitor.pacing_bps.round() as u64];
        for _ in 0..3 {
            vivace.monitor.total_sent += 100;
            let due = vivace.monitor.deadline;
            vivace.close_interval(due);
            rates.push(vivace.monitor.pacing_bps.round() as u64);
        }
        for pair in rates.chunks(2) {
            assert!(pair.contains(&10_500_000) && pair.contains(&9_500_000), "{pair:?}");
        }
        vivace.monitor.total_sent += 100;
        let due = vivace.monitor.deadline;
        vivace.close_interval(due);
        assert!(!vivace.monitor.measuring);
        assert_eq!(vivace.monitor.pacing_bps, 10e6, "waits at the present rate");
        orders.insert(rates);
    }
    assert_eq!(orders.len(), 4);
}

#[test]
fn pairs_that_agree_move_the_rate_up_the_gradient() {
    // The step is θ₀ · slope = 0.3 Mbit/s, from the better of the rates tried.
    let mut up = probing(1, 10e6);
    up.decide(NOW, results([0.3, 0.3]));
    assert_eq!((up.mode(), up.rate_bps.round()), ("moving", 10.8e6));
    let mut down = probing(1, 10e6);
    down.decide(NOW, results([-0.3, -0.3]));
    assert_eq!((down.mode(), down.rate_bps.round()), ("moving", 9.2e6));
}

#[test]
fn the_first_step_is_bounded_by_five_percent() {
    let mut vivace = probing(1, 10e6);
    vivace.decide(NOW, results([-500.0, -500.0]));
    assert!((vivace.rate_bps - 9.5e6 * 0.95).abs() < 1e-3);
}

#[test]
fn pairs_that_disagree_are_tried_again() {
    let mut vivace = probing(1, 10e6);
    vivace.decide(NOW, results([0.3, -0.3]));
    assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 10e6));
}

#[test]
fn a_probe_at_the_floor_goes_up() {
    let mut vivace = probing(1, 1e6);
    vivace.decide(NOW, [[(1e6, 1.0); 2]; 2]);
    assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 1.05e6));
}

#[test]
fn moves_grow_while_the_utility_does_and_turn_back_when_it_falls() {
    let mut vivace = probing(1, 100e6);
    let mut confidence = Confidence::default();
    confidence.step(&vivace.parameters.steps, 100e6, 1.0);
    vivace.moved(NOW, (100e6, 100.0), confidence, (102e6, 104.0));
    // m(2) · 2 Mbit/s.
    assert_eq!((vivace.mode(), vivace.rate_bps), ("moving", 106e6));
    let Phase::Moving { confidence, .. } = vivace.phase else { panic!("{:?}", vivace.phase) };
    vivace.moved(NOW, (102e6, 104.0), confidence, (106e6, 103.0));
    assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 102e6));
}

#[test]
fn starting_ends_at_the_last_rate_that_was_better() {
    let mut vivace = vivace(1, &[]);
    vivace.started(NOW, None, (4e6, 4.0));
    vivace.started(NOW, Some((4e6, 4.0)), (8e6, 8.0));
    assert_eq!(vivace.mode(), "starting");
    vivace.started(NOW, Some((8e6, 8.0)), (16e6, 7.9));
    assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 8e6));
}

#[test]
fn an_rtt_that_swells_ends_starting_at_once() {
    let mut vivace = vivace(1, &[]);
    vivace.phase = Phase::Starting { best: Some((8e6, 8.0)) };
    vivace.monitor.srtt = Span::from_ms(51);
    vivace.watch_start(NOW);
    assert_eq!(vivace.mode(), "starting");
    vivace.monitor.srtt = Span::from_ms(53);
    vivace.watch_start(NOW);
    assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 8e6));
}

#[test]
fn a_timeout_halves_the_rate_and_a_probe_begins_at_once() {
    let mut vivace = probing(1, 10e6);
    for _ in 0..2 {
        vivace.on_recovery_state(NOW, RecoveryState::Loss);
        assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 5e6), "once per recovery");
        assert!(vivace.monitor.measuring && vivace.monitor.pending() == 1);
    }
    vivace.on_recovery_state(NOW, RecoveryState::Open);
    assert_eq!((vivace.mode(), vivace.rate_bps), ("probing", 5e6));
}

/// A timeout marks packets lost between two ACKs.
#[test]
fn losses_between_acks_are_counted() {
    let mut vivace = probing(1, 10e6);
    vivace.monitor.total_sent = 60;
    let ack = AckSample { total_sent: 60, in_flight: 0, total_lost: 45, lost: 0, ..ack(0) };
    vivace.monitor.account(&AckSample { acked: 15, ..ack });
    let interval = vivace.monitor.interval_at(NOW).unwrap();
    assert_eq!((interval.delivered, interval.lost), (15.0, 45.0));
}

#[test]
fn a_spurious_loss_does_not_shift_the_intervals() {
    let mut vivace = vivace(1, &[]);
    // 20 of 60 sent are in flight, though deliveries and losses add up to 45.
    let sent = AckSample { total_sent: 60, in_flight: 20, delivered: 40, total_lost: 5, ..ack(0) };
    vivace.monitor.account(&sent);
    assert_eq!(vivace.monitor.resolved, 40);
    // An undone loss returns to the flight: what was counted stays counted.
    vivace.monitor.account(&AckSample { in_flight: 25, ..sent });
    assert_eq!(vivace.monitor.resolved, 40);
}
