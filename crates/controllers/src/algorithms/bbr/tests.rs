//! BBR's answers to single ACKs.

use jostle_registry::ParameterValue;
use jostle_units::{Span, Time};

use super::*;
use crate::test_support::ack;
use crate::test_support::bbr::{Rounds40, established};
use crate::test_support::controller_inputs;
use jostle_congestion::CongestionSignal;

fn bbr(seed: u64, given: &[(&str, ParameterValue)]) -> Bbr {
    established(Bbr::new(controller_inputs(&ROW, seed, given)))
}

/// A controller whose STARTUP found 160 packets a round and whose DRAIN is over.
fn in_probe_bw(seed: u64) -> (Bbr, Rounds40) {
    in_probe_bw_with(seed, &[])
}

fn in_probe_bw_with(seed: u64, given: &[(&str, ParameterValue)]) -> (Bbr, Rounds40) {
    let (mut bbr, mut path) = (bbr(seed, given), Rounds40::new());
    for packets in [10, 20, 40, 80, 160, 160, 160, 160] {
        bbr.on_ack(&path.round(packets));
    }
    assert_eq!(bbr.mode(), "probe_bw");
    (bbr, path)
}

#[test]
fn the_first_rate_is_the_initial_window_per_rtt_at_the_startup_gain() {
    let bbr = bbr(1, &[]);
    let exact = 0.99 * 2.887 * 10.0 * 1448.0 / 0.040;
    let rate = bbr.pacing_rate().unwrap().as_bytes_per_s() as f64;
    assert!((rate / exact - 1.0).abs() < 1e-3, "{rate} against {exact}");
}

#[test]
fn without_an_rtt_the_first_rate_assumes_a_millisecond_until_one_is_known() {
    let mut blind = bbr(1, &[]);
    blind.has_seen_rtt = false;
    blind.start_pacing(None);
    let guess = blind.pacing_bytes_per_s;
    assert!(guess > 39 * bbr(1, &[]).pacing_bytes_per_s);
    blind.on_ack(&AckSample { acked: 0, ..ack(0) });
    assert_eq!(blind.pacing_bytes_per_s, bbr(1, &[]).pacing_bytes_per_s);
}

#[test]
fn startup_doubles_and_leaves_after_three_rounds_without_growth() {
    let (mut bbr, mut path) = (bbr(1, &[]), Rounds40::new());
    for packets in [10, 20, 40, 80, 160, 160, 160] {
        bbr.on_ack(&AckSample { in_flight: 400, ..path.round(packets) });
        assert_eq!(bbr.mode(), "startup");
        assert_eq!(bbr.ssthresh(), None);
    }
    // What STARTUP queued is still in flight: DRAIN.
    bbr.on_ack(&AckSample { in_flight: 400, ..path.round(160) });
    assert_eq!(bbr.mode(), "drain");
    assert_eq!(bbr.pacing_gain, 88);
    // BDP 160, three bursts of 11 packets (0.99 · 2.89 · 5.8 MB/s for 1/1024 s), made even.
    assert_eq!(bbr.ssthresh(), Some(160 + 3 * 11 + 1));
    bbr.on_ack(&AckSample { in_flight: 160, ..path.round(160) });
    assert_eq!(bbr.mode(), "probe_bw");
    assert_eq!(bbr.cwnd_gain, 512);
}

#[test]
fn rounds_that_the_application_limits_do_not_end_startup() {
    let (mut bbr, mut path) = (bbr(1, &[]), Rounds40::new());
    for _ in 0..20 {
        bbr.on_ack(&AckSample { app_limited: true, ..path.round(10) });
    }
    assert_eq!(bbr.mode(), "startup");
}

#[test]
fn the_bandwidth_falls_when_its_maximum_is_ten_rounds_old() {
    let (mut bbr, mut path) = in_probe_bw(1);
    let full = bbr.max_bandwidth();
    for round in 1..=11 {
        bbr.on_ack(&path.round(80));
        let expected = if round <= 10 { full } else { full / 2 };
        assert_eq!(bbr.max_bandwidth(), expected, "after {round} rounds");
    }
}

#[test]
fn samples_that_the_application_limits_count_only_if_they_are_higher() {
    let (mut bbr, mut path) = in_probe_bw(1);
    let full = bbr.max_bandwidth();
    for _ in 0..30 {
        bbr.on_ack(&AckSample { app_limited: true, ..path.round(80) });
    }
    assert_eq!(bbr.max_bandwidth(), full);
    bbr.on_ack(&AckSample { app_limited: true, ..path.round(320) });
    assert_eq!(bbr.max_bandwidth() / 2, full);
}

#[test]
fn the_gain_cycle_never_starts_with_the_yielding_phase() {
    let mut seen = [0u32; 8];
    for seed in 0..700 {
        seen[in_probe_bw(seed).0.phase as usize] += 1;
    }
    assert_eq!(seen[1], 0);
    let others = [0, 2, 3, 4, 5, 6, 7].map(|phase: usize| seen[phase]);
    assert!(others.iter().all(|&n| (60..140).contains(&n)), "{seen:?}");
}

#[test]
fn the_window_is_two_bdps_and_three_bursts_and_even() {
    // One ACK per round would look like aggregation.
    let (mut bbr, mut path) =
        in_probe_bw_with(1, &[("ack_aggregation", ParameterValue::Bool(false))]);
    for _ in 0..20 {
        bbr.on_ack(&path.round(160));
        // 0.99 · 5.792 MB/s · gain for 1/1024 s: 3 packets at gains up to 1, 4 at 5/4.
        let burst = if bbr.phase == 0 { 4 } else { 3 };
        let wanted = (320 + 3 * burst + 1) & !1;
        let probe = if bbr.phase == 0 { 2 } else { 0 };
        assert_eq!(bbr.cwnd(), wanted + probe, "phase {}", bbr.phase);
    }
}

/// No window for aggregation, nor room for the probe.
#[test]
fn in_linux_4_15_the_window_is_the_same_in_every_phase() {
    let (mut bbr, mut path) =
        in_probe_bw_with(1, &[("linux", ParameterValue::Text("4.15".into()))]);
    let mut probes = 0;
    for _ in 0..20 {
        bbr.on_ack(&path.round(160));
        probes += u32::from(bbr.phase == 0);
        let burst = if bbr.phase == 0 { 4 } else { 3 };
        assert_eq!(bbr.cwnd(), (320 + 3 * burst + 1) & !1, "phase {}", bbr.phase);
    }
    assert!(probes > 0);
}

/// Ten seconds of the same RTT end in PROBE_RTT in 6.1, where only a lower one is new.
#[test]
fn in_linux_4_15_the_same_rtt_confirms_the_minimum() {
    for (linux, probes) in [("4.15", false), ("6.1", true)] {
        let (mut bbr, mut path) =
            in_probe_bw_with(1, &[("linux", ParameterValue::Text(linux.into()))]);
        let mut seen = false;
        while path.now < Time::ZERO + Span::from_secs(15) {
            bbr.on_ack(&path.round(160));
            seen |= bbr.mode() == "probe_rtt";
        }
        assert_eq!(seen, probes, "{linux}");
    }
}

/// The next departure is 10 ms away. Until then 39 whole packets of 4 per ms, rounded down, arrive.
#[test]
fn what_pacing_holds_back_counts_in_linux_4_15_only() {
    for (linux, counted) in [("4.15", 160), ("6.1", 121)] {
        let (mut bbr, mut path) =
            in_probe_bw_with(1, &[("linux", ParameterValue::Text(linux.into()))]);
        bbr.pacing_gain = model::GAIN_UNIT;
        let ack = path.round(160);
        let later = AckSample { next_departure: ack.now + Span::from_ms(10), ..ack };
        let packets = bbr.packets_in_network_at_departure(&later, 160);
        assert_eq!(packets, counted, "{linux}");
    }
}

#[test]
fn slow_paths_send_single_packets() {
    let mut bbr = bbr(1, &[]);
    assert_eq!(bbr.min_burst_packets(), Some(2));
    bbr.pacing_bytes_per_s = 149_999;
    assert_eq!((bbr.min_burst_packets(), bbr.burst_goal()), (Some(1), 1));
    assert_eq!(bbr.with_quantum(10), 14, "10 + 3 rounded up to even");
    bbr.pacing_bytes_per_s = 1 << 30;
    assert_eq!(bbr.burst_goal(), 45, "64 KiB less the headers");
}

#[test]
fn probe_rtt_holds_four_packets_for_200_ms_and_a_round() {
    let (mut bbr, mut path) = in_probe_bw(1);
    let before = bbr.cwnd();
    // No RTT as low as the minimum confirms it for ten seconds.
    while bbr.mode() == "probe_bw" {
        let rtt = Some(Span::from_ms(41));
        bbr.on_ack(&AckSample { rtt, in_flight: 200, ..path.round(160) });
        assert!(path.now < Time::ZERO + Span::from_secs(11));
    }
    assert!(path.now > Time::ZERO + Span::from_secs(10));
    assert_eq!((bbr.mode(), bbr.cwnd()), ("probe_rtt", 4));
    assert!(bbr.limits_flight_on_purpose());
    let entered = path.now;
    let mut drained = None;
    while bbr.mode() == "probe_rtt" {
        bbr.on_ack(&AckSample { in_flight: 4, app_limited: true, ..path.round(4) });
        drained = drained.or(Some(path.now));
    }
    let held = path.now.since(drained.unwrap());
    assert!(held > Span::from_ms(200) && held <= Span::from_ms(240), "{held}");
    assert!(path.now.since(entered) < Span::from_ms(300));
    assert!(bbr.cwnd() >= before - 8, "{} after {before}", bbr.cwnd());
    assert_eq!(bbr.min_rtt_us, Some(40_000));
    bbr.on_ack(&path.round(160));
    assert!(!bbr.limits_flight_on_purpose());
}

#[test]
fn recovery_conserves_packets_for_a_round_and_then_restores_the_window() {
    let (mut bbr, mut path) = in_probe_bw(1);
    for _ in 0..3 {
        bbr.on_ack(&path.round(160));
    }
    let before = bbr.cwnd();
    bbr.on_congestion_event(&CongestionEvent {
        now: path.now,
        signal: CongestionSignal::Loss,
        in_flight: 150,
        next_to_send: 0,
    });
    // The ACK that starts recovery does not start a round.
    let entry = AckSample {
        acked: 2,
        lost: 3,
        total_lost: 3,
        in_flight: 150,
        prior_delivered: 0,
        state: RecoveryState::Recovery,
        ..path.round(2)
    };
    bbr.on_ack(&entry);
    assert_eq!(bbr.cwnd(), 152, "in flight + acknowledged");
    let within =
        AckSample { in_flight: 148, prior_delivered: 0, delivered: entry.delivered + 2, ..entry };
    bbr.on_ack(&AckSample { lost: 0, ..within });
    assert_eq!(bbr.cwnd(), 152, "conserved");
    let next_round = AckSample {
        lost: 0,
        delivered: entry.delivered + 4,
        prior_delivered: entry.delivered,
        ..within
    };
    bbr.on_ack(&next_round);
    assert_eq!(bbr.cwnd(), 154, "slow start towards the target");
    bbr.on_ack(&AckSample { state: RecoveryState::Open, ..next_round });
    assert!(bbr.cwnd() + 4 >= before, "{} after {before}", bbr.cwnd());
}

#[test]
fn a_timeout_keeps_the_full_pipe_and_the_window_returns() {
    let (mut bbr, mut path) = in_probe_bw(1);
    for _ in 0..3 {
        bbr.on_ack(&path.round(160));
    }
    let before = bbr.cwnd();
    let signal = CongestionSignal::Timeout;
    bbr.on_congestion_event(&CongestionEvent {
        now: path.now,
        signal,
        in_flight: 0,
        next_to_send: 0,
    });
    bbr.set_cwnd(1);
    bbr.on_recovery_state(path.now, RecoveryState::Loss);
    assert!(bbr.full_pipe.reached);
    let lossy = AckSample { state: RecoveryState::Loss, ..path.round(1) };
    bbr.on_ack(&AckSample { total_lost: 160, ..lossy });
    assert_eq!(bbr.cwnd(), 4);
    assert_eq!(bbr.mode(), "probe_bw");
    bbr.on_ack(&AckSample { total_lost: 160, ..path.round(1) });
    assert!(bbr.cwnd() + 8 >= before, "{} after {before}", bbr.cwnd());
}

#[test]
fn undo_forgets_the_policer_and_the_growth() {
    let (mut bbr, path) = in_probe_bw(1);
    bbr.on_recovery_state(path.now, RecoveryState::Loss);
    bbr.on_undo(path.now);
    assert!(!bbr.timed_out && bbr.long_term.bandwidth().is_none());
}

#[test]
fn a_restart_from_idle_paces_at_the_bandwidth() {
    let (mut bbr, mut path) = in_probe_bw(1);
    while bbr.phase != 0 {
        bbr.on_ack(&path.round(160));
    }
    let probing = bbr.pacing_rate().unwrap().as_bps();
    bbr.on_send(&SendEvent {
        now: path.now + Span::from_secs(1),
        packets: 2,
        total_sent: 0,
        next_to_send: 0,
        prior_in_flight: 0,
        after_idle: true,
    });
    let ratio = probing as f64 / bbr.pacing_rate().unwrap().as_bps() as f64;
    assert!((ratio - 1.25).abs() < 0.01, "{ratio}");
    // Idle time counts as a chance to have seen the minimum RTT: no PROBE_RTT at once.
    let late = AckSample { now: path.now + Span::from_secs(20), ..path.round(160) };
    bbr.on_ack(&AckSample { rtt: Some(Span::from_ms(41)), ..late });
    assert_eq!(bbr.mode(), "probe_bw");
}

#[test]
fn packets_that_wait_for_pacing_are_not_in_the_network() {
    let (mut bbr, mut path) = (bbr(1, &[]), Rounds40::new());
    for packets in [10, 20, 40, 80, 160, 160, 160] {
        bbr.on_ack(&AckSample { in_flight: 400, ..path.round(packets) });
    }
    // 400 in flight, but by the time the next one may leave, 240 of them are delivered.
    let last = path.round(160);
    let next_departure = last.now + Span::from_ms(60);
    bbr.on_ack(&AckSample { in_flight: 400, next_departure, ..last });
    assert_eq!(bbr.mode(), "probe_bw");
}
