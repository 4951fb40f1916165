//! How flows start: methods that send more than slow start, and hosts that remember their peers.

use crate::common::*;
use jostle_metrics::{EventSink, FlowState, Summary};
use jostle_run_spec::{FlowSpec, QuickStartSpec, RunSpec, SourceSpec};
use jostle_units::{FlowId, LinkId, Time};

fn started_by(start: &str, bytes: u64, rtt_ns: u64) -> FlowSpec {
    let mut download = flow("download", "cubic", rtt_ns);
    download.source = SourceSpec::Fixed { bytes: bytes.into() };
    download.slow_start = Some(algorithm(start));
    download.initial_receive_window_bytes = download.receive_window_bytes;
    download
}

fn completion_time_s(spec: &RunSpec) -> f64 {
    measure(spec).flows[0].completion_time_s.unwrap()
}

/// Liu et al. 2007: what fits into the path is there after two round trips and a half; its last ACK
/// half a round trip later.
#[test]
fn jumpstart_sends_everything_in_the_first_round_trip() {
    let wide = || link("wide", 1_000 * MBPS, 1 << 30);
    let jump = run(5 * S, vec![wide()], vec![started_by("jumpstart", 200 * 1_448, 100 * MS)]);
    let took_s = completion_time_s(&jump);
    assert!((0.295..0.305).contains(&took_s), "{took_s} s");
    // The window that a SYN-ACK can offer, 45 packets, is the jump; ACKs open it.
    let mut narrow = jump;
    narrow.flows[0].initial_receive_window_bytes = 65_535;
    assert!(completion_time_s(&narrow) > 0.35);
}

/// Hybla's window leaps in the first round trips, and meets one of the receiver that at most triples
/// (two segments for each that arrives) and may not pass what reading allows.
#[test]
fn a_tuned_receive_buffer_holds_back_who_starts_fast() {
    let completion = |autotuning| {
        let mut download = flow("download", "hybla", 600 * MS);
        download.source = SourceSpec::Fixed { bytes: 5_000_000.into() };
        download.receive_window_bytes = 30_000_000;
        download.receive_window_autotuning = autotuning;
        completion_time_s(&run(
            20 * S,
            vec![link("satellite", 144 * MBPS, 36 << 20)],
            vec![download],
        ))
    };
    let (ample, tuned) = (completion(false), completion(true));
    assert!(tuned > ample + 0.6, "{ample} s without tuning, {tuned} s with it");
}

/// algorithms.md: "1 MB at 50 Mbit/s, 100 ms: ≥ 1 RTT saved, zero extra loss".
#[test]
fn suss_saves_a_round_trip() {
    let at = |start| {
        let path = link("path", 50 * MBPS, 625_000);
        measure(&run(5 * S, vec![path], vec![started_by(start, 1_000_000, 100 * MS)]))
    };
    let (hystart, suss) = (at("hystart"), at("suss"));
    let took = |summary: &Summary| summary.flows[0].completion_time_s.unwrap();
    assert!(took(&suss) < took(&hystart) - 0.1, "{} and {} s", took(&suss), took(&hystart));
    for summary in [hystart, suss] {
        assert_eq!(summary.links[0].phases.get("overall").unwrap().dropped_packets, 0);
    }
}

/// RFC 4782: every router of the path may lower the request; one that does not know Quick-Start
/// refuses it.
#[test]
fn quick_start_is_granted_by_the_whole_path() {
    let links = |allowances: [Option<u64>; 2]| {
        let granting = |(name, allowance): (_, Option<u64>)| {
            let mut link = link(name, 100 * MBPS, 1 << 20);
            link.quick_start = allowance
                .map(|allowance_bps| QuickStartSpec { allowance_bps, interval_ns: 100 * MS });
            link
        };
        ["near", "far"].into_iter().zip(allowances).map(granting).collect::<Vec<_>>()
    };
    let at = |allowances| {
        let mut asking = started_by("quickstart", 400 * 1_448, 100 * MS);
        asking.path = vec![LinkId(0), LinkId(1)];
        completion_time_s(&run(5 * S, links(allowances), vec![asking]))
    };
    // 82 Mbit/s are 676 packets in a round trip: all in the first, paced over 59 ms of it.
    let all = at([Some(90 * MBPS), Some(90 * MBPS)]);
    assert!((0.255..0.265).contains(&all), "{all} s");
    // 20.48 Mbit/s are 169: two round trips.
    let less = at([Some(90 * MBPS), Some(21 * MBPS)]);
    assert!((0.36..0.41).contains(&less), "{less} s");
    // 10, 20, 40, 80, 160, 90.
    let nothing = at([Some(90 * MBPS), None]);
    assert!((0.6..0.75).contains(&nothing), "{nothing} s");
}

/// `count` flows of the same host to the same peer, each 100 ms after the one before it.
fn visits(
    memory: Option<&str>,
    controller: &str,
    bytes: u64,
    rtt_ns: u64,
    count: u32,
) -> Vec<FlowSpec> {
    (0..count)
        .map(|i| {
            let mut visit = flow(&format!("visit {i}"), controller, rtt_ns);
            visit.source = SourceSpec::Fixed { bytes: bytes.into() };
            visit.memory = memory.map(algorithm);
            visit.after = i.checked_sub(1).map(FlowId);
            visit.start_ns = 100 * MS;
            visit
        })
        .collect()
}

#[test]
fn flows_open_one_after_the_other() {
    let flows = visits(None, "reno", 10 * 1_448, 40 * MS, 3);
    let mut opened = Opened::default();
    jostle_sim::run(&run(S, vec![link("wide", GBPS, 1 << 20)], flows), &mut opened, &|| false)
        .unwrap();
    // A handshake and a round trip each, and the pause.
    let [first, second, third] = opened.0[..] else { panic!("{:?}", opened.0) };
    assert_eq!(first, Time::from_ns(100 * MS));
    for (earlier, later) in [(first, second), (second, third)] {
        let apart_ms = later.since(earlier).as_secs_f64() * 1e3;
        assert!((180.0..181.0).contains(&apart_ms), "{apart_ms} ms");
    }
}

/// When each flow was opened.
#[derive(Default)]
struct Opened(Vec<Time>);

impl EventSink for Opened {
    fn opened(&mut self, now: Time, flow: FlowId) {
        assert_eq!(flow.index(), self.0.len());
        self.0.push(now);
    }
}

/// "T_min = 1.5 d + S/C + 0.5 d": 5 MB at 50 Mbit/s and 100 ms in 1.0 s ± 8 % once the path is known.
/// BBR goes on with STARTUP, which overruns a buffer of 1 BDP: what it loses is what it is late by.
#[test]
fn the_second_stateful_flow_starts_at_the_bandwidth() {
    const BDP: u64 = 625_000;
    let visit = |controller, buffer| {
        let path = link("path", 50 * MBPS, buffer);
        let flows = visits(Some("stateful"), controller, 5_000_000, 100 * MS, 2);
        let summary = measure(&run(10 * S, vec![path], flows));
        let [first, second] = [0, 1].map(|i| summary.flows[i].completion_time_s.unwrap());
        assert!(first > 1.3, "{controller}: {first} s");
        let repeated =
            summary.flows[1].phases.get("overall").unwrap().retransmitted_packets.unwrap();
        (second, repeated)
    };
    for (controller, buffer) in [("reno", BDP), ("cubic", BDP), ("bbr", 4 * BDP)] {
        let (second, _) = visit(controller, buffer);
        assert!((0.92..1.08).contains(&second), "{controller}: {second} s");
    }
    assert_eq!(visit("bbr", 4 * BDP).1, 0);
    let (second, repeated) = visit("bbr", BDP);
    let late_s = repeated as f64 * 1514.0 * 8.0 / 50e6;
    assert!((0.92..1.08).contains(&(second - late_s)), "{second} s, {repeated} packets twice");
}

/// "The AWnd is suppressed except for 0 to prevent it from becoming the bottleneck", in Estimation as
/// in Startup: a receive buffer that Linux tunes, which has not seen a whole round trip when the
/// remembered flight is there, does not hold the flow up.
#[test]
fn a_tuned_receive_buffer_does_not_hold_a_stateful_flow_up() {
    let path = link("path", 50 * MBPS, 625_000);
    let mut flows = visits(Some("stateful"), "cubic", 5_000_000, 100 * MS, 2);
    for visit in &mut flows {
        visit.receive_window_autotuning = true;
    }
    let second = measure(&run(10 * S, vec![path], flows)).flows[1].completion_time_s.unwrap();
    assert!((0.92..1.08).contains(&second), "{second} s");
}

/// "There is no such pacing at the start, resulting in a significant transmission burst": all 691
/// packets are there after a handshake, a transmission and a way back, d + S/C + d. A receiver's first
/// window of 45 packets stops it, unless the sender takes no notice.
#[test]
fn a_cached_window_leaves_at_once_as_far_as_the_receiver_lets_it() {
    let second = |memory| {
        let path = link("path", 50 * MBPS, 1 << 30);
        let flows = visits(Some(memory), "cubic", 1_000_000, 100 * MS, 2);
        measure(&run(10 * S, vec![path], flows)).flows[1].completion_time_s.unwrap()
    };
    let least = 0.2 + 691.0 * 1514.0 * 8.0 / 50e6;
    let (heeding, ignoring) = (second("tcp-cache"), second("tcp-cache+"));
    assert!((ignoring - least).abs() < 0.01, "{ignoring} s of {least} s");
    assert!(heeding > least + 0.05, "{heeding} s of {least} s");
}

/// Another peer in the same slot: the entry is lost, and both start as if they knew nothing.
#[test]
fn a_collision_starts_anew() {
    let path = link("path", 50 * MBPS, 625_000);
    let mut flows = visits(Some("stateful"), "cubic", 1_000_000, 100 * MS, 4);
    for (visit, peer) in flows.iter_mut().zip([7, 7, 8, 7]) {
        visit.peer = peer;
        let slots = jostle_registry::ParameterValue::Integer(1);
        visit.memory.as_mut().unwrap().parameters.insert("slots".to_owned(), slots);
    }
    let summary = measure(&run(10 * S, vec![path], flows));
    let took = |i: usize| summary.flows[i].completion_time_s.unwrap();
    assert!(took(1) < 0.7 * took(0), "{} s after {} s", took(1), took(0));
    for other in [2, 3] {
        assert!((took(other) / took(0) - 1.0).abs() < 0.01, "{} s", took(other));
    }
}

/// The bandwidth that flow after flow remembers, in bits per second with headers.
fn remembered_bps(bytes: u64, estimator: &str) -> f64 {
    let path = link("path", 100 * MBPS, 625_000);
    let mut flows = visits(Some("stateful"), "cubic", bytes, 50 * MS, 1);
    let choice = jostle_registry::ParameterValue::Text(estimator.to_owned());
    flows[0].memory.as_mut().unwrap().parameters.insert("estimator".to_owned(), choice);
    let mut last = LastInternal::default();
    jostle_sim::run(&run(10 * S, vec![path], flows), &mut last, &|| false).unwrap();
    last.0
}

#[derive(Default)]
struct LastInternal(f64);

impl EventSink for LastInternal {
    fn controller_state(&mut self, _now: Time, _flow: FlowId, quantity: &'static str, value: f64) {
        if quantity == "bandwidth_estimate_bps" {
            self.0 = value;
        }
    }
}

/// The study's figure: 100 Mbit/s, 50 ms; gap compensation is right from 64 kB on, where the others
/// are far below.
#[test]
fn gap_compensation_sees_the_bandwidth_through_short_flows() {
    for kb in [64, 128, 256, 512, 1024, 2048, 4096, 8192] {
        let gcbe = remembered_bps(kb * 1_000, "gcbe") / 1e6;
        assert!((gcbe - 100.0).abs() < 10.0, "{kb} kB: {gcbe} Mbit/s");
    }
    for estimator in ["westwood", "bbr"] {
        for kb in [64, 128, 256] {
            let found = remembered_bps(kb * 1_000, estimator) / 1e6;
            assert!(found < 50.0, "{estimator}, {kb} kB: {found} Mbit/s");
        }
    }
    assert!(remembered_bps(20_000_000, "bbr") > 90e6);
}

/// algorithms.md: the mean completion time is no worse than IW10's after 200 flows.
#[test]
fn a_learnt_initial_window_is_no_slower() {
    let mean = |memory| {
        let path = link("path", 20 * MBPS, 125_000);
        let summary =
            measure(&run(200 * S, vec![path], visits(memory, "cubic", 40_000, 50 * MS, 200)));
        summary.flows.iter().map(|flow| flow.completion_time_s.unwrap()).sum::<f64>() / 200.0
    };
    let (plain, learnt) = (mean(None), mean(Some("tcp-wise")));
    assert!(learnt < 0.85 * plain, "{learnt} s against {plain} s");
}

/// RFC 9959 §1.4: over a geostationary link 5.3 MB "could take 9 seconds", and 4 with Careful Resume.
#[test]
fn a_path_that_is_confirmed_is_resumed() {
    let path = link("satellite", 50 * MBPS, 3_750_000);
    let mut flows = visits(Some("careful-resume"), "cubic", 5_300_000, 600 * MS, 2);
    for visit in &mut flows {
        visit.receive_window_bytes = 30_000_000;
        visit.initial_receive_window_bytes = 30_000_000;
    }
    let summary = measure(&run(60 * S, vec![path], flows));
    let took = |i: usize| summary.flows[i].completion_time_s.unwrap();
    assert!(took(1) < 0.6 * took(0), "{} s after {} s", took(1), took(0));
    let second = summary.flows[1].phases.get("overall").unwrap();
    assert_eq!(second.retransmitted_packets, Some(0));
}

/// Modes of the second flow, and the smallest part of its ssthresh that cwnd was in recovery.
struct Modes {
    seen: std::collections::BTreeSet<&'static str>,
    lowest: f64,
}

impl EventSink for Modes {
    fn flow_state(&mut self, _now: Time, flow: FlowId, state: &FlowState) {
        if flow != FlowId(1) {
            return;
        }
        self.seen.insert(state.mode);
        if let (Some(ssthresh), "recovery") = (state.ssthresh_bytes, state.mode) {
            self.lowest = self.lowest.min(state.cwnd_bytes as f64 / ssthresh as f64);
        }
    }
}

/// Another flow has come since, and its queue is there: the jump is lost in part, and cwnd falls
/// below ssthresh, to which a reduction alone would take it.
#[test]
fn a_path_that_others_use_makes_it_retreat() {
    let path = link("path", 50 * MBPS, 150_000);
    let mut flows = visits(Some("careful-resume"), "reno", 10_000_000, 100 * MS, 2);
    flows[1].start_ns = 10 * S;
    for visit in &mut flows {
        visit.receive_window_bytes = 30_000_000;
        visit.initial_receive_window_bytes = 30_000_000;
    }
    flows.push(FlowSpec { start_ns: 5 * S, ..flow("other", "cubic", 100 * MS) });
    let spec = RunSpec { interval_ns: 10 * MS, ..run(30 * S, vec![path], flows) };
    spec.validate().unwrap();
    let mut modes = Modes { seen: Default::default(), lowest: 1.0 };
    jostle_sim::run(&spec, &mut modes, &|| false).unwrap();
    for mode in ["reconnaissance", "unvalidated", "validating", "recovery"] {
        assert!(modes.seen.contains(mode), "{mode}: {:?}", modes.seen);
    }
    assert!(modes.lowest < 0.6, "{}", modes.lowest);
}

/// A remembered flight that does not heed the receiver's window, a window that is tuned, and a loss
/// in it: what lies beyond the window behind the hole is dropped, and no one waits for ever.
#[test]
fn a_loss_in_a_remembered_flight_does_not_stop_it() {
    let mut repeated = 0;
    for seed in 0..20 {
        let mut path = link("path", 150 * MBPS, 10_000_000);
        path.loss = lost(0.002);
        let mut flows = visits(Some("stateful"), "cubic", 1_000_000, 20 * MS, 3);
        for visit in &mut flows {
            visit.receive_window_autotuning = true;
        }
        let summary = measure(&RunSpec { seed, ..run(30 * S, vec![path], flows) });
        for flow in &summary.flows {
            // Two timeouts or three, at most.
            assert!(flow.completion_time_s.is_some_and(|took| took < 3.0), "seed {seed}: {flow:?}");
            let whole = flow.phases.get("overall").unwrap();
            repeated += u64::from(whole.retransmitted_packets > Some(20));
        }
    }
    assert!(repeated > 0, "nothing beyond a window was dropped");
}
