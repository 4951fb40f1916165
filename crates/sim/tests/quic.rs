//! QUIC flows in the simulator: their books balance, they share links with TCP, and where both do the
//! same they come to the same.

use crate::common::{MBPS, MS, S, algorithm, bdp_bytes, flow, link, lost, measure, over_quic, run};
use crate::ledger::Ledger;
use crate::{common, random};
use jostle_congestion::EcnFeedback;
use jostle_controllers::registry;
use jostle_metrics::{FlowPhase, Recorder};
use jostle_run_spec::{
    AckFrequencySpec, FaultSpec, FaultsSpec, FlowSpec, JitterSpec, LinuxRelease, NumberedFaultSpec,
    NumberedFaultsSpec, Quantile, QuicCrypto, QuicHandshake, QuicRecovery, QuicSpec, RunSpec,
    SourceSpec, TraceLevel,
};
use jostle_sim::Error;
use jostle_units::{FlowId, Span, Time};
use proptest::prelude::*;

fn quic(name: &str, controller: &str, rtt_ns: u64) -> FlowSpec {
    over_quic(flow(name, controller, rtt_ns))
}

fn with(flow: FlowSpec, change: impl FnOnce(&mut QuicSpec)) -> FlowSpec {
    let mut flow = flow;
    change(flow.quic.as_mut().unwrap());
    flow
}

/// 20 Mbit/s, 40 ms, one bandwidth-delay product of queue.
fn over(duration_ns: u64, flows: Vec<FlowSpec>) -> RunSpec {
    let (rate_bps, rtt_ns) = (20 * MBPS, 40 * MS);
    run(duration_ns, vec![link("bottleneck", rate_bps, bdp_bytes(rate_bps, rtt_ns))], flows)
}

/// What a flow's application got in a phase of so many seconds.
fn bytes(phase: &FlowPhase, seconds: u64) -> u64 {
    (phase.goodput_bps * seconds as f64 / 8.0).round() as u64
}

#[test]
fn a_download_is_complete_and_counted() {
    let download = FlowSpec {
        source: SourceSpec::Fixed { bytes: 5_000_000.into() },
        ..quic("download", "cubic", 40 * MS)
    };
    let summary = measure(&over(10 * S, vec![download]));
    let [flow] = &summary.flows[..] else { panic!("{summary:?}") };
    // 5 MB in datagrams of 1472 bytes at 20 Mbit/s take 2.1 s, the start some round trips more.
    let completion = flow.completion_time_s.unwrap();
    assert!((2.1..2.8).contains(&completion), "{completion} s");
    let overall = flow.phases.get("overall").unwrap();
    assert_eq!(bytes(overall, 10), 5_000_000);
    assert!(overall.sent_packets > 3_400 && overall.sent_packets < 3_900, "{overall:?}");
    let rtt = overall.rtt_min_s.unwrap();
    assert!((0.040..0.0415).contains(&rtt), "{rtt} s");
    assert!(overall.one_way_delay_mean_s.unwrap() > 0.0006);
}

/// Probes and control frames bypass pacing: their RTT counts from when they left.
#[test]
fn no_rtt_sample_is_below_the_base_rtt() {
    let zero_rtt =
        with(quic("early", "vivace", 46 * MS), |quic| quic.handshake = QuicHandshake::ZeroRtt);
    let copa = FlowSpec {
        source: SourceSpec::Fixed { bytes: 20_000.into() },
        ..quic("copa", "copa", 100 * MS)
    };
    for (seeds, loss, flow) in [(1, 0.0, zero_rtt), (60, 0.1, copa)] {
        for seed in 1..=seeds {
            let mut spec = RunSpec { seed, ..over(3 * S, vec![flow.clone()]) };
            spec.links[0].loss = lost(loss);
            spec.record = TraceLevel::Acks;
            let acks = common::record(&spec).acks.unwrap();
            let rtts_s = acks.rtt_s.iter().copied().filter(|rtt_s| !rtt_s.is_nan());
            let least_s = rtts_s.fold(f64::INFINITY, f64::min);
            let base_s = flow.base_delay_ns as f64 / 1e9;
            assert!(least_s >= base_s, "{}, seed {seed}: {least_s} s", flow.name);
        }
    }
}

/// Both ends of a bulk flow over 60 s, of which the second half counts.
fn alone(flow: FlowSpec) -> (f64, f64, f64) {
    let mut spec = over(60 * S, vec![flow]);
    spec.links[0].queue =
        common::part("drop_tail", serde_json::json!({"limit": {"bytes": 200_000}}));
    let summary = measure(&spec);
    let flow = summary.flows[0].phases.get("second half").unwrap();
    let link = summary.links[0].phases.get("second half").unwrap();
    (flow.goodput_bps, link.queue_length_mean_bytes, flow.rtt_mean_s.unwrap())
}

/// The same controller at the same bottleneck: TCP and QUIC agree in what they carry and in the queue
/// that they keep. Headers differ: 52 bytes of 1500, and some 60.
#[test]
fn tcp_and_quic_agree_where_they_do_the_same() {
    for controller in ["reno", "cubic", "bbr"] {
        let tcp = alone(FlowSpec { pacing: true, ..flow("f", controller, 40 * MS) });
        let quic = alone(with(quic("f", controller, 40 * MS), |quic| {
            quic.recovery = QuicRecovery::Prr;
        }));
        let goodput = quic.0 / tcp.0;
        assert!((0.97..1.01).contains(&goodput), "{controller}: {quic:?} beside {tcp:?}");
        let queue = quic.1 / tcp.1;
        assert!((0.85..1.15).contains(&queue), "{controller}: {quic:?} beside {tcp:?}");
    }
}

/// BBRv3 raises its longer bound where the window itself was full (draft-ietf-ccwg-bbr, `C.is_cwnd_limited`). A
/// transport that takes pacing's delay for that lets each probe overrun a short buffer: 997 packets were lost
/// where TCP loses 388.
#[test]
fn bbr3_probes_over_quic_as_far_as_over_tcp() {
    let (rate_bps, rtt_ns) = (20 * MBPS, 10 * MS);
    let lost = |flow: FlowSpec| {
        let bottleneck = link("bottleneck", rate_bps, bdp_bytes(rate_bps, rtt_ns));
        let summary = measure(&run(30 * S, vec![bottleneck], vec![flow]));
        let flow = &summary.flows[0].phases;
        flow.get("overall").unwrap().retransmitted_packets.unwrap() as f64
    };
    let (tcp, quic) = (lost(flow("f", "bbr3", rtt_ns)), lost(quic("f", "bbr3", rtt_ns)));
    assert!((0.75..1.35).contains(&(quic / tcp)), "{quic} packets beside {tcp}");
}

#[test]
fn tcp_and_quic_share_a_link() {
    for controllers in [["reno", "reno"], ["cubic", "cubic"]] {
        let flows = vec![
            flow("tcp", controllers[0], 40 * MS),
            FlowSpec { start_ns: 100 * MS, ..quic("quic", controllers[1], 40 * MS) },
        ];
        let summary = measure(&over(60 * S, flows));
        let rates: Vec<_> = summary
            .flows
            .iter()
            .map(|flow| flow.phases.get("second half").unwrap().throughput_bps)
            .collect();
        let all: f64 = rates.iter().sum();
        assert!((19e6..20.01e6).contains(&all), "{controllers:?}: {rates:?}");
        assert!(rates.iter().all(|rate| *rate > 0.25 * all), "{controllers:?}: {rates:?}");
    }
}

#[test]
fn the_controllers_of_the_stack_carry_data() {
    for name in ["noq:cubic", "noq:reno", "noq:bbr3"] {
        let one = FlowSpec {
            controller: algorithm(name),
            slow_start: None,
            source: SourceSpec::Fixed { bytes: 1_000_000.into() },
            ..quic("f", "reno", 40 * MS)
        };
        let summary = measure(&over(10 * S, vec![one]));
        assert!(summary.flows[0].completion_time_s.unwrap() < 2.0, "{name}");
        assert_eq!(summary.flows[0].controller, name);
    }
}

#[test]
fn sources_do_over_quic_what_they_do_over_tcp() {
    let responses = SourceSpec::RequestResponse {
        bytes: 100_000.into(),
        think_ns: (100 * MS).into(),
        count: Some(10.into()),
    };
    let on_off = SourceSpec::OnOff { on_ns: S.into(), off_ns: S.into() };
    let summary = measure(&over(
        20 * S,
        vec![
            FlowSpec { source: responses, ..quic("responses", "cubic", 40 * MS) },
            FlowSpec { source: on_off, start_ns: 10 * S, ..quic("on-off", "cubic", 40 * MS) },
            FlowSpec { stop_ns: Some(3 * S), start_ns: 2 * S, ..quic("stopped", "cubic", 40 * MS) },
        ],
    ));
    let of = |flow: usize| summary.flows[flow].phases.get("overall").unwrap();
    assert_eq!(bytes(of(0), 20), 1_000_000);
    assert_eq!(of(0).responses, Some(10));
    // The time that 100 kB take on the link, at least.
    let response = of(0).response_time_mean_s.unwrap();
    assert!((0.04..0.3).contains(&response), "{response} s");
    assert!(summary.flows[0].completion_time_s.is_some());
    // Five seconds on.
    let carried = bytes(of(1), 20) as f64 * 8.0 / 5.0 / 20e6;
    assert!((0.7..1.05).contains(&carried), "{carried}");
    assert_eq!(summary.flows[2].completion_time_s, None);
    let stopped = bytes(of(2), 20) as f64 * 8.0 / 20e6;
    assert!((0.5..1.2).contains(&stopped), "{stopped} s");
}

#[test]
fn zero_rtt_saves_a_round_trip_and_fewer_acks_come_if_asked() {
    let fixed = |handshake| {
        let small = FlowSpec {
            source: SourceSpec::Fixed { bytes: 5_000.into() },
            ..quic("f", "cubic", 200 * MS)
        };
        let small = with(small, |quic| quic.handshake = handshake);
        measure(&over(5 * S, vec![small])).flows[0].completion_time_s.unwrap()
    };
    let saved = fixed(QuicHandshake::OneRtt) - fixed(QuicHandshake::ZeroRtt);
    // Early data are acknowledged with those of a whole connection: the last ACK may be held back for 25 ms.
    assert!((0.17..0.21).contains(&saved), "{saved} s");

    let acks = |asked: Option<AckFrequencySpec>| {
        let one = with(quic("f", "cubic", 40 * MS), |quic| quic.ack_frequency = asked);
        let spec = RunSpec { record: TraceLevel::Acks, ..over(10 * S, vec![one]) };
        let mut recorder = Recorder::new(&spec);
        jostle_sim::run(&spec, &mut recorder, &|| false).unwrap();
        recorder.finish().acks.unwrap().time_s.len()
    };
    let seldom = AckFrequencySpec {
        ack_eliciting_threshold: 9,
        max_ack_delay_ns: None,
        reordering_threshold: 2,
    };
    let (often, seldom) = (acks(None), acks(Some(seldom)));
    assert!(4 * seldom < often && 8 * seldom > often, "{seldom} of {often}");
}

#[test]
fn a_larger_packet_threshold_tolerates_more_reordering() {
    let sent = |packet_threshold: Option<u32>| {
        let one =
            with(quic("f", "cubic", 40 * MS), |quic| quic.packet_threshold = packet_threshold);
        let mut spec = over(20 * S, vec![one]);
        // 8 ms are up to 13 packets of 1472 bytes at 20 Mbit/s.
        let quantiles = [(0.0, 0), (1.0, 8 * MS)]
            .map(|(probability, value_ns)| Quantile { probability, value_ns });
        spec.links[0].delay.jitter =
            Some(JitterSpec { quantiles: quantiles.into(), correlation_ns: 0, reorder: true });
        let summary = measure(&spec);
        let overall = summary.flows[0].phases.get("overall").unwrap();
        (overall.retransmitted_packets.unwrap(), overall.goodput_bps)
    };
    let ((many, slow), (few, fast)) = (sent(None), sent(Some(40)));
    assert!(many > 3 * few, "{many} and {few} packets");
    assert!(fast > 1.5 * slow, "{fast} and {slow} bit/s");
}

/// Every second flow of a random run becomes one over QUIC.
fn some_over_quic(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    for (flow, i) in spec.flows.iter_mut().zip(0..) {
        // What needs the header of a TCP.
        let of_tcp = matches!(flow.controller.name.as_str(), "lp")
            || flow.slow_start.as_ref().is_some_and(|it| it.name == "quickstart");
        let row = registry::controller(&flow.controller.name).unwrap();
        flow.ecn |= row.required_ecn_feedback() != EcnFeedback::None;
        if of_tcp || matches!(flow.source, SourceSpec::Ping { .. }) {
            continue;
        }
        let largest = flow.mtu_bytes.max(1_228);
        let mut one = over_quic(FlowSpec { mtu_bytes: largest, ..flow.clone() });
        one.receive_window_bytes = one.receive_window_bytes.max(2 * u64::from(largest));
        one.initial_receive_window_bytes = one.receive_window_bytes;
        let quic = one.quic.as_mut().unwrap();
        quic.stream_receive_window_bytes = one.receive_window_bytes;
        quic.pacing = flow.pacing;
        quic.mtu_discovery = flow.initial_window_packets % 3 > 0;
        quic.gso_packets = 1 + flow.initial_window_packets % 12;
        quic.streams = 1 + flow.initial_window_packets % 5;
        quic.recovery = if flow.linux == LinuxRelease::V4_15 {
            QuicRecovery::Prr
        } else {
            QuicRecovery::Rfc9002
        };
        quic.handshake = if flow.gro { QuicHandshake::ZeroRtt } else { QuicHandshake::OneRtt };
        if i % 2 == 0 || spec.links.len() > 2 {
            *flow = one;
        }
    }
    spec
}

fn audit(spec: &RunSpec) -> Result<Ledger, String> {
    spec.validate().map_err(|e| e.to_string())?;
    let mut ledger = Ledger::new(spec);
    let counts = match jostle_sim::run(spec, &mut ledger, &|| false) {
        // The stack bounds what a receiver keeps of a stream with holes, and says so.
        Err(Error::Broken { why, .. }) if why.contains("too many gaps") => return Ok(ledger),
        ran => ran.map_err(|e| e.to_string())?,
    };
    let drained = ledger.last_sent() + Span::from_secs(100) < Time::from_ns(spec.duration_ns);
    let ledger = ledger.close(drained)?;
    let seconds = spec.duration_ns / S + 1;
    let most = 14 * (ledger.sent_packets() + counts.link_packets) + 200 * 4 * seconds;
    if counts.events > most {
        return Err(format!("{} events for {} packets", counts.events, ledger.sent_packets()));
    }
    Ok(ledger)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_books_balance_at_every_moment(case in random::any_run(false)) {
        audit(&some_over_quic(&case.0)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_run(case in random::any_run(false)) {
        let spec = some_over_quic(&case.0);
        let told = || {
            let mut recorder = Recorder::new(&spec);
            let ran = jostle_sim::run(&spec, &mut recorder, &|| false);
            format!("{ran:?} {:?}", recorder.finish())
        };
        prop_assert!(told() == told());
    }
}

/// Losses of every kind do not keep data from arriving.
#[test]
fn what_is_lost_is_sent_again() {
    let mut spec = over(
        60 * S,
        vec![FlowSpec {
            source: SourceSpec::Fixed { bytes: 3_000_000.into() },
            ..quic("f", "cubic", 40 * MS)
        }],
    );
    spec.links[0].loss = lost(0.02);
    let ledger = audit(&spec).unwrap();
    assert!(ledger.all_completed() && ledger.dropped_packets() > 20, "{ledger:?}");
    let summary = measure(&spec);
    let overall = summary.flows[0].phases.get("overall").unwrap();
    let again = overall.retransmitted_packets.unwrap();
    assert!(again > 20 && again < 2 * ledger.dropped_packets(), "{again}");
}

/// The receive window of a connection limits it as that of its stream does.
#[test]
fn a_small_receive_window_is_no_small_send_buffer() {
    for (connection_bytes, stream_bytes) in [(200_000, 200_000), (1 << 25, 200_000)] {
        let mut one = over_quic(FlowSpec {
            receive_window_bytes: connection_bytes,
            ..flow("one", "cubic", 40 * MS)
        });
        one.quic.as_mut().unwrap().stream_receive_window_bytes = stream_bytes;
        let summary = measure(&run(5 * S, vec![link("wide", 100 * MBPS, 1 << 20)], vec![one]));
        let overall = summary.flows[0].phases.get("overall").unwrap();
        assert_eq!(overall.send_buffer_limited, Some(0.0), "{connection_bytes} bytes");
        assert!(overall.receive_window_limited.unwrap() > 0.5, "{connection_bytes} bytes");
    }
}

/// 4 Mbit/s, 20 kB of queue, and faults of the packets with some numbers.
fn with_faults(
    flow: FlowSpec,
    numbers: impl IntoIterator<Item = u64>,
    fault: FaultSpec,
) -> RunSpec {
    let faults = numbers.into_iter().map(|number| NumberedFaultSpec { number, fault });
    let mut spec = run(10 * S, vec![link("bottleneck", 4 * MBPS, 20_000)], vec![flow]);
    spec.links[0].faults = Some(FaultsSpec {
        packets: vec![NumberedFaultsSpec {
            flow: Some(FlowId(0)),
            class: None,
            faults: faults.collect(),
        }],
        ..FaultsSpec::default()
    });
    spec
}

/// The number in a late packet may be expanded to a wrong one: the receiver has to discard it, as it
/// does with encryption.
#[test]
fn late_packets_do_the_same_with_and_without_encryption() {
    for late_ms in [400, 700, 1_500] {
        let outcomes = [QuicCrypto::None, QuicCrypto::Tls].map(|crypto| {
            let flow = with(quic("f", "cubic", 40 * MS), |quic| quic.crypto = crypto);
            let late = FaultSpec::Late { by_ns: late_ms * MS };
            let spec = with_faults(flow, (1..=6).map(|at| at * 300), late);
            let summary = measure(&spec);
            let overall = summary.flows[0].phases.get("overall").unwrap();
            (overall.goodput_bps, overall.retransmitted_packets)
        });
        assert_eq!(outcomes[0], outcomes[1], "{late_ms} ms");
    }
}

/// Probes after losses are small, and a request for fewer ACKs has no room behind them.
#[test]
fn fewer_acks_can_be_requested_while_packets_are_lost() {
    for (first, last) in [(3, 30), (4, 40), (12, 100)] {
        let flow = with(quic("f", "cubic", 80 * MS), |quic| {
            quic.ack_frequency = Some(AckFrequencySpec {
                ack_eliciting_threshold: 9,
                max_ack_delay_ns: None,
                reordering_threshold: 2,
            });
        });
        let summary = measure(&with_faults(flow, first..=last, FaultSpec::Lose));
        let overall = summary.flows[0].phases.get("overall").unwrap();
        assert!(overall.sent_packets > 10, "{first} to {last}: {overall:?}");
    }
}
