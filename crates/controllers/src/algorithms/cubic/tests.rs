use super::*;
use jostle_congestion::CongestionSignal;

fn cubic() -> Cubic {
    Cubic::new(&ROW.entry.defaults())
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn lose(law: &mut Cubic, window: &mut CongestionWindow) {
    let congestion = CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: window.cwnd,
        next_to_send: 0,
    };
    window.ssthresh = law.ssthresh_after(window, &congestion);
    window.cwnd = window.ssthresh;
}

#[test]
fn fixed_point_constants_are_those_of_linux() {
    let law = cubic();
    assert_eq!((law.curve_scale, law.reno_scale), (410, 15));
    assert_eq!(law.cube_factor, 2_681_735_677);
}

#[test]
fn the_cubic_root_is_exact() {
    for root in [0u64, 1, 2, 10, 9_300, 100_000, 2_642_245] {
        assert_eq!(cubic_root(root.pow(3)), root);
        assert_eq!(cubic_root((root + 1).saturating_pow(3) - 1), root);
    }
    assert_eq!(cubic_root(u64::MAX), 2_642_245);
}

/// algorithms.md: after a loss at 1000, K = cbrt(300 / 0.4) = 9.09 s and W(K) = 1000 ± 1.
#[test]
fn the_plateau_is_the_old_maximum_after_k() {
    let mut law = cubic();
    let mut window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
    lose(&mut law, &mut window);
    assert_eq!(window.cwnd, 700);
    // One ACK per packet, 100 ms round trips: cwnd follows the curve.
    let (mut now_ns, mut at_k) = (0u64, 0);
    while now_ns < 9_080_000_000 {
        law.update(window.cwnd, 1, now_ns / 1_000_000);
        window.additive_increase(law.state.per_increase, 1);
        now_ns += 100_000_000 / u64::from(window.cwnd);
        at_k = window.cwnd;
    }
    let k_s = law.state.k as f64 / 1024.0;
    assert!((k_s - 9.08).abs() < 0.02, "K = {k_s} s");
    assert!((999..=1001).contains(&at_k), "W(K) = {at_k}");
}

#[test]
fn fast_convergence_aims_lower_after_a_loss_below_the_last() {
    let mut law = cubic();
    let mut window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
    lose(&mut law, &mut window);
    assert_eq!(law.state.w_max, 1000);
    window.cwnd = 800;
    lose(&mut law, &mut window);
    assert_eq!((law.state.w_max, window.cwnd), (680, 560));
    law.fast_convergence = false;
    window.cwnd = 600;
    lose(&mut law, &mut window);
    assert_eq!(law.state.w_max, 600);
}

#[test]
fn growth_is_computed_once_in_31_ms_while_cwnd_stands_still() {
    let mut law = cubic();
    law.state.w_max = 1000;
    law.update(700, 1, 5_000);
    let first = law.state.per_increase;
    law.update(700, 1, 5_031);
    assert_eq!(law.state.per_increase, first);
    law.update(700, 1, 5_500);
    assert_ne!(law.state.per_increase, first);
}

#[test]
fn idle_time_moves_the_epoch() {
    let mut law = cubic();
    let mut window = CongestionWindow::default();
    law.update(100, 1, 1_000);
    law.on_flight_start(&mut window, at_ms(9_000), Span::from_ms(5_000));
    assert_eq!(law.state.epoch_ms, Some(6_000));
    law.on_flight_start(&mut window, at_ms(9_500), Span::from_ms(9_500));
    assert_eq!(law.state.epoch_ms, Some(9_500), "never later than now");
}

#[test]
fn rtts_of_the_first_second_of_an_epoch_are_ignored() {
    let mut law = cubic();
    let mut window = CongestionWindow::default();
    let mut hear = |law: &mut Cubic, at: u64, rtt: u64| {
        let m = RawAckSample {
            now: at_ms(at),
            rtt: Some(Span::from_ms(rtt)),
            packets: 1,
            first_unacked: 1,
            next_to_send: 2,
            ..RawAckSample::default()
        };
        law.on_ack_before_loss_detection(&mut window, &m);
        law.state.delay_min_us
    };
    assert_eq!(hear(&mut law, 500, 80), Some(80_000));
    law.update(100, 1, 1_000);
    assert_eq!(hear(&mut law, 1_999, 40), Some(80_000));
    assert_eq!(hear(&mut law, 2_000, 40), Some(40_000));
}

#[test]
fn kernels_round_the_look_ahead_differently() {
    let mut law = cubic();
    law.state.delay_min_us = Some(40_100);
    assert_eq!(law.look_ahead_ms(), 41);
    law.kernel = LinuxRelease::V4_15;
    assert_eq!(law.look_ahead_ms(), 40);
}

#[test]
fn a_timeout_forgets_everything() {
    let mut law = cubic();
    let mut window = CongestionWindow { cwnd: 1000, ..CongestionWindow::default() };
    lose(&mut law, &mut window);
    law.on_recovery_state(&mut window, at_ms(1), RecoveryState::Loss);
    assert_eq!((law.state.w_max, law.state.epoch_ms), (0, None));
}
