//! `flavour = "google"`: the release's constants, and where it parts from the draft.

use super::*;

fn google(given: &[(&'static str, ParameterValue)]) -> Vec<(&'static str, ParameterValue)> {
    let mut all = vec![("flavour", ParameterValue::Text("google".to_owned()))];
    all.extend(given.iter().cloned());
    all
}

/// Both flavours with the same parameters, after the same rounds.
fn both() -> [(bool, Bbr3, Rounds40); 2] {
    [false, true].map(|release| {
        let given = if release { google(&[]) } else { vec![] };
        let (bbr, path) = cruising(&given);
        (release, bbr, path)
    })
}

/// `bbr_drain_gain`, `bbr_pacing_gain`, `bbr_loss_thresh`, `bbr_beta`, `bbr_inflight_headroom`, in
/// units of 1/256 as C's integers have them.
#[test]
fn constants_are_those_of_the_release() {
    let mut bbr = bbr3(1, &google(&[]));
    let expected = [
        (State::Startup, 256 * 277 / 100 + 1, 512),
        (State::Drain, 256 * 1000 / 2885, 512),
        (State::Down, 256 * 91 / 100, 512),
        (State::Cruise, 256, 512),
        (State::Refill, 256, 512),
        (State::Up, 320, 576),
    ];
    for (state, pacing, cwnd) in expected {
        bbr.state = state;
        assert_eq!((bbr.pacing_gain(), bbr.cwnd_gain()), (pacing, cwnd), "{}", state.name());
    }
    let p = bbr.parameters;
    assert_eq!((p.loss_thresh * 256.0, p.headroom * 256.0), (5.0, 38.0));
    assert_eq!(p.beta * 256.0, 180.0);
    assert_eq!(p.probe_rtt_cwnd_gain, 128);
    // What is given stays, the draft's own numbers too.
    for (drain, down, gains) in [(0.75, 0.8, (192, 204)), (0.5, 0.9, (128, 230))] {
        let [drain, down] = [drain, down].map(ParameterValue::Number);
        let given = google(&[("drain_pacing_gain", drain), ("down_pacing_gain", down)]);
        let p = bbr3(1, &given).parameters;
        assert_eq!((p.drain_pacing_gain, p.down_pacing_gain), gains);
    }
}

/// `bbr_packets_in_net_at_edt` and no end after three rounds.
#[test]
fn drain_lasts_until_the_queue_is_gone() {
    for (release, after) in [(false, "probe_bw_down"), (true, "drain")] {
        let given = if release { google(&[]) } else { vec![] };
        let (mut bbr, mut path) = (bbr3(1, &given), Rounds40::new());
        for packets in [10, 20, 40, 80, BDP, BDP, BDP, BDP, BDP, BDP, BDP, BDP] {
            bbr.on_ack(&AckSample { in_flight: 400, ..path.round(packets) });
        }
        assert_eq!(bbr.mode(), after);
    }
    let (mut bbr, mut path) = (bbr3(1, &google(&[])), Rounds40::new());
    for packets in [10, 20, 40, 80, BDP, BDP, BDP, BDP] {
        bbr.on_ack(&AckSample { in_flight: 400, ..path.round(packets) });
    }
    assert_eq!(bbr.mode(), "drain");
    // 200 in flight are 160 and less by the time that the next burst may leave.
    let ack = path.round(BDP);
    let next_departure = ack.now + Span::from_ms(11);
    bbr.on_ack(&AckSample { in_flight: 200, prior_in_flight: 200, next_departure, ..ack });
    assert_eq!(bbr.mode(), "probe_bw_cruise");
}

/// `loss_events_in_round`: ACKs that report losses, six of them in a round of recovery, however many
/// gaps there are.
#[test]
fn startup_counts_acks_that_report_losses() {
    for (reports, mode) in [(5, "startup"), (6, "drain")] {
        let (mut bbr, mut path) = (bbr3(1, &google(&[])), Rounds40::new());
        for packets in [10, 20, 40, 80] {
            bbr.on_ack(&path.round(packets));
        }
        let recovery = RecoveryState::Recovery;
        for nth in 1..reports {
            // Within the round, and all of them side by side: one gap for the draft.
            bbr.on_packet_lost(&path.lost(nth, nth as u32, 320));
            let ack = AckSample { prior_delivered: 0, lost: 1, state: recovery, ..path.round(1) };
            bbr.on_ack(&ack);
        }
        bbr.on_packet_lost(&path.lost(reports, reports as u32, 320));
        bbr.on_ack(&AckSample { state: recovery, in_flight: 400, lost: 1, ..path.lossy(BDP, 16) });
        assert_eq!(bbr.mode(), mode, "{reports} reports");
    }
}

/// `bbr_inflight_hi_from_lost_skb`: the budget of 5/256 of 199 is rounded up to 4 packets, of which
/// 3 are spent: ⌊1 · 256/251⌋ of them on top of 199. A flight of 2 % is too high already.
#[test]
fn the_flight_at_a_loss_is_rounded_up() {
    let (mut bbr, mut path) = cruising(&google(&[]));
    until("probe_bw_up", &mut bbr, &mut path);
    for nth in 1..=3 {
        bbr.on_packet_lost(&path.lost(u64::from(nth), nth, 200));
        assert_eq!(bbr.mode(), "probe_bw_up");
    }
    bbr.on_packet_lost(&path.lost(4, 4, 200));
    assert_eq!((bbr.mode(), bbr.bounds.inflight_long), ("probe_bw_down", 200));
    assert_eq!(bbr.release_inflight_at_loss(&path.lost(9, 150, 200)), 199, "never less");
}

/// `bbr_adapt_upper_bounds`: "sample is from bw probing?", of any ACK; the draft waits for a packet
/// that is marked lost.
#[test]
fn acks_of_a_probe_are_judged_by_its_losses() {
    for (release, mut bbr, mut path) in both() {
        until("probe_bw_up", &mut bbr, &mut path);
        bbr.on_ack(&AckSample { lost: 0, ..path.lossy(190, 10) });
        let expected = if release { ("probe_bw_down", 200) } else { ("probe_bw_up", UNBOUNDED) };
        assert_eq!((bbr.mode(), bbr.bounds.inflight_long), expected);
    }
}

/// `bbr_check_full_bw_reached` looks at every sample, for growth.
#[test]
fn growth_counts_at_any_ack() {
    for (release, mode) in [(false, "drain"), (true, "startup")] {
        let given = if release { google(&[]) } else { vec![] };
        let (mut bbr, mut path) = (bbr3(1, &given), Rounds40::new());
        for packets in [10, 20, 40, 80, BDP, BDP, BDP] {
            bbr.on_ack(&AckSample { in_flight: 400, ..path.round(packets) });
        }
        // In the middle of a round: a quarter more.
        bbr.on_ack(&AckSample { in_flight: 400, prior_delivered: 0, ..path.round(BDP * 5 / 4) });
        bbr.on_ack(&AckSample { in_flight: 400, ..path.round(BDP) });
        assert_eq!(bbr.mode(), mode);
    }
}

/// `bbr_update_min_rtt` asks an ACK for more than a sample once the minimum has expired.
#[test]
fn a_delayed_ack_does_not_replace_an_expired_minimum() {
    for (release, mut bbr, mut path) in both() {
        path.now += Span::from_secs(6);
        let late = Some(Span::from_ms(80));
        bbr.on_ack(&AckSample { rtt: late, ack_delayed: true, ..path.round(BDP) });
        let recent = if release { 40_000 } else { 80_000 };
        assert_eq!(bbr.min_rtt.recent_us, Some(recent));
        assert_eq!(bbr.mode(), "probe_rtt");
    }
}

/// `bbr_set_cwnd` looks at cwnd, where the draft looks at what was delivered.
#[test]
fn startup_lets_cwnd_grow_to_two_initial_windows() {
    for (release, cwnd) in [(false, 14), (true, 20)] {
        let given = if release { google(&[]) } else { vec![] };
        let (mut bbr, mut path) = (bbr3(1, &given), Rounds40::new());
        // One packet in 40 ms: a BDP of one, and a target of three bursts of two.
        for _ in 0..20 {
            bbr.on_ack(&path.round(1));
            bbr.plateau.restart(0);
            bbr.full_pipe = false;
        }
        let floor = if release { cwnd } else { 10 + 9 };
        assert_eq!(bbr.cwnd(), floor, "{cwnd}");
    }
}

/// 64 KiB / 2^(min_rtt / 512 µs) on top of a millisecond of the rate; "the RTT-based allowance is
/// below 1500 bytes after 6 * ~500 usec = 3ms".
#[test]
fn short_paths_have_larger_bursts() {
    let mut bbr = bbr3(1, &google(&[]));
    bbr.pacing_bytes_per_s = 1024 * 1448 * 3;
    for (min_rtt_us, packets) in [(0, 45), (600, 25), (3_072, 3), (40_000, 3)] {
        bbr.min_rtt.us = Some(min_rtt_us);
        assert_eq!(bbr.burst_goal(), packets, "{min_rtt_us} us");
    }
    bbr.pacing_bytes_per_s = 1;
    assert_eq!(bbr.burst_goal(), 2);
}

/// The first pacing rate has the margin, too (`bbr_init_pacing_rate_from_rtt`).
#[test]
fn the_first_rate_has_a_margin() {
    let rate =
        |given: &[(&str, ParameterValue)]| bbr3(1, given).pacing_rate().unwrap().as_bps() as f64;
    let ratio = rate(&google(&[])) / rate(&[]);
    assert!((ratio - 0.99).abs() < 1e-3, "{ratio}");
}

/// `bbr_exit_loss_recovery` after a timeout only; the draft restores cwnd "by repairing all losses
/// or undoing recovery".
#[test]
fn only_a_timeout_gives_the_window_back() {
    for (release, mut bbr, path) in both() {
        let before = bbr.cwnd();
        signal(&mut bbr, &path, CongestionSignal::Loss);
        bbr.set_cwnd(50);
        bbr.on_recovery_state(path.now, RecoveryState::Open);
        assert_eq!(bbr.cwnd(), if release { 50 } else { before });
        signal(&mut bbr, &path, CongestionSignal::Timeout);
        bbr.set_cwnd(1);
        bbr.on_recovery_state(path.now, RecoveryState::Open);
        assert_eq!(bbr.cwnd(), if release { 50 } else { before });
    }
}

/// `bbr_undo_cwnd` restores bounds and window; the probe does not go on.
#[test]
fn spurious_losses_do_not_bring_a_probe_back() {
    let (mut bbr, mut path) = cruising(&google(&[]));
    until("probe_bw_up", &mut bbr, &mut path);
    let before = bbr.cwnd();
    signal(&mut bbr, &path, CongestionSignal::Loss);
    bbr.on_packet_lost(&path.lost(9, 10, 200));
    assert_eq!(bbr.mode(), "probe_bw_down");
    bbr.set_cwnd(20);
    bbr.on_undo(path.now);
    bbr.on_recovery_state(path.now, RecoveryState::Open);
    assert_eq!((bbr.mode(), bbr.bounds.inflight_long), ("probe_bw_down", UNBOUNDED));
    assert_eq!(bbr.cwnd(), before);
}

/// `bbr_run_loss_probe_recovery`: one packet of what the last round delivered.
#[test]
fn a_loss_that_a_probe_repaired_counts_as_one() {
    for (delivered, mode) in [(50, "probe_bw_down"), (51, "probe_bw_up")] {
        let (mut bbr, mut path) = cruising(&google(&[]));
        until("probe_bw_up", &mut bbr, &mut path);
        bbr.latest.inflight = delivered;
        bbr.on_congestion_event(&CongestionEvent {
            now: path.now,
            signal: CongestionSignal::Loss,
            in_flight: 0,
            next_to_send: 0,
        });
        bbr.on_recovery_state(path.now, RecoveryState::Cwr);
        assert_eq!(bbr.mode(), mode, "1 of {}", delivered + 1);
        assert!(bbr.latest.lossy || mode == "probe_bw_down", "a new cycle forgets it");
    }
    // A mark brings the same state, and is none.
    let (mut bbr, path) = cruising(&google(&[]));
    bbr.on_congestion_event(&CongestionEvent {
        now: path.now,
        signal: CongestionSignal::Ecn,
        in_flight: 0,
        next_to_send: 0,
    });
    bbr.on_recovery_state(path.now, RecoveryState::Cwr);
    assert!(!bbr.latest.lossy);
}

/// `bbr_start_bw_probe_cruise`.
#[test]
fn cruising_begins_below_the_long_term_bound() {
    for (release, mut bbr, _) in both() {
        bbr.state = State::Down;
        (bbr.bounds.inflight_short, bbr.bounds.inflight_long) = (150, 120);
        bbr.start_cruise();
        assert_eq!(bbr.bounds.inflight_short, if release { 120 } else { 150 });
    }
}

/// `bbr_run_fast_path`: what an application limits teaches nothing, aggregation neither.
#[test]
fn an_ack_that_tells_nothing_is_passed_over() {
    let (mut bbr, mut path) = cruising(&google(&[]));
    for _ in 0..20 {
        bbr.on_ack(&path.round(BDP));
    }
    let before = (bbr.aggregation.max_extra(), bbr.cwnd());
    let burst = AckSample { app_limited: true, prior_delivered: 0, ..path.round(BDP / 2) };
    assert!(bbr.release.is_settled);
    bbr.on_ack(&AckSample { acked: 5 * BDP, ..burst });
    assert_eq!((bbr.aggregation.max_extra(), bbr.cwnd()), before);
    bbr.on_ack(&AckSample { acked: 5 * BDP, app_limited: false, ..burst });
    assert!(bbr.aggregation.max_extra() > before.0);
}

/// A path of 4 ms whose route marks early.
fn marked() -> (Bbr3, Rounds40) {
    let (mut bbr, path) = cruising(&google(&[("ecn_low", ParameterValue::Bool(true))]));
    assert_eq!(bbr.required_ecn_feedback(), EcnFeedback::DctcpEcho);
    bbr.min_rtt.us = Some(4_000);
    (bbr, path)
}

#[test]
fn marks_are_heard_where_the_route_says_so() {
    assert_eq!(bbr3(1, &google(&[])).required_ecn_feedback(), EcnFeedback::None);
    let (mut bbr, mut path) = marked();
    for packets in [BDP, BDP] {
        bbr.on_ack(&path.round(packets));
    }
    assert!(bbr.release.ecn.is_eligible());
    let (mut refused, _) = marked();
    refused.on_ecn_negotiated(EcnFeedback::None);
    assert!(!refused.release.ecn.is_usable());
    let (mut long, mut path) = cruising(&google(&[("ecn_low", ParameterValue::Bool(true))]));
    long.on_ack(&path.round(BDP));
    assert!(!long.release.ecn.is_eligible(), "40 ms");
}

/// `bbr_ecn_lower_bounds`: cwnd · (1 − α/3), and no bound of the bandwidth.
#[test]
fn marks_while_cruising_lower_the_flight() {
    let (mut bbr, mut path) = marked();
    bbr.on_ack(&path.round(BDP));
    let (cwnd, alpha) = (bbr.cwnd(), bbr.release.ecn.alpha());
    assert!(alpha > 0.9, "{alpha}");
    bbr.on_ack(&AckSample { ce_marked: 2 * BDP, acked: 2 * BDP, ..path.round(2 * BDP) });
    let bound = f64::from(bbr.bounds.inflight_short);
    assert!((bound / f64::from(cwnd) - (1.0 - alpha / 3.0)).abs() < 0.05, "{bound} of {cwnd}");
    assert_eq!(bbr.bounds.short_bandwidth(), None);
    // "when the ECN marks cease we reprobe quickly"
    bbr.bounds.inflight_long = 200;
    bbr.on_ack(&path.round(BDP));
    assert_eq!((bbr.mode(), bbr.probe.up_rounds), ("probe_bw_refill", 6));
}

#[test]
fn two_rounds_of_marks_end_startup() {
    let given = google(&[("ecn_low", ParameterValue::Bool(true))]);
    let (mut bbr, mut path) = (bbr3(1, &given), Rounds40::new());
    bbr.min_rtt.us = Some(4_000);
    for packets in [10, 20, 40] {
        bbr.on_ack(&path.round(packets));
    }
    for (packets, mode) in [(80, "startup"), (BDP, "drain")] {
        let ack = path.round(packets);
        bbr.on_ack(&AckSample { ce_marked: packets, in_flight: 400, ..ack });
        assert_eq!(bbr.mode(), mode);
    }
    assert!(bbr.bounds.inflight_long < UNBOUNDED);
}
