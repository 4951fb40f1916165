//! BBR v3's answers to single ACKs and losses.

mod aging;
mod google_release;

use jostle_registry::ParameterValue;
use jostle_units::{Span, Time};

use super::*;
use crate::test_support::bbr::{Rounds40, established};
use crate::test_support::{RTT, controller_inputs};
use jostle_congestion::CongestionSignal;

fn bbr3(seed: u64, given: &[(&str, ParameterValue)]) -> Bbr3 {
    established(Bbr3::new(controller_inputs(&ROW, seed, given)))
}

impl Rounds40 {
    /// The ACK that ends a round in which `packets` were delivered and `lost` got lost.
    fn lossy(&mut self, packets: u32, lost: u32) -> AckSample {
        let in_flight_at_send = packets + lost;
        AckSample { lost, in_flight_at_send, lost_since_send: lost, ..self.round(packets) }
    }

    /// The `nth` of the packets that get lost in a round, out of `in_flight`.
    fn lost(&self, number: u64, nth: u32, in_flight: u32) -> LostPacket {
        LostPacket {
            now: self.now + RTT,
            number,
            in_flight_at_send: in_flight,
            lost_since_send: nth,
            app_limited: false,
            delivered: self.delivered,
        }
    }
}

const BDP: u32 = 160;

/// A controller that has just left Drain.
fn cruising(given: &[(&str, ParameterValue)]) -> (Bbr3, Rounds40) {
    let (mut bbr, mut path) = (bbr3(1, given), Rounds40::new());
    for packets in [10, 20, 40, 80, BDP, BDP, BDP, BDP] {
        bbr.on_ack(&path.round(packets));
    }
    // The release counts a burst on top of what is in flight, and so drains for a round.
    for _ in 0..2 {
        if bbr.is_release() && bbr.mode() != "probe_bw_cruise" {
            bbr.on_ack(&path.round(BDP));
        }
    }
    assert_eq!(bbr.mode(), "probe_bw_cruise");
    (bbr, path)
}

/// Goes through rounds until the controller is in `mode`.
fn until(mode: &str, bbr: &mut Bbr3, path: &mut Rounds40) {
    for _ in 0..200 {
        if bbr.mode() == mode {
            return;
        }
        let packets = if bbr.mode() == "probe_rtt" { BDP / 2 } else { BDP };
        bbr.on_ack(&AckSample { cwnd_limited: false, ..path.round(packets) });
    }
    panic!("never in {mode}");
}

fn signal(bbr: &mut Bbr3, path: &Rounds40, signal: CongestionSignal) {
    bbr.on_congestion_event(&CongestionEvent {
        now: path.now,
        signal,
        in_flight: 0,
        next_to_send: 0,
    });
    bbr.on_recovery_state(
        path.now,
        if signal == CongestionSignal::Timeout {
            RecoveryState::Loss
        } else {
            RecoveryState::Recovery
        },
    );
}

#[test]
fn gains_are_those_of_the_draft() {
    let mut bbr = bbr3(1, &[]);
    let expected = [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ];
    for (state, pacing, cwnd) in expected {
        bbr.state = state;
        let (is_pacing, is_cwnd) = (bbr.pacing_gain() as f64, bbr.cwnd_gain() as f64);
        assert!((is_pacing / 256.0 - pacing).abs() < 1.0 / 256.0, "{}", state.name());
        assert_eq!(is_cwnd / 256.0, cwnd, "{}", state.name());
    }
    // 4 ln 2 at least.
    assert!(bbr.parameters.startup_pacing_gain as f64 / 256.0 > 4.0 * core::f64::consts::LN_2);
}

#[test]
fn startup_leaves_after_three_rounds_without_growth() {
    let (mut bbr, mut path) = (bbr3(1, &[]), Rounds40::new());
    for packets in [10, 20, 40, 80, BDP, BDP, BDP] {
        bbr.on_ack(&AckSample { in_flight: 400, ..path.round(packets) });
        assert_eq!(bbr.mode(), "startup");
    }
    bbr.on_ack(&AckSample { in_flight: 400, ..path.round(BDP) });
    assert_eq!(bbr.mode(), "drain");
    for _ in 0..3 {
        bbr.on_ack(&AckSample { in_flight: 400, ..path.round(BDP) });
        assert_eq!(bbr.mode(), "drain");
    }
    // "BBR enters ProbeBW after 3 round-trips", although the queue is still there.
    bbr.on_ack(&AckSample { in_flight: 400, ..path.round(BDP) });
    assert_eq!(bbr.mode(), "probe_bw_down");
}

/// Six gaps in a round of recovery with more than 2 % lost; any less is not enough.
#[test]
fn losses_end_startup_only_if_there_are_many_in_many_places() {
    let left = |gaps: u64, share: u32, state| {
        let (mut bbr, mut path) = (bbr3(1, &[]), Rounds40::new());
        for packets in [10, 20, 40, 80] {
            bbr.on_ack(&path.round(packets));
        }
        for gap in 0..gaps {
            bbr.on_packet_lost(&path.lost(10 * gap, gap as u32 + 1, 320));
            bbr.on_packet_lost(&path.lost(10 * gap + 1, gap as u32 + 2, 320));
        }
        let lost = 320 * share / 100;
        bbr.on_ack(&AckSample { state, in_flight: 400, ..path.lossy(BDP, lost) });
        (bbr.mode(), bbr.bounds.inflight_long)
    };
    let recovery = RecoveryState::Recovery;
    assert_eq!(left(6, 5, recovery), ("drain", BDP));
    assert_eq!(left(5, 5, recovery), ("startup", UNBOUNDED));
    assert_eq!(left(6, 1, recovery), ("startup", UNBOUNDED));
    assert_eq!(left(6, 5, RecoveryState::Open), ("startup", UNBOUNDED));
}

#[test]
fn a_cycle_goes_through_its_states() {
    let (mut bbr, mut path) = cruising(&[]);
    let start = path.now;
    until("probe_bw_refill", &mut bbr, &mut path);
    let waited_s = path.now.since(start).as_secs_f64();
    assert!((2.0..=2.6).contains(&waited_s), "63 rounds of 40 ms at most: {waited_s}");
    bbr.on_ack(&path.round(BDP));
    assert_eq!(bbr.mode(), "probe_bw_up");
    // The path gives no more: three rounds without growth.
    for _ in 0..3 {
        assert_eq!(bbr.mode(), "probe_bw_up");
        bbr.on_ack(&AckSample { in_flight: 200, ..path.round(BDP) });
    }
    assert_eq!(bbr.mode(), "probe_bw_down");
    bbr.on_ack(&AckSample { in_flight: 170, ..path.round(BDP) });
    assert_eq!(bbr.mode(), "probe_bw_down");
    bbr.on_ack(&path.round(BDP));
    assert_eq!(bbr.mode(), "probe_bw_cruise");
}

/// Appendix A.9: where the queue does not drain, "the connection transitions directly to
/// PROBE_REFILL, bypassing PROBE_CRUISE".
#[test]
fn a_queue_that_stays_does_not_put_off_the_probe() {
    let (mut bbr, mut path) = cruising(&[("probe_rtt_duration", ParameterValue::Integer(0))]);
    until("probe_bw_up", &mut bbr, &mut path);
    until("probe_bw_down", &mut bbr, &mut path);
    let start = path.now;
    while bbr.mode() == "probe_bw_down" {
        bbr.on_ack(&AckSample { in_flight: 2 * BDP, ..path.round(BDP) });
    }
    assert_eq!(bbr.mode(), "probe_bw_refill");
    let waited_s = path.now.since(start).as_secs_f64();
    assert!((2.0..=2.6).contains(&waited_s), "{waited_s}");
}

/// Appendix A.22: low samples that the application limits are not the path's.
#[test]
fn a_pause_while_refilling_leaves_the_bandwidth() {
    for app_limited in [true, false] {
        let (mut bbr, mut path) = cruising(&[]);
        until("probe_bw_refill", &mut bbr, &mut path);
        let full = bbr.max_bandwidth.get();
        bbr.on_ack(&AckSample { app_limited, ..path.round(BDP / 8) });
        assert_eq!(bbr.mode(), "probe_bw_up");
        // Several cycles: the maximum is of two.
        for _ in 0..400 {
            bbr.on_ack(&AckSample { app_limited, ..path.round(BDP / 8) });
        }
        assert_eq!(bbr.max_bandwidth.get() == full, app_limited);
    }
}

#[test]
fn the_bandwidth_of_two_cycles_counts() {
    let (mut bbr, mut path) = cruising(&[]);
    let full = bbr.max_bandwidth.get();
    let (mut mode, mut probes) = ("", 0);
    while bbr.max_bandwidth.get() == full {
        bbr.on_ack(&path.round(BDP / 2));
        probes += u32::from(mode != "probe_bw_up" && bbr.mode() == "probe_bw_up");
        mode = bbr.mode();
    }
    assert_eq!(bbr.max_bandwidth.get(), full / 2);
    // The cycle of startup ended with Drain; the first one after it replaces it.
    assert_eq!(probes, 1);
    let mut filter = CycleMax::default();
    filter.update(100);
    filter.advance();
    filter.advance();
    assert_eq!(filter.get(), 100, "an empty cycle replaces none");
}

/// inflight_longterm = max(flight at which losses crossed 2 %, 0.7 of the target).
#[test]
fn a_probe_that_loses_too_much_sets_the_long_term_bound() {
    let (mut bbr, mut path) = cruising(&[]);
    until("probe_bw_up", &mut bbr, &mut path);
    for nth in 1..=4 {
        bbr.on_packet_lost(&path.lost(u64::from(nth), nth, 200));
        assert_eq!(bbr.mode(), "probe_bw_up", "{nth} of 200 are 2 % at most");
    }
    bbr.on_packet_lost(&path.lost(9, 5, 200));
    assert_eq!(bbr.mode(), "probe_bw_down");
    // 199 + (0.02 · 199 − 4) / 0.98 = 198.98
    assert_eq!(bbr.bounds.inflight_long, 198);
    // Once per probe.
    bbr.on_packet_lost(&path.lost(11, 50, 200));
    assert_eq!(bbr.bounds.inflight_long, 198);
    bbr.on_ack(&path.round(BDP));
    assert_eq!(bbr.mode(), "probe_bw_cruise");
    // 0.85 · 198 = 169 with the headroom rounded down.
    assert_eq!((bbr.inflight_with_headroom(), bbr.cwnd()), (169, 169));

    let (mut low, mut path) = cruising(&[]);
    until("probe_bw_up", &mut low, &mut path);
    low.on_packet_lost(&path.lost(1, 30, 50));
    assert_eq!(low.bounds.inflight_long, (0.7 * f64::from(BDP)) as u32);
}

/// After a probe that went too high the next one ends where that one failed; if this is borne, the
/// one after it follows at once and goes on.
#[test]
fn precautionary_probing_touches_the_bound_and_comes_back() {
    for precautionary in [true, false] {
        let given = [("precautionary", ParameterValue::Bool(precautionary))];
        let (mut bbr, mut path) = cruising(&given);
        until("probe_bw_up", &mut bbr, &mut path);
        bbr.on_packet_lost(&path.lost(9, 10, 200));
        let long = bbr.bounds.inflight_long;
        until("probe_bw_up", &mut bbr, &mut path);
        // cwnd, which the bound holds, was full.
        let full = |path: &mut Rounds40| AckSample {
            prior_in_flight: long,
            in_flight: long - 2,
            ..path.round(BDP)
        };
        bbr.on_ack(&full(&mut path));
        if !precautionary {
            assert_eq!(bbr.mode(), "probe_bw_up");
            continue;
        }
        assert_eq!(bbr.mode(), "probe_bw_down");
        bbr.on_ack(&path.round(BDP));
        assert_eq!(bbr.mode(), "probe_bw_refill");
        bbr.on_ack(&path.round(BDP));
        bbr.on_ack(&full(&mut path));
        assert_eq!(bbr.mode(), "probe_bw_up");
    }
}

/// 1, 2, 4 … packets per round while cwnd is held down by the bound.
#[test]
fn the_long_term_bound_rises_by_powers_of_two() {
    let (mut bbr, mut path) = cruising(&[("precautionary", ParameterValue::Bool(false))]);
    until("probe_bw_up", &mut bbr, &mut path);
    bbr.on_packet_lost(&path.lost(9, 10, 200));
    until("probe_bw_up", &mut bbr, &mut path);
    let mut before = bbr.bounds.inflight_long;
    for raise in [1, 2, 4, 8, 16] {
        let window = bbr.bounds.inflight_long;
        bbr.cwnd = window;
        // A window of ACKs, the first of which starts a round.
        let first = AckSample { in_flight: 190, ..path.round(window) };
        bbr.on_ack(&first);
        // The next ACK finds the window at its new bound.
        bbr.on_ack(&AckSample { acked: 1, prior_delivered: 0, ..first });
        let risen = bbr.bounds.inflight_long - before;
        // One for every cwnd / raise packets, in whole packets: a little more than `raise`.
        assert!((raise..=raise + raise / 4 + 1).contains(&risen), "{risen}, not {raise}");
        before = bbr.bounds.inflight_long;
    }
}

/// "bw_shortterm = max(bw_latest, BBR.Beta * bw_shortterm)", likewise the flight; until REFILL.
#[test]
fn losses_while_cruising_lower_the_short_term_bounds() {
    let (mut bbr, mut path) = cruising(&[]);
    let full = bbr.max_bandwidth.get();
    bbr.on_ack(&path.round(BDP));
    bbr.on_packet_lost(&path.lost(1, 1, BDP));
    bbr.on_ack(&path.lossy(144, 16));
    // The round began before the loss: its best sample is that of the full rate.
    assert_eq!(bbr.bounds.bandwidth_short, full);
    bbr.on_packet_lost(&path.lost(20, 1, BDP));
    bbr.on_ack(&path.lossy(144, 16));
    let share = bbr.bounds.bandwidth_short as f64 / full as f64;
    assert!((share - 0.9).abs() < 1e-5, "{share}");
    for number in [40, 60, 80] {
        bbr.on_packet_lost(&path.lost(number, 1, BDP));
        bbr.on_ack(&path.lossy(16, 144));
    }
    let share = bbr.bounds.bandwidth_short as f64 / full as f64;
    assert!((share - 0.9 * 0.7 * 0.7).abs() < 0.01, "{share}: the first round keeps 144");
    assert_eq!(bbr.bandwidth, bbr.bounds.bandwidth_short);
    until("probe_bw_refill", &mut bbr, &mut path);
    assert_eq!(bbr.bounds.short_bandwidth(), None);
    assert_eq!(bbr.bounds.inflight_short, UNBOUNDED);
}

#[test]
fn losses_while_probing_leave_the_short_term_bounds() {
    let (mut bbr, mut path) = cruising(&[]);
    until("probe_bw_up", &mut bbr, &mut path);
    bbr.on_packet_lost(&path.lost(1, 1, BDP));
    bbr.on_ack(&path.lossy(BDP - 1, 1));
    bbr.on_ack(&path.round(BDP));
    assert_eq!(bbr.bounds.short_bandwidth(), None);
}

#[test]
fn spurious_losses_return_to_what_they_ended() {
    let (mut bbr, mut path) = cruising(&[]);
    until("probe_bw_up", &mut bbr, &mut path);
    let before = bbr.cwnd();
    bbr.on_packet_lost(&path.lost(9, 10, 200));
    signal(&mut bbr, &path, CongestionSignal::Loss);
    bbr.on_ack(&AckSample { state: RecoveryState::Recovery, ..path.round(BDP) });
    assert!(bbr.bounds.inflight_long < UNBOUNDED && bbr.cwnd() < before);
    bbr.on_undo(path.now);
    bbr.on_recovery_state(path.now, RecoveryState::Open);
    assert_eq!((bbr.mode(), bbr.bounds.inflight_long), ("probe_bw_refill", UNBOUNDED));
    assert_eq!(bbr.cwnd(), before);

    let (mut bbr, mut path) = (bbr3(1, &[]), Rounds40::new());
    for packets in [10, 20, 40, 80] {
        bbr.on_ack(&path.round(packets));
    }
    for gap in 0..6 {
        bbr.on_packet_lost(&path.lost(10 * gap, gap as u32 + 1, 100));
    }
    signal(&mut bbr, &path, CongestionSignal::Loss);
    let high = AckSample { in_flight: 400, ..path.lossy(80, 20) };
    bbr.on_ack(&AckSample { state: RecoveryState::Recovery, ..high });
    assert_eq!(bbr.mode(), "drain");
    bbr.on_undo(path.now);
    assert_eq!(bbr.mode(), "startup");
    bbr.on_ack(&path.round(BDP));
    assert_eq!(bbr.mode(), "startup", "the pipe does not count as full");
}

/// "else if (BBR.undo_state == ProbeBW_UP && BBR.state != ProbeBW_UP)"
#[test]
fn spurious_losses_leave_a_probe_that_is_under_way() {
    let (mut bbr, mut path) = cruising(&[("precautionary", ParameterValue::Bool(false))]);
    until("probe_bw_up", &mut bbr, &mut path);
    bbr.on_packet_lost(&path.lost(9, 10, 200));
    signal(&mut bbr, &path, CongestionSignal::Loss);
    assert_eq!(bbr.mode(), "probe_bw_down");
    until("probe_bw_up", &mut bbr, &mut path);
    bbr.on_undo(path.now);
    assert_eq!((bbr.mode(), bbr.bounds.inflight_long), ("probe_bw_up", UNBOUNDED));
}

/// `NoteLoss` saves cwnd in every lossy round, `SaveCwnd` keeps the largest of an episode.
#[test]
fn the_largest_window_of_a_recovery_returns() {
    let (mut bbr, mut path) = cruising(&[]);
    bbr.set_cwnd(100);
    signal(&mut bbr, &path, CongestionSignal::Loss);
    bbr.on_ack(&AckSample { acked: 50, state: RecoveryState::Recovery, ..path.round(BDP) });
    bbr.on_packet_lost(&path.lost(1, 1, BDP));
    bbr.set_cwnd(60);
    bbr.on_packet_lost(&path.lost(9, 2, BDP));
    bbr.set_cwnd(20);
    bbr.on_recovery_state(path.now, RecoveryState::Open);
    assert_eq!(bbr.cwnd(), 150);
}

/// InitPacingRate has no margin, SetPacingRate has.
#[test]
fn the_first_rate_is_the_gain_of_the_initial_window() {
    let bbr = bbr3(1, &[]);
    let exact = 2.77 * 10.0 * 8.0 * bbr.pacing.mss_bytes as f64 / 0.040;
    let ratio = bbr.pacing_rate().unwrap().as_bps() as f64 / exact;
    assert!((0.998..1.003).contains(&ratio), "{ratio}");
}

/// The window of one packet after a timeout is not what the path bears.
#[test]
fn a_timeout_bounds_the_flight_by_the_window_before_it() {
    let (mut bbr, mut path) = cruising(&[]);
    for _ in 0..3 {
        bbr.on_ack(&path.round(BDP));
    }
    let before = bbr.cwnd();
    bbr.on_packet_lost(&path.lost(1, 1, BDP));
    bbr.on_congestion_event(&CongestionEvent {
        now: path.now,
        signal: CongestionSignal::Timeout,
        in_flight: 0,
        next_to_send: 0,
    });
    bbr.set_cwnd(1);
    bbr.on_recovery_state(path.now, RecoveryState::Loss);
    assert_eq!(bbr.bounds.inflight_short, before);
    let lossy = RecoveryState::Loss;
    bbr.on_ack(&AckSample { state: lossy, prior_delivered: 0, ..path.round(1) });
    assert_eq!(bbr.cwnd(), 4);
    bbr.on_recovery_state(path.now, RecoveryState::Open);
    assert_eq!(bbr.cwnd(), before);
}

#[test]
fn probe_rtt_holds_half_a_bdp_for_200_ms_and_a_round() {
    let (mut bbr, mut path) = cruising(&[]);
    let before = bbr.cwnd();
    while bbr.mode() != "probe_rtt" {
        let rtt = Some(Span::from_ms(41));
        bbr.on_ack(&AckSample { rtt, cwnd_limited: false, ..path.round(BDP) });
        assert!(path.now < Time::ZERO + Span::from_ms(5200));
    }
    assert!(path.now > Time::ZERO + Span::from_secs(5));
    assert_eq!(bbr.cwnd(), BDP / 2);
    assert!(bbr.limits_flight_on_purpose());
    let mut drained = None;
    while bbr.mode() == "probe_rtt" {
        bbr.on_ack(&AckSample { app_limited: true, ..path.round(80) });
        drained = drained.or(Some(path.now));
    }
    let held = path.now.since(drained.unwrap());
    assert!(held > Span::from_ms(200) && held <= Span::from_ms(240), "{held}");
    assert_eq!(bbr.mode(), "probe_bw_cruise");
    assert!(bbr.cwnd() >= 2 * BDP && bbr.cwnd() <= before, "{} after {before}", bbr.cwnd());
    // 41 ms were seen in the last interval, 40 before: the minimum of ten seconds holds.
    assert_eq!(bbr.min_rtt.us, Some(40_000));
}

#[test]
fn a_restart_from_idle_paces_at_the_bandwidth() {
    let (mut bbr, mut path) = cruising(&[]);
    until("probe_bw_up", &mut bbr, &mut path);
    bbr.on_ack(&path.round(BDP));
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
    // Idle time counts as a chance to have seen the minimum RTT: no ProbeRTT at once.
    let late = AckSample { now: path.now + Span::from_secs(20), ..path.round(BDP) };
    bbr.on_ack(&late);
    assert_ne!(bbr.mode(), "probe_rtt");
}
