//! Copa's steps.

use alloc::collections::BTreeMap;

use jostle_registry::ParameterValue;

use super::*;
use crate::test_support::{ack, loss};

const RTT: Span = Span::from_ms(40);
/// A round that began then does not end in a test.
const FAR: Time = Time::from_ns(u64::MAX / 2);

fn copa(given: &[(&str, ParameterValue)]) -> Copa {
    let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    let mut copa = Copa::new(Parameters::new(&ROW.entry.resolve(&given).unwrap()));
    copa.on_established(&EstablishedEvent {
        now: Time::ZERO + RTT,
        mss_bytes: 1448,
        initial_window: 10,
        rtt: Some(RTT),
        prospect: Default::default(),
    });
    copa
}

/// Past slow start at `cwnd`; the path's RTT is 40 ms.
fn steering(cwnd: f64, given: &[(&str, ParameterValue)]) -> Copa {
    let mut copa = copa(given);
    copa.on_ack(&at(0, RTT, 1));
    copa.slow_start = false;
    copa.cwnd = cwnd;
    copa.cwnd_at_round_start = cwnd;
    copa
}

/// An ACK after `ms` milliseconds that measured `rtt`; of the round that is under way.
fn at(ms: u64, rtt: Span, delivered: u64) -> AckSample {
    AckSample { now: Time::ZERO + Span::from_ms(100 + ms), rtt: Some(rtt), ..ack(delivered) }
}

#[test]
fn a_packet_moves_the_window_by_v_over_delta_and_window() {
    let mut copa = steering(100.0, &[]);
    copa.velocity = 4.0;
    copa.direction = Direction::Up;
    copa.round_start = FAR;
    // No queue: no limit. 4/(0.5 · 100) per packet.
    copa.on_ack(&AckSample { acked: 3, ..at(1, RTT, 4) });
    assert!((copa.cwnd - 100.24).abs() < 1e-9, "{}", copa.cwnd);
    assert_eq!(copa.max_burst_packets(), Some(1));
    assert_eq!(copa.pacing_rate(), Some(Rate::from_bps((2.0 * 100.24 * 11584.0 / 0.04) as u64)));
}

/// dq of 1 ms makes the target 1/(0.5 · 1 ms) = 2000 packets per second, which is a window of 82
/// at 41 ms.
#[test]
fn the_target_is_the_inverse_of_the_queueing_delay() {
    for (cwnd, rises) in [(81.0, true), (83.0, false)] {
        let mut copa = steering(cwnd, &[]);
        copa.round_start = FAR;
        // Beyond srtt/2 the RTT without a queue is no longer the standing one.
        copa.on_ack(&at(30, Span::from_ms(41), 2));
        assert!((copa.target_pps() - 2000.0).abs() < 1e-6, "{}", copa.target_pps());
        assert_eq!(copa.cwnd > cwnd, rises, "{} from {cwnd}", copa.cwnd);
    }
}

#[test]
fn slow_start_doubles_until_the_target_is_exceeded() {
    let mut copa = copa(&[]);
    copa.round_start = FAR;
    for i in 0..10 {
        copa.on_ack(&at(i, RTT, i + 1));
    }
    assert_eq!((copa.cwnd(), copa.mode()), (20, "slow_start"));
    // 20 packets at 50 ms are 400 per second; 10 ms of queue allow 200.
    copa.on_ack(&at(60, Span::from_ms(50), 11));
    assert_eq!((copa.cwnd(), copa.mode()), (20, "default"));
}

/// A round trip's end with the window moving up or down, and no ACK that moves it further.
fn round(copa: &mut Copa, up: bool) -> f64 {
    copa.cwnd_at_round_start = copa.cwnd + if up { -1.0 } else { 1.0 };
    copa.end_round(Time::ZERO);
    copa.velocity
}

#[test]
fn the_velocity_doubles_with_the_second_round_in_a_direction_or_after_three() {
    for (steady, expected) in
        [(1, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]), (3, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0])]
    {
        let mut copa = steering(1000.0, &[("steady_rounds", ParameterValue::Integer(steady))]);
        let velocities: Vec<_> = (0..7).map(|_| round(&mut copa, true)).collect();
        assert_eq!(velocities, expected);
        assert_eq!((round(&mut copa, false), copa.held), (1.0, 1));
    }
}

/// Release: `update_amt` is halved where it exceeds window · delta. From 100 packets with v = 128 and
/// δ = 0.5, so to 64 (above 50), then to 32: an ACK of one packet adds 32/(0.5 · 100).
#[test]
fn a_round_moves_the_window_by_no_more_than_itself() {
    let mut copa = steering(100.0, &[]);
    copa.round_start = FAR;
    (copa.velocity, copa.direction) = (128.0, Direction::Up);
    copa.on_ack(&at(1, RTT, 4));
    assert!((copa.cwnd - 101.28).abs() < 1e-9, "{}", copa.cwnd);
    copa.on_ack(&at(2, RTT, 5));
    assert_eq!(copa.velocity, 32.0);
    for (cap, largest) in [(2.0, 64.0), (0.5, 16.0), (0.0, 1.0)] {
        let mut copa = steering(100.0, &[("velocity_cap", ParameterValue::Number(cap))]);
        copa.round_start = FAR;
        copa.velocity = 128.0;
        for i in 0..8 {
            copa.on_ack(&at(i, RTT, 4 + i));
        }
        assert_eq!(copa.velocity, largest, "cap {cap}");
    }
}

/// Release: max(10 s, 20 · RTTmin) is 12 s at 600 ms.
#[test]
fn the_minimum_lasts_for_ten_seconds_or_twenty_minimum_rtts() {
    for (path_ms, forgotten_s) in [(40, 10.0), (600, 12.0)] {
        let mut copa = steering(100.0, &[]);
        copa.rtts = Rtts::default();
        let mut ms = 0;
        while ms == 0 || copa.rtts.queueing() > Span::ZERO || ms < 5_000 {
            let rtt = Span::from_ms(if ms == 0 { path_ms } else { path_ms + 50 });
            copa.rtts.update(at(ms, rtt, 1).now, rtt, rtt, &copa.parameters);
            ms += 10;
        }
        assert!((ms as f64 / 1e3 - forgotten_s).abs() < 0.03, "{ms} ms at {path_ms} ms");
    }
}

/// Release (`ReduceOnLoss`): above 30 % of more than 20 packets over two round trips, 0.7 is left.
#[test]
fn very_many_losses_cut_the_window() {
    let cut = |given: &[(&str, ParameterValue)], lost: u64, of: u64| {
        let mut copa = steering(100.0, given);
        let before = copa.cwnd;
        copa.on_ack(&AckSample { total_lost: lost, ..at(82, RTT, 1 + of - lost) });
        copa.cwnd / before
    };
    assert!((cut(&[], 13, 40) - 0.7).abs() < 0.001, "32 %: {}", cut(&[], 13, 40));
    assert!(cut(&[], 12, 40) > 1.0, "30 %");
    assert!(cut(&[], 10, 20) > 1.0, "too few packets");
    assert!(cut(&[("loss_threshold", ParameterValue::Number(1.0))], 39, 40) > 1.0, "never");
    assert!((cut(&[("loss_factor", ParameterValue::Number(0.5))], 20, 40) - 0.5).abs() < 0.001);
}

#[test]
fn crossing_the_target_resets_the_velocity_if_told() {
    for reset in [true, false] {
        let mut copa = steering(200.0, &[("reset_at_crossing", ParameterValue::Bool(reset))]);
        copa.round_start = FAR;
        (copa.velocity, copa.direction) = (8.0, Direction::Up);
        copa.on_ack(&at(30, Span::from_ms(45), 2));
        assert_eq!(copa.velocity, if reset { 1.0 } else { 8.0 });
    }
}

#[test]
fn a_queue_that_never_empties_means_competition() {
    let mut copa = steering(100.0, &[]);
    copa.rounds = 10;
    let mut now = 0;
    for i in 0..60 {
        now += 10;
        copa.on_ack(&at(now, Span::from_ms(60 + i % 10), 2 + i));
    }
    assert_eq!(copa.mode(), "competitive");
    // One RTT sample within a tenth of the swing: back to the default, and to its δ.
    copa.inverse_delta = 30.0;
    copa.on_ack(&at(now + 10, Span::from_ms(42), 80));
    assert_eq!((copa.mode(), copa.inverse_delta), ("default", 2.0));
}

#[test]
fn competition_is_aimd_on_the_inverse_of_delta() {
    let mut copa = steering(100.0, &[("mode", ParameterValue::Text("competitive".into()))]);
    copa.inverse_delta = 2.0;
    for round in 0..10 {
        copa.end_round(Time::from_ns(round));
    }
    assert_eq!(copa.inverse_delta, 12.0);
    copa.on_congestion_event(&loss());
    copa.on_congestion_event(&loss());
    assert_eq!(copa.inverse_delta, 6.0, "once per round");
    copa.end_round(Time::ZERO);
    assert_eq!(copa.inverse_delta, 6.0);
    copa.end_round(Time::ZERO);
    copa.on_congestion_event(&loss());
    assert_eq!(copa.inverse_delta, 3.5);
    copa.on_undo(Time::ZERO);
    assert_eq!(copa.inverse_delta, 7.0);
    for round in 30..40 {
        copa.lost_in_round = false;
        copa.on_congestion_event(&loss());
        copa.end_round(Time::from_ns(round));
    }
    assert_eq!(copa.inverse_delta, 2.0, "δ never exceeds the default");
}

#[test]
fn the_default_mode_ignores_losses_and_a_timeout_starts_anew() {
    let mut copa = steering(100.0, &[]);
    copa.on_congestion_event(&loss());
    assert_eq!((copa.cwnd(), copa.inverse_delta), (100, 2.0));
    copa.on_congestion_event(&CongestionEvent { signal: CongestionSignal::Timeout, ..loss() });
    assert_eq!((copa.cwnd(), copa.mode()), (2, "slow_start"));
    copa.on_undo(Time::ZERO);
    assert_eq!((copa.cwnd(), copa.mode()), (100, "default"));
}
