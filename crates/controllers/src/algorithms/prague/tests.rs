use jostle_registry::ParameterValue;
use jostle_units::Span;

use super::*;
use crate::test_support::ack;
use jostle_congestion::CongestionSignal;

const RTT: Span = Span::from_ms(40);

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Prague in congestion avoidance with so many packets in its window.
fn prague(window: u32, given: &[(&str, i64)], rtt: Span) -> Prague {
    let given: Vec<_> =
        given.iter().map(|&(name, value)| (name, ParameterValue::Integer(value))).collect();
    prague_with(window, &given, rtt)
}

fn prague_with(window: u32, given: &[(&str, ParameterValue)], rtt: Span) -> Prague {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut prague = Prague::new(&ROW.entry.resolve(&given.collect()).unwrap());
    prague.on_ecn_negotiated(EcnFeedback::AccEcn);
    let established = EstablishedEvent {
        now: at_ms(0),
        mss_bytes: 1448,
        initial_window: window,
        rtt: Some(rtt),
        prospect: Default::default(),
    };
    prague.on_established(&established);
    prague.scalable.leave_slow_start();
    prague
}

/// An ACK of one packet of a round of `window` packets, `marked` or not.
fn one(number: u64, window: u64, marked: bool, rtt: Span) -> AckSample {
    AckSample {
        now: at_ms(0) + rtt.mul_div(number, window),
        srtt: rtt,
        min_rtt: rtt,
        in_flight: window as u32,
        next_to_send: number + window,
        ce_marked: u32::from(marked),
        ..ack(number)
    }
}

fn shown(prague: &Prague, wanted: &str) -> f64 {
    struct Find<'a>(&'a str, f64);
    impl StateObserver for Find<'_> {
        fn record_value(&mut self, name: &'static str, value: f64) {
            if name == self.0 {
                self.1 = value;
            }
        }
    }
    let mut find = Find(wanted, f64::NAN);
    prague.observe(&mut find);
    find.1
}

/// α moves by a 16th of its distance to the share of marks, from the first mark on.
#[test]
fn alpha_waits_for_the_first_mark_and_then_follows_the_share() {
    let mut prague = prague(10, &[], RTT);
    for number in 1..=100 {
        prague.on_ack(&one(number, 10, false, RTT));
    }
    assert_eq!(shown(&prague, "alpha"), 1.0, "no proof of a marking queue yet");
    let mut expected = 1.0;
    let mut before = 1.0;
    let mut rounds = 0;
    for number in 101..=2_000 {
        prague.on_ack(&one(number, 10, number % 10 == 5, RTT));
        let alpha = shown(&prague, "alpha");
        if alpha != before {
            expected += (0.1 - expected) / 16.0;
            // The first of these rounds began before its mark was due.
            assert!((alpha - expected).abs() < 0.01, "{alpha} instead of {expected}");
            before = alpha;
            rounds += 1;
        }
    }
    assert!(rounds > 150, "{rounds}");
    assert!((before - 0.1).abs() < 0.001, "{before}");
}

/// 1/W per packet that was not marked: a packet per round, and nothing for those that were.
#[test]
fn unmarked_packets_add_a_packet_per_round() {
    for (marks, grown) in [(0, 1.0), (2, 0.5), (1, 0.0)] {
        let mut prague = prague(100, &[], RTT);
        for number in 1..=1_000 {
            prague.on_ack(&one(number, 100, marks > 0 && number % marks == 0, RTT));
        }
        let window = shown(&prague, "window_packets");
        // Ten rounds of 100, while the window grows from 100 to 110.
        assert!((window - 100.0 - 9.6 * grown).abs() < 0.2, "{window} with marks {marks}");
    }
}

/// `prague_update_cwnd`: the increase is 1500 bytes per round, a sixth of a packet of 9000 bytes.
#[test]
fn the_increase_is_that_of_packets_of_1500_bytes() {
    for (mss_bytes, packets) in [(1_448, 1.0), (8_948, 1.0 / 6.0), (524, 1500.0 / 576.0)] {
        let mut prague = prague(100, &[], RTT);
        prague.on_mss_change(mss_bytes);
        for number in 1..=100 {
            prague.on_ack(&one(number, 100, false, RTT));
        }
        let grown = shown(&prague, "window_packets") - 100.0;
        assert!((grown / packets - 1.0).abs() < 0.02, "{grown} with {mss_bytes} bytes");
    }
}

/// `prague_rate_scaled_ai_ack_increase`: at 5 ms instead of 25 ms a 25th, after the transition.
#[test]
fn short_paths_grow_by_the_square_of_the_ratio() {
    let rtt = Span::from_ms(5);
    let grown = |transition| {
        let mut prague = prague(100, &[("prague_rtt_transition", transition)], rtt);
        for number in 1..=2_000 {
            prague.on_ack(&one(number, 100, false, rtt));
        }
        shown(&prague, "window_packets") - 100.0
    };
    assert!((grown(500) - 18.3).abs() < 0.2, "{}", grown(500));
    assert!((grown(0) - 20.0 / 25.0).abs() < 0.05, "{}", grown(0));
}

/// The modes of 0.6: packets that a round trip of unmarked packets adds, and the least time between
/// two reductions. R0 = 16.384 ms and R1 = 1.536 ms are those of `prague_scalable_ai_ack_increase`.
#[test]
fn rtt_modes_scale_growth_and_keep_their_distance() {
    for (mode, rtt_ms, grown, distance_ms) in [
        ("none", 5, 1.0, 0),
        ("none", 100, 1.0, 0),
        // (5/25)² below the target, and nothing from there on.
        ("rate", 5, 0.04, 25),
        ("rate", 25, 1.0, 25),
        // (R0/8 + min(RTT - R1, R0)) RTT / R0².
        ("scalable", 5, 0.1027, 25),
        ("scalable", 25, 1.7166, 25),
        ("scalable", 100, 6.8665, 25),
        // (RTT / (RTT + 25 ms))².
        ("additive", 5, 0.02778, 30),
        ("additive", 25, 0.25, 50),
        ("additive", 100, 0.64, 125),
    ] {
        let rtt = Span::from_ms(rtt_ms);
        let given = [
            ("prague_rtt_scaling", ParameterValue::Text(mode.into())),
            ("prague_rtt_transition", ParameterValue::Integer(0)),
        ];
        let window = 1_000;
        let mut prague = prague_with(window, &given, rtt);
        // The scaling begins with the first round.
        prague.on_ack(&one(1, u64::from(window), false, rtt));
        let before = shown(&prague, "window_packets");
        for number in 2..=1_001 {
            prague.on_ack(&one(number, u64::from(window), false, rtt));
        }
        let added = shown(&prague, "window_packets") - before;
        assert!((added / grown - 1.0).abs() < 0.01, "{mode} at {rtt_ms} ms: {added}");

        let mut reductions = Vec::new();
        for ms in 1_000..1_300 {
            let before = shown(&prague, "window_packets");
            prague.on_recovery_state(at_ms(ms), RecoveryState::Cwr);
            prague.on_recovery_state(at_ms(ms), RecoveryState::Open);
            if shown(&prague, "window_packets") < before {
                reductions.push(ms);
            }
        }
        assert_eq!(reductions[1] - reductions[0], distance_ms.max(1), "{mode} at {rtt_ms} ms");
    }
}

/// 0.7, `prague_ai_ack_increase`: beyond 100 ms the increase is a packet, whatever the target.
#[test]
fn beyond_100_ms_a_rate_is_not_scaled() {
    for (rtt_ms, grown) in [(100, 0.04), (101, 1.0)] {
        let rtt = Span::from_ms(rtt_ms);
        let given = [("prague_rtt_target", 500_000_000), ("prague_rtt_transition", 0)];
        let mut prague = prague(1_000, &given, rtt);
        prague.on_ack(&one(1, 1_000, false, rtt));
        let before = shown(&prague, "window_packets");
        for number in 2..=1_001 {
            prague.on_ack(&one(number, 1_000, false, rtt));
        }
        let added = shown(&prague, "window_packets") - before;
        assert!((added / grown - 1.0).abs() < 0.01, "{rtt_ms} ms: {added}");
    }
}

#[test]
fn a_mark_takes_half_of_alpha_and_cwnd_follows_by_a_packet_per_ack() {
    let mut prague = prague(100, &[], RTT);
    prague.on_recovery_state(at_ms(0), RecoveryState::Cwr);
    assert_eq!(shown(&prague, "window_packets"), 50.0, "α is 1 at first");
    assert_eq!(prague.cwnd(), 100);
    for number in 1..=60 {
        prague.on_ack(&one(number, 100, true, RTT));
        assert_eq!(prague.cwnd(), 100 - number.min(50) as u32);
    }
    assert_eq!(prague.ssthresh(), Some(50));
}

#[test]
fn without_an_initial_alpha_the_first_mark_halves() {
    let mut prague = prague(100, &[("prague_alpha_mode", 0)], RTT);
    prague.on_recovery_state(at_ms(0), RecoveryState::Cwr);
    assert_eq!(shown(&prague, "window_packets"), 100.0, "α is 0");
    prague.on_ack(&one(1, 100, true, RTT));
    assert_eq!(shown(&prague, "window_packets"), 50.0);
    prague.on_ack(&one(2, 100, true, RTT));
    assert_eq!(shown(&prague, "window_packets"), 50.0, "only the first");
}

/// `prague_enter_cwr`: at most one reduction per 25 ms once it is independent of the RTT.
#[test]
fn reductions_keep_the_distance_of_the_target_rtt() {
    for (transition, reductions) in [(500, 5), (0, 2)] {
        let mut prague = prague(1_000, &[("prague_rtt_transition", transition)], RTT);
        let mut windows = vec![1_000.0];
        for ms in [0, 5, 10, 24, 25] {
            prague.on_recovery_state(at_ms(100 + ms), RecoveryState::Cwr);
            prague.on_recovery_state(at_ms(100 + ms), RecoveryState::Open);
            windows.push(shown(&prague, "window_packets"));
        }
        windows.dedup();
        assert_eq!(windows.len() - 1, reductions, "{windows:?}");
    }
}

#[test]
fn a_loss_halves_and_nothing_grows_before_recovery_ends() {
    let mut prague = prague(100, &[], RTT);
    prague.on_recovery_state(at_ms(0), RecoveryState::Recovery);
    for number in 1..=200 {
        prague.on_ack(&one(number, 100, false, RTT));
    }
    assert_eq!((prague.cwnd(), shown(&prague, "window_packets")), (50, 50.0));
    prague.on_undo(at_ms(10));
    assert_eq!(prague.cwnd(), 100);
    prague.on_recovery_state(at_ms(10), RecoveryState::Open);
    let timeout = CongestionEvent {
        now: at_ms(20),
        signal: CongestionSignal::Timeout,
        in_flight: 0,
        next_to_send: 300,
    };
    prague.on_congestion_event(&timeout);
    prague.on_recovery_state(at_ms(20), RecoveryState::Loss);
    assert_eq!(shown(&prague, "window_packets"), 50.0);
}

/// A window of 100 · 1500 bytes per 40 ms is 30 Mbit/s; ± 3 %, and twice that in early slow start.
#[test]
fn it_paces_at_its_window_per_rtt() {
    let rate = |prague: &Prague| prague.pacing_rate().unwrap().as_bps() as f64 / 30e6;
    let mut prague = prague(100, &[], RTT);
    prague.scalable.saw_mark();
    let mut rates = Vec::new();
    for number in 1..=400 {
        prague.on_ack(&AckSample { cwnd_limited: false, ..one(number, 100, false, RTT) });
        rates.push(rate(&prague));
    }
    let above = rates.iter().filter(|rate| (**rate - 1.0 - 4.0 / 128.0).abs() < 0.002).count();
    let below = rates.iter().filter(|rate| (**rate - 1.0 + 4.0 / 128.0).abs() < 0.002).count();
    assert_eq!(above + below, 400, "{rates:?}");
    assert!((150..=250).contains(&above), "{above}");
    // 31 Mbit/s in bursts of ¼ ms: less than a packet.
    assert_eq!(prague.max_burst_packets(), Some(1));

    let mut fast = Prague::new(&ROW.entry.resolve(&Default::default()).unwrap());
    let established = EstablishedEvent {
        now: at_ms(0),
        mss_bytes: 1448,
        initial_window: 100,
        rtt: Some(RTT),
        prospect: Default::default(),
    };
    fast.on_established(&established);
    assert!((rate(&fast) - 2.0).abs() < 0.01, "{}", rate(&fast));
}

#[test]
fn bursts_last_a_quarter_of_a_millisecond() {
    // 10,000 · 1500 bytes per 10 ms: 1 packet per µs, 244 in 2⁻¹² s.
    let prague = prague(10_000, &[("prague_rate_offset", 0)], Span::from_ms(10));
    assert_eq!(prague.max_burst_packets(), Some(244));
}

#[test]
fn without_ecn_it_is_reno() {
    let mut prague = Prague::new(&ROW.entry.resolve(&Default::default()).unwrap());
    assert_eq!(prague.recovery_owner(), CwndReductionBy::Controller);
    prague.on_ecn_negotiated(EcnFeedback::None);
    assert_eq!(prague.recovery_owner(), CwndReductionBy::Transport);
    assert_eq!((prague.pacing_rate(), prague.max_burst_packets()), (None, None));
    prague.set_cwnd(100);
    let loss = CongestionEvent {
        now: at_ms(0),
        signal: CongestionSignal::Loss,
        in_flight: 100,
        next_to_send: 0,
    };
    prague.on_congestion_event(&loss);
    assert_eq!(prague.ssthresh(), Some(50));
}

/// RFC 9002 §7.8.
#[test]
fn a_window_that_pacing_leaves_unused_grows() {
    for pacing_limited in [true, false] {
        let mut prague = prague(3, &[], RTT);
        for number in 1..=30 {
            let sample = AckSample { cwnd_limited: false, ..one(number, 3, false, RTT) };
            prague.on_ack(&AckSample { pacing_limited, ..sample });
        }
        assert_eq!(shown(&prague, "window_packets") > 3.1, pacing_limited);
    }
}
