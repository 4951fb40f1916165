//! Allegro's decisions.

use jostle_registry::ParameterValue;
use jostle_units::Span;

use super::*;
use crate::pcc::RateUtility;
use crate::test_support::pcc::{NOW, established};
use crate::test_support::{RTT, controller_inputs};
use jostle_congestion::{CongestionController, RecoveryState};

fn allegro(seed: u64, given: &[(&str, ParameterValue)]) -> Pcc<Allegro> {
    let mut allegro = Pcc::new(Allegro::new(controller_inputs(&ROW, seed, given)));
    allegro.on_established(&established(10));
    allegro
}

/// "Larger initial congestion windows … (2.5x to 5x larger than either BBR or Cubic)" are a flow's
/// `initial_window`.
#[test]
fn a_larger_initial_window_is_a_higher_first_rate() {
    for (initial_window, larger) in [(25, 2.5), (50, 5.0)] {
        let (mut given, usual) = (allegro(1, &[]), allegro(1, &[]));
        given.on_established(&established(initial_window));
        assert!((given.rate_bps / usual.rate_bps - larger).abs() < 1e-9);
        assert_eq!(given.cwnd(), 2 * initial_window);
    }
}

/// A controller that tries rates around `rate_bps`.
fn deciding(rate_bps: f64) -> Pcc<Allegro> {
    let mut allegro = allegro(1, &[]);
    allegro.rate_bps = rate_bps;
    allegro.decide(NOW, 0.01);
    allegro
}

/// Results around 10 Mbit/s; `up` says for each pair whether the higher rate was better.
fn results([first, last]: [bool; 2]) -> [[RateUtility; 2]; 2] {
    let utility = |higher: bool, up: bool| if higher == up { 2.0 } else { 1.0 };
    [
        [(10.1e6, utility(true, first)), (9.9e6, utility(false, first))],
        [(9.9e6, utility(false, last)), (10.1e6, utility(true, last))],
    ]
}

fn epsilon(allegro: &Pcc<Allegro>) -> f64 {
    match allegro.phase {
        Phase::Deciding { epsilon, .. } => epsilon,
        _ => panic!("{:?}", allegro.phase),
    }
}

/// 100 Mbit/s and 1 % of loss: 99 · 1/(1 + e⁻⁴) − 1 = 96.22.
#[test]
fn the_utility_is_that_of_the_paper() {
    let p = allegro(1, &[]).parameters;
    assert!((p.utility(100e6, 0.01) - 96.2193).abs() < 1e-3, "{}", p.utility(100e6, 0.01));
    assert_eq!(p.utility(100e6, 0.05), 100.0 * (0.95 * 0.5) - 5.0);
}

/// At a constant share of losses the utility is linear in the rate. It turns against higher rates
/// where (1 − L) · sigmoid(L) = L: at 7.4 %, not at 5 %, which is where the sigmoid is a half.
#[test]
fn higher_rates_pay_up_to_7_4_percent_of_loss() {
    let p = allegro(1, &[]).parameters;
    for (loss, pays) in [(0.0, true), (0.05, true), (0.073, true), (0.075, false), (0.2, false)] {
        assert_eq!(p.utility(20e6, loss) > p.utility(10e6, loss), pays, "{loss}");
    }
}

#[test]
fn it_starts_with_the_initial_window_per_rtt_and_doubles() {
    let mut allegro = allegro(1, &[]);
    let first = 10.0 * 1448.0 * 8.0 * 25.0;
    assert_eq!((allegro.monitor.pacing_bps, allegro.mode()), (first, "starting"));
    allegro.monitor.total_sent = 100;
    let due = allegro.monitor.deadline;
    allegro.close_interval(due);
    assert_eq!(allegro.monitor.pacing_bps, 2.0 * first);
    // Both results are open: no third interval yet.
    allegro.monitor.total_sent = 200;
    let due = allegro.monitor.deadline;
    allegro.close_interval(due);
    assert!(!allegro.monitor.measuring);
    allegro.take(NOW, (first, 1.0));
    assert_eq!(allegro.monitor.pacing_bps, 4.0 * first);
    allegro.take(NOW, (2.0 * first, 2.0));
    allegro.take(NOW, (4.0 * first, 1.9));
    assert_eq!((allegro.rate_bps, allegro.mode()), (2.0 * first, "deciding"));
}

#[test]
fn intervals_last_1_7_to_2_2_rtts_and_forty_packets() {
    let mut allegro = allegro(1, &[]);
    for _ in 0..100 {
        allegro.monitor.drop_measurements();
        allegro.measure(NOW, 0, 100e6);
        let rtts = allegro.monitor.deadline.since(NOW).as_secs_f64() / RTT.as_secs_f64();
        assert!((1.7..=2.2).contains(&rtts), "{rtts}");
    }
    allegro.measure(NOW, 0, 1e6);
    let forty_packets = Span::from_secs_f64(40.0 * 1448.0 * 8.0 / 1e6);
    assert_eq!(allegro.monitor.deadline.since(NOW), forty_packets);
}

#[test]
fn trials_are_two_pairs_in_any_order() {
    let mut orders = alloc::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut allegro = allegro(seed, &[]);
        allegro.rate_bps = 10e6;
        allegro.decide(NOW, 0.02);
        let mut rates = vec![(allegro.monitor.pacing_bps / 1e3).round() as u64];
        for _ in 0..3 {
            allegro.monitor.total_sent += 100;
            let due = allegro.monitor.deadline;
            allegro.close_interval(due);
            rates.push((allegro.monitor.pacing_bps / 1e3).round() as u64);
        }
        for pair in rates.chunks(2) {
            assert!(pair.contains(&10_200) && pair.contains(&9_800), "{rates:?}");
        }
        orders.insert(rates);
    }
    assert_eq!(orders.len(), 4);
}

#[test]
fn pairs_that_agree_set_the_direction_and_steps_grow() {
    let mut allegro = deciding(10e6);
    allegro.conclude(NOW, 0.03, results([true, true]));
    assert_eq!((allegro.mode(), allegro.rate_bps), ("adjusting", 10.1e6 * 1.01));
    allegro.take(NOW, (10.2e6, 3.0));
    assert_eq!(allegro.rate_bps, 10.2e6 * 1.02);
    allegro.take(NOW, (10.4e6, 4.0));
    assert_eq!(allegro.rate_bps, 10.4e6 * 1.03);
    // Worse: back to the last rate, and to trials with the smallest ε.
    allegro.take(NOW, (10.7e6, 3.9));
    assert_eq!((allegro.mode(), allegro.rate_bps, epsilon(&allegro)), ("deciding", 10.4e6, 0.01));
    allegro.conclude(NOW, 0.01, results([false, false]));
    assert_eq!(allegro.rate_bps, 9.9e6 * 0.99);
}

#[test]
fn pairs_that_disagree_widen_the_trials_to_five_percent() {
    let mut allegro = deciding(10e6);
    let mut tried = Vec::new();
    for _ in 0..6 {
        tried.push((epsilon(&allegro) * 100.0).round());
        let present = epsilon(&allegro);
        allegro.conclude(NOW, present, results([true, false]));
    }
    assert_eq!((tried, allegro.rate_bps), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 5.0], 10e6));
}

#[test]
fn equal_rates_at_the_floor_leave_only_up() {
    let mut allegro = deciding(1e6);
    allegro.conclude(NOW, 0.01, [[(1e6, 1.0); 2]; 2]);
    assert_eq!((allegro.mode(), allegro.rate_bps), ("deciding", 1.05e6));
}

#[test]
fn a_timeout_halves_the_rate_and_trials_begin_at_once() {
    let mut allegro = deciding(10e6);
    for _ in 0..2 {
        allegro.on_recovery_state(NOW, RecoveryState::Loss);
        assert_eq!((allegro.mode(), allegro.rate_bps), ("deciding", 5e6), "once per recovery");
        assert!(allegro.monitor.measuring && allegro.monitor.pending() == 1);
    }
    allegro.on_recovery_state(NOW, RecoveryState::Open);
    assert_eq!((allegro.mode(), allegro.rate_bps), ("deciding", 5e6));
}
