//! What flows do on networks that everybody knows, with the numbers that are expected of them.

use crate::common::*;
use jostle_metrics::{EventSink, FlowState, LinkPhase, Summary};
use jostle_run_spec::{
    FlowSpec, FramesSpec, GrantsSpec, LinkPart, LinkSpec, OutageSpec, Quantile, RunSpec, SourceSpec,
};
use jostle_units::{ConnectionId, FULL_PACKET_BYTES, FULL_PAYLOAD_BYTES, FlowId, LinkId, Time};

const PACKET: f64 = FULL_PACKET_BYTES as f64;

fn settled_link(summary: &Summary, link: usize) -> &LinkPhase {
    summary.links[link].phases.get("second half").unwrap()
}

fn goodput_mbps(summary: &Summary, flow: usize) -> f64 {
    settled(summary, flow).goodput_bps / 1e6
}

/// 50 Mbit/s, 40 ms, 1 BDP: the path of the recorded kernel runs.
fn reference(flows: Vec<FlowSpec>) -> RunSpec {
    run(40 * S, vec![link("bottleneck", 50 * MBPS, 250_000)], flows)
}

#[test]
fn cubic_fills_a_link_with_one_bdp_of_buffer() {
    let summary = measure(&reference(vec![flow("only", "cubic", 40 * MS)]));
    let utilisation = summary.links[0].phases.get("overall").unwrap().utilisation.unwrap();
    assert!(utilisation > 0.95, "{utilisation}");
    let ratio = settled(&summary, 0).goodput_ratio.unwrap();
    assert!((ratio - 1448.0 / 1514.0).abs() < 0.005, "{ratio}");
}

/// The recorded kernel run: 46.5 Mbit/s of goodput in the second half.
#[test]
fn bbr_alone_gets_what_it_gets_under_linux() {
    let goodput = goodput_mbps(&measure(&reference(vec![flow("only", "bbr", 40 * MS)])), 0);
    assert!((goodput / 46.51 - 1.0).abs() < 0.02, "{goodput} Mbit/s");
}

#[test]
fn two_equal_flows_share_equally() {
    let mut second = flow("second", "cubic", 40 * MS);
    second.start_ns = S;
    let mut spec = reference(vec![flow("first", "cubic", 40 * MS), second]);
    spec = RunSpec { duration_ns: 60 * S, ..run(60 * S, spec.links, spec.flows) };
    let summary = measure(&spec);
    let jain = summary.fairness.get("second half").unwrap().jain.unwrap();
    assert!(jain > 0.8, "{jain}");
}

/// Reno's throughput goes with 1/RTT at least, at equal loss.
#[test]
fn a_shorter_rtt_gets_more_under_reno() {
    let flows = vec![flow("near", "reno", 20 * MS), flow("far", "reno", 80 * MS)];
    let bottleneck = link("bottleneck", 20 * MBPS, 50_000);
    let summary = measure(&run(120 * S, vec![bottleneck], flows));
    let (near, far) = (goodput_mbps(&summary, 0), goodput_mbps(&summary, 1));
    assert!(near > 1.5 * far, "{near} and {far} Mbit/s");
    assert!(near + far > 0.9 * 20.0 * 1448.0 / 1514.0);
}

/// Mathis et al. 1997: W = √(1.5 / p) at random loss p, without delayed ACKs' effect, since Linux
/// counts packets and not ACKs.
#[test]
fn reno_follows_the_square_root_of_loss() {
    for probability in [0.001, 0.004] {
        let mut lossy = link("lossy", 100 * MBPS, 1_000_000);
        lossy.loss = lost(probability);
        let summary = measure(&run(200 * S, vec![lossy], vec![flow("only", "reno", 50 * MS)]));
        let packets_per_s = (1.5 / probability).sqrt() / 0.050;
        let expected = packets_per_s * 8.0 * f64::from(FULL_PAYLOAD_BYTES) / 1e6;
        let goodput = goodput_mbps(&summary, 0);
        assert!((goodput / expected - 1.0).abs() < 0.15, "{goodput} instead of {expected} Mbit/s");
    }
}

/// A flow that crosses two bottlenecks gets less than those that cross one.
#[test]
fn the_long_flow_loses_in_the_parking_lot() {
    let bottleneck = |name| link(name, 10 * MBPS, 50_000);
    let mut flows = vec![
        flow("long", "reno", 40 * MS),
        flow("short 1", "reno", 40 * MS),
        flow("short 2", "reno", 40 * MS),
    ];
    flows[0].path = vec![LinkId(0), LinkId(1)];
    flows[2].path = vec![LinkId(1)];
    let summary = measure(&run(120 * S, vec![bottleneck("a"), bottleneck("b")], flows));
    let [long, short_1, short_2] = [0, 1, 2].map(|flow| goodput_mbps(&summary, flow));
    assert!(long < 0.8 * short_1 && long < 0.8 * short_2, "{long}, {short_1}, {short_2} Mbit/s");
    assert!(long > 0.5, "{long} Mbit/s: it is not shut out");
}

fn with_return(rate_bps: u64, limit_bytes: u64) -> RunSpec {
    let mut forward = flow("forward", "cubic", 20 * MS);
    forward.reverse_path = vec![LinkId(1)];
    let mut back = link("back", rate_bps, limit_bytes);
    back.delay = constant_delay(20 * MS);
    run(40 * S, vec![link("there", 50 * MBPS, 250_000), back], vec![forward])
}

/// A roomy way back is as good as a plain delay; one that loses ACKs costs little, since the next
/// ACK says the same; one that is full of data costs more, for it delays them.
#[test]
fn a_return_path_matters_by_its_acks() {
    let plain = goodput_mbps(&measure(&reference(vec![flow("only", "cubic", 40 * MS)])), 0);
    let roomy = goodput_mbps(&measure(&with_return(1_000 * MBPS, 1 << 20)), 0);
    assert!((roomy / plain - 1.0).abs() < 0.005, "{roomy} and {plain} Mbit/s");

    // Half of the 1.1 Mbit/s that the ACKs of every second packet take.
    let summary = measure(&with_return(MBPS / 2, 1_514));
    let lossy = goodput_mbps(&summary, 0);
    assert!(settled_link(&summary, 1).dropped_packets > 1_000);
    assert!(lossy > 0.9 * plain, "{lossy} and {plain} Mbit/s");

    let mut crowded = with_return(10 * MBPS, 100_000);
    let mut against = flow("against", "cubic", 20 * MS);
    against.path = vec![LinkId(1)];
    against.reverse_path = vec![LinkId(0)];
    crowded.flows.push(against);
    let summary = measure(&crowded);
    let delayed = goodput_mbps(&summary, 0);
    assert!((0.5 * plain..0.99 * plain).contains(&delayed), "{delayed} and {plain} Mbit/s");
    assert!(settled(&summary, 0).rtt_mean_s.unwrap() > 0.060);
}

/// "T_min = 1.5 d + S/C + 0.5 d", as the studies of flow completion have it, if slow start is no
/// limit: here the initial window holds it all. What is more than the 64 kB that a SYN-ACK can offer
/// (RFC 7323 §2.2) may wait for a round trip, which is nothing beside 3 s.
#[test]
fn a_download_takes_two_round_trips_and_its_transmission() {
    for bytes in [1, 1_448, 10_000, 60_000, 20_000_000] {
        let mut download = flow("download", "cubic", 40 * MS);
        download.source = SourceSpec::Fixed { bytes: bytes.into() };
        download.initial_window_packets = 20_000;
        let wide = link("wide", 50 * MBPS, 40_000_000);
        let summary = measure(&run(10 * S, vec![wide], vec![download]));
        let packets = bytes.div_ceil(u64::from(FULL_PAYLOAD_BYTES)) as f64;
        let wire_bytes = bytes as f64 + packets * (PACKET - f64::from(FULL_PAYLOAD_BYTES));
        let expected_s = 2.0 * 0.040 + 8.0 * wire_bytes / 50e6;
        let took_s = summary.flows[0].completion_time_s.unwrap();
        let ratio = took_s / expected_s;
        assert!((ratio - 1.0).abs() < 0.02, "{bytes} bytes: {took_s} instead of {expected_s} s");
    }
}

#[test]
fn responses_follow_each_other_after_think_times() {
    let mut web = flow("web", "reno", 40 * MS);
    // Ten packets: one round trip each.
    web.source = SourceSpec::RequestResponse {
        bytes: (10 * 1_448).into(),
        think_ns: (100 * MS).into(),
        count: Some(20.into()),
    };
    let summary = measure(&run(10 * S, vec![link("wide", 100 * MBPS, 1 << 20)], vec![web]));
    let sending_s = 10.0 * PACKET * 8.0 / 100e6;
    let expected_s = 0.040 + 20.0 * (0.040 + sending_s) + 19.0 * 0.100;
    let took_s = summary.flows[0].completion_time_s.unwrap();
    assert!((took_s / expected_s - 1.0).abs() < 0.01, "{took_s} instead of {expected_s} s");
    let overall = summary.flows[0].phases.get("overall").unwrap();
    assert_eq!((overall.sent_packets, overall.retransmitted_packets), (200, Some(0)));
    // The first also waits for the handshake. The last byte is there before its ACK is back.
    assert_eq!((overall.responses, summary.flows[0].unfinished), (Some(20), Some(0)));
    let response_s = overall.response_time_p50_s.unwrap();
    assert!((response_s / sending_s - 1.0).abs() < 0.02, "{response_s} s");
    let mean_s = overall.response_time_mean_s.unwrap();
    assert!((mean_s / (sending_s + 0.040 / 20.0) - 1.0).abs() < 0.02, "{mean_s} s");
}

#[test]
fn an_on_off_flow_uses_its_share_of_time() {
    let mut flow = flow("half of the time", "cubic", 20 * MS);
    flow.source = SourceSpec::OnOff { on_ns: S.into(), off_ns: S.into() };
    let summary = measure(&run(60 * S, vec![link("bottleneck", 10 * MBPS, 25_000)], vec![flow]));
    let utilisation = summary.links[0].phases.get("overall").unwrap().utilisation.unwrap();
    // It empties its send buffer of 128 kB and the queue after every end, and starts slowly.
    assert!((0.52..0.6).contains(&utilisation), "{utilisation}");
}

/// Vegas keeps α = 2 to β = 4 packets waiting.
#[test]
fn vegas_keeps_a_small_queue() {
    let bottleneck = link("bottleneck", 10 * MBPS, 1_000_000);
    let summary = measure(&run(60 * S, vec![bottleneck], vec![flow("only", "vegas", 40 * MS)]));
    let packets = settled_link(&summary, 0).queue_length_mean_bytes / PACKET;
    assert!((1.5..4.5).contains(&packets), "{packets} packets");
    assert!(settled_link(&summary, 0).utilisation.unwrap() > 0.99);
}

/// Little's law, also if packets leave the queue long before their own transmission begins: with
/// their frame, or with their first fragment.
#[test]
fn the_mean_queue_is_the_rate_times_the_queueing_delay() {
    let at = |probability, value_ns| Quantile { probability, value_ns };
    let contention = vec![at(0.0, 2 * MS), at(1.0, 2 * MS)];
    let frames = FramesSpec { packets: 32, bytes: 65_536, contention };
    let grants = GrantsSpec {
        superframe_ns: 45 * MS,
        latency_ns: 0,
        request_interval_ns: 100 * MS,
        constant_bps: 100_000,
        rate_based: None,
        volume_based: false,
        free_bps: 0,
        quantum_bps: 1,
        contention: None,
        request_loss: 0.0,
        spread: false,
    };
    let plain = link("l", 5 * MBPS, 20 * 1_514);
    let framed = LinkSpec { frames: Some(frames), ..plain.clone() };
    let granted = LinkSpec { grants: Some(grants), ..link("l", 5 * MBPS, 3 * 1_514) };
    for (name, link) in [("plain", plain), ("framed", framed), ("granted", granted)] {
        let spec = run(120 * S, vec![link], vec![flow("a", "cubic", 60 * MS)]);
        let summary = measure(&spec);
        let link = summary.links[0].phases.get("overall").unwrap();
        let flow = summary.flows[0].phases.get("overall").unwrap();
        let product_bytes = link.queueing_delay_mean_s.unwrap() * flow.throughput_bps / 8.0;
        let ratio = product_bytes / link.queue_length_mean_bytes;
        assert!((ratio - 1.0).abs() < 0.02, "{name}: {ratio}");
        let path_s = flow.path_queueing_delay_mean_s.unwrap();
        let differs = path_s / link.queueing_delay_mean_s.unwrap() - 1.0;
        assert!(differs.abs() < 0.02, "{name}: {differs}");
    }
}

fn fq_codel(ecn: bool) -> LinkPart {
    part("fq_codel", json!({"ecn": ecn}))
}

#[test]
fn fq_codel_keeps_the_delay_near_its_target() {
    let flows = || vec![flow("first", "cubic", 40 * MS), flow("second", "cubic", 40 * MS)];
    let bloated = measure(&run(40 * S, vec![link("bottleneck", 20 * MBPS, 500_000)], flows()));
    let mut managed = link("bottleneck", 20 * MBPS, 500_000);
    managed.queue = fq_codel(false);
    let managed = measure(&run(40 * S, vec![managed], flows()));
    let delay_s = |summary: &Summary| settled(summary, 0).rtt_mean_s.unwrap() - 0.040;
    assert!(delay_s(&bloated) > 0.100, "{} s", delay_s(&bloated));
    assert!((0.002..0.015).contains(&delay_s(&managed)), "{} s", delay_s(&managed));
    assert!(settled_link(&managed, 0).utilisation.unwrap() > 0.9);
    let jain = managed.fairness.get("second half").unwrap().jain.unwrap();
    assert!(jain > 0.99, "{jain}");
}

#[test]
fn ecn_flows_are_marked_and_not_dropped() {
    let measured = |ecn| {
        let mut managed = link("bottleneck", 20 * MBPS, 500_000);
        managed.queue = part("codel", json!({"limit": {"packets": 1_000}, "ecn": true}));
        let mut only = flow("only", "reno", 40 * MS);
        only.ecn = ecn;
        measure(&run(60 * S, vec![managed], vec![only]))
    };
    let marked = measured(true);
    let link = settled_link(&marked, 0);
    assert!(link.marked_packets > 5 && link.dropped_packets == 0, "{link:?}");
    assert_eq!(settled(&marked, 0).retransmitted_packets, Some(0));
    let dropped = measured(false);
    let link = settled_link(&dropped, 0);
    assert!(link.marked_packets == 0 && link.dropped_packets > 5, "{link:?}");
    // A mark is worth a drop.
    let ratio = goodput_mbps(&marked, 0) / goodput_mbps(&dropped, 0);
    assert!((0.95..1.1).contains(&ratio), "{ratio}");
}

/// Collects what a flow says of itself.
#[derive(Default)]
struct Modes {
    modes: Vec<(Time, &'static str)>,
    delivered_bytes: u64,
}

impl EventSink for Modes {
    fn delivered(&mut self, _now: Time, _flow: ConnectionId, payload_bytes: u64) {
        self.delivered_bytes += payload_bytes;
    }
    fn flow_state(&mut self, now: Time, _flow: FlowId, state: &FlowState) {
        self.modes.push((now, state.mode));
    }
}

/// Outages of 1 s about every 10 s: each ends in timeouts, and the flow comes back.
#[test]
fn a_flow_survives_outages() {
    for controller in ["reno", "cubic", "bbr", "hybla", "vegas", "vivace"] {
        let mut flaky: LinkSpec = link("flaky", 10 * MBPS, 50_000);
        let durations = [0.0, 1.0].map(|probability| Quantile { probability, value_ns: S });
        flaky.outages =
            Some(OutageSpec { mean_interval_ns: 10 * S, durations: durations.to_vec() });
        let spec = run(120 * S, vec![flaky], vec![flow("only", controller, 40 * MS)]);
        let mut sink = Modes::default();
        jostle_sim::run(&spec, &mut sink, &|| false).unwrap();
        let timeouts = sink.modes.iter().filter(|(_, mode)| *mode == "timeout").count();
        assert!(timeouts >= 10, "{controller}: {timeouts}");
        let share = sink.delivered_bytes as f64 * 8.0 / 120.0 / 10e6;
        assert!(share > 0.6, "{controller}: {share}");
    }
}
