//! Numbers worked out by hand from the RFC's equations, with C = 0.4 and β_cubic = 0.7.

use super::*;
use crate::algorithms::cubic::ROW;
use crate::test_support::ack;
use jostle_congestion::CongestionSignal;

const RTT_MS: u64 = 100;

fn law() -> Rfc9438 {
    Rfc9438::new(&ROW.entry.defaults())
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn window(cwnd: u32) -> CongestionWindow {
    CongestionWindow { cwnd, ssthresh: 2, ..CongestionWindow::default() }
}

/// A congestion event with `flight` segments between the first unacknowledged one and the next.
fn reduce(law: &mut Rfc9438, window: &mut CongestionWindow, flight: u64) {
    let congestion = CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: 0,
        next_to_send: law.first_unacked + flight,
    };
    window.ssthresh = law.ssthresh_after(window, &congestion);
    window.cwnd = window.ssthresh;
}

/// An ACK of `acked` segments; `limited` by cwnd or by the application.
fn hear(law: &mut Rfc9438, window: &mut CongestionWindow, ms: u64, acked: u32, limited: bool) {
    let ack = AckSample {
        now: at_ms(ms),
        acked,
        srtt: Span::from_ms(RTT_MS),
        cwnd_limited: limited,
        ..ack(0)
    };
    law.on_ack(window, &ack);
    if limited {
        law.increase_cwnd(window, acked, &ack);
    }
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 5e-5 * expected.abs().max(1.0), "{found}, not {expected}");
}

#[test]
fn defaults_are_the_constants_of_the_text() {
    assert_eq!((law().beta, law().c), (0.7, 0.4));
    // 0.85 and 4 have to be asked for.
    assert_eq!((thousandths(870), thousandths(4096)), (0.85, 4.0));
}

/// RFC 9438 §4.2: K = cbrt(300 / 0.4) = 9.0856 s; W_cubic(0.1 s + RTT) = 0.4 (0.2 − 9.0856)³ + 1000
/// = 719.3775, and the ACK adds (719.3775 − 700.0008) / 700.0008 = 0.02768. The first one found
/// W_cubic(0) = 700 below W_est = 700 + 0.52941 / 700.
#[test]
fn an_ack_closes_its_share_of_the_gap_to_the_target() {
    let (mut law, mut window) = (law(), window(1000));
    reduce(&mut law, &mut window, 1000);
    hear(&mut law, &mut window, 5_000, 1, true);
    assert_eq!((window.cwnd, law.mode()), (700, "reno_friendly"));
    close(law.fraction.of(&window), 700.000_756);
    let stage = law.state.stage.unwrap();
    close(stage.k, 9.0856);
    close(law.w_cubic(0.0, stage.k), 700.0);
    close(law.w_cubic(stage.k, stage.k), 1000.0);
    // However much it acknowledges.
    hear(&mut law, &mut window, 5_100, 2, true);
    assert_eq!(law.mode(), "concave");
    close(law.w_cubic(0.2, stage.k), 719.3775);
    assert!((law.fraction.of(&window) - 700.000_756 - 0.027_68).abs() < 1e-5);
}

/// RFC 9438 §4.2: at most 1.5 cwnd, which is half a segment per ACK, and never less than cwnd.
#[test]
fn the_target_is_bounded() {
    let (mut law, mut window) = (law(), window(100));
    law.friendly = false;
    reduce(&mut law, &mut window, 100);
    hear(&mut law, &mut window, 0, 1, true);
    let before = law.fraction.of(&window);
    hear(&mut law, &mut window, 60_000, 1, true);
    close(law.fraction.of(&window), before + 0.5);
    assert_eq!(law.mode(), "concave", "cwnd counts, not the curve");
    window.cwnd = 200;
    hear(&mut law, &mut window, 60_100, 1, true);
    assert_eq!(law.mode(), "convex");
    // A cwnd above the curve stays.
    law.state.stage.as_mut().unwrap().t_epoch = at_ms(60_100);
    let above = law.fraction.of(&window);
    hear(&mut law, &mut window, 60_200, 1, true);
    assert_eq!(law.fraction.of(&window), above);
}

/// RFC 9438 §4.3: W_est grows by 3 · 0.3 / 1.7 = 0.52941 segments per cwnd until it has reached
/// cwnd_prior, then by one.
#[test]
fn the_reno_estimate_changes_its_slope_at_the_last_window() {
    let (mut law, mut window) = (law(), window(10));
    reduce(&mut law, &mut window, 10);
    assert_eq!((window.cwnd, law.state.cwnd_prior), (7, 10.0));
    hear(&mut law, &mut window, 0, 7, true);
    close(law.fraction.of(&window), 7.529_41);
    law.state.stage.as_mut().unwrap().w_est = 10.0;
    // Equation 4 divides by the cwnd of before: 7 / 7.52941.
    hear(&mut law, &mut window, 1, 7, true);
    close(law.fraction.of(&window), 10.929_69);
}

/// RFC 9438 §4.7: 800 (1 + 0.7) / 2 = 680; 1000 again is a new W_max.
#[test]
fn fast_convergence_gives_way_after_an_event_below_the_last() {
    let (mut law, mut window) = (law(), window(1000));
    reduce(&mut law, &mut window, 1000);
    for (cwnd, fast, w_max) in [(800, true, 680.0), (700, true, 700.0), (600, false, 600.0)] {
        law.fast_convergence = fast;
        window.cwnd = cwnd;
        reduce(&mut law, &mut window, cwnd.into());
        assert_eq!(law.state.w_max, Some(w_max));
        assert_eq!(window.cwnd, cwnd * 7 / 10);
    }
}

/// RFC 9438 §4.6: β_cubic · flight_size, not of cwnd, and at least 2; RFC 5681: without what limited
/// transmit sent.
#[test]
fn what_is_in_flight_is_reduced() {
    for (flight, ssthresh) in [(40, 28), (100, 70), (103, 70), (1, 2)] {
        let (mut law, mut window) = (law(), window(100));
        law.first_unacked = 5;
        reduce(&mut law, &mut window, flight);
        assert_eq!(window.ssthresh, ssthresh, "{flight} in flight");
        assert_eq!((law.state.w_max, law.state.cwnd_prior), (Some(100.0), 100.0));
    }
}

/// RFC 9438 §4.8: K = 0 and W_max = cwnd at the start of the stage; cwnd_prior is that of the
/// timeout, so W_est starts with the small slope.
#[test]
fn the_stage_after_a_timeout_starts_at_its_plateau() {
    let (mut law, mut window) = (law(), window(100));
    reduce(&mut law, &mut window, 100);
    law.on_recovery_state(&mut window, at_ms(1), RecoveryState::Loss);
    window.cwnd = 70;
    hear(&mut law, &mut window, 2_000, 1, true);
    let stage = law.state.stage.unwrap();
    assert_eq!((stage.k, law.state.w_max, law.state.cwnd_prior), (0.0, Some(70.0), 100.0));
    close(stage.w_est, 70.007_56);
}

/// RFC 9438 §4.10: slow start ended without a loss: the same, and cwnd_prior = cwnd, so that W_est
/// has the slope of 1 from the beginning.
#[test]
fn the_stage_after_a_lossless_slow_start_starts_at_its_plateau() {
    let (mut law, mut window) = (law(), window(100));
    hear(&mut law, &mut window, 2_000, 1, true);
    let stage = law.state.stage.unwrap();
    assert_eq!((stage.k, law.state.w_max, law.state.cwnd_prior), (0.0, Some(100.0), 100.0));
    close(stage.w_est, 100.01);
}

/// RFC 9438 §4.9.2: all variables come back, if cwnd is lower than cwnd_prior.
#[test]
fn a_spurious_reduction_is_undone() {
    let (mut law, mut window) = (law(), window(1000));
    reduce(&mut law, &mut window, 1000);
    hear(&mut law, &mut window, 1_000, 1, true);
    let before = law.state;
    reduce(&mut law, &mut window, 700);
    // 700.000756 (1 + 0.7) / 2.
    close(law.state.w_max.unwrap(), 595.000_643);
    close(law.state.cwnd_prior, 700.000_756);
    assert_eq!(law.cwnd_after_undo(&window, 700), 700);
    let after = law.state;
    assert_eq!((after.w_max, after.cwnd_prior), (before.w_max, before.cwnd_prior));
    let (now, then) = (after.stage.unwrap(), before.stage.unwrap());
    assert_eq!((now.t_epoch, now.k, now.w_est), (then.t_epoch, then.k, then.w_est));
    // The window has grown beyond since.
    reduce(&mut law, &mut window, 700);
    window.cwnd = 800;
    assert_eq!(law.cwnd_after_undo(&window, 700), 800);
    assert_eq!(law.state.cwnd_prior, 490.0);
}

/// RFC 9438 §4.2 and §5.8: neither idle time nor ACKs of a slow application's packets count.
#[test]
fn time_without_use_of_the_window_does_not_count() {
    let (mut law, mut window) = (law(), window(1000));
    reduce(&mut law, &mut window, 1000);
    hear(&mut law, &mut window, 1_000, 1, true);
    hear(&mut law, &mut window, 1_100, 1, true);
    assert_eq!(law.state.stage.unwrap().t_epoch, at_ms(1_000));
    hear(&mut law, &mut window, 1_600, 1, false);
    assert_eq!(law.state.stage.unwrap().t_epoch, at_ms(1_500));
    law.on_flight_start(&mut window, at_ms(4_600), Span::from_ms(3_000));
    assert_eq!(law.state.stage.unwrap().t_epoch, at_ms(4_500));
    hear(&mut law, &mut window, 4_700, 1, true);
    assert_eq!(law.state.stage.unwrap().t_epoch, at_ms(4_500));
    // Slow start ends the stage.
    window.ssthresh = 2_000;
    hear(&mut law, &mut window, 4_800, 1, false);
    assert!(law.state.stage.is_none());
}
