//! Pings: what they measure of a path, and that none gets lost in the books.

use crate::common::*;
use jostle_link::DropReason;
use jostle_metrics::{EventSink, FlowPhase, Pings, Summary};
use jostle_run_spec::{
    CbrSpec, FaultSpec, FaultsSpec, FlowSpec, JitterSpec, LinkSpec, NumberedFaultSpec,
    NumberedFaultsSpec, OccurrenceSpec, OutageSpec, PacketClassSpec, PhaseSpec, Quantile, RateStep,
    ReorderingSpec, SourceSpec, Transport,
};
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;

/// A flow of pings of 20 bytes over the first link.
fn pings(name: &str, rtt_ns: u64, every_ns: u64) -> FlowSpec {
    FlowSpec {
        transport: Transport::Udp,
        controller: algorithm("none"),
        slow_start: None,
        source: SourceSpec::Ping { bytes: 20, every_ns, timeout_ns: 10 * S },
        ..flow(name, "reno", rtt_ns)
    }
}

fn pings_of(summary: &Summary, flow: usize) -> &Pings {
    assert_eq!(summary.flows[flow].transport, Transport::Udp);
    summary.flows[flow].pings.as_ref().unwrap()
}

/// Losses in all, and their events.
fn losses(pings: &Pings) -> (u64, u64) {
    let all = pings.losses_by_length.iter();
    (all.clone().map(|(length, count)| length * count).sum(), all.map(|(_, count)| count).sum())
}

/// A receiver discards duplicates: they are no goodput and do not hide lost datagrams.
#[test]
fn duplicates_do_not_hide_lost_datagrams() {
    let overall = |duplicate| {
        let occurrence = |probability| OccurrenceSpec { probability, correlation: 0.0 };
        let mut line = link("line", 8 * MBPS, 50_000);
        line.faults = Some(FaultsSpec {
            duplicate: Some(occurrence(duplicate)),
            corrupt: Some(occurrence(0.1)),
            reorder: None,
            packets: Vec::new(),
        });
        let steps = vec![RateStep { at_ns: 0, rate_bps: MBPS }];
        let source = SourceSpec::Cbr(CbrSpec { bytes: 478, steps, voice: None });
        let calls = FlowSpec { source, ..pings("call", 40 * MS, S) };
        let summary = measure(&run(10 * S, vec![line], vec![calls]));
        summary.flows[0].phases.get("overall").unwrap().clone()
    };
    let (without, with) = (overall(0.0), overall(0.3));
    // Copies replace some lost originals.
    assert!((0.05..0.09).contains(&with.lost_share.unwrap()), "{:?}", with.lost_share);
    assert!((0.09..0.12).contains(&without.lost_share.unwrap()), "{:?}", without.lost_share);
    let sent_bps = |phase: &FlowPhase| phase.goodput_bps / (1.0 - phase.lost_share.unwrap());
    let ratio = sent_bps(&with) / sent_bps(&without);
    assert!((ratio - 1.0).abs() < 0.002, "{ratio}");
    assert!(with.throughput_bps > 1.2 * without.throughput_bps);
}

#[test]
fn duplicates_of_pings_are_no_goodput() {
    let mut line = link("line", 8 * MBPS, 50_000);
    line.faults = Some(FaultsSpec {
        duplicate: Some(OccurrenceSpec { probability: 0.5, correlation: 0.0 }),
        ..FaultsSpec::default()
    });
    let summary = measure(&run(10 * S, vec![line], vec![pings("p", 40 * MS, 100 * MS)]));
    let overall = summary.flows[0].phases.get("overall").unwrap();
    // 10 pings of 20 bytes a second.
    assert_eq!(overall.goodput_bps, 1_600.0);
    assert!(overall.throughput_bps > 1.3 * 62.0 * 80.0, "{}", overall.throughput_bps);
    let found = pings_of(&summary, 0);
    assert_eq!((found.sent, found.echoed, found.lost), (100, 100, 0));
}

/// Reordered packets skip the delay of a link, and can therefore be faster than its propagation.
#[test]
fn delays_of_reordered_packets_are_not_negative() {
    let steps = vec![RateStep { at_ns: 0, rate_bps: 80_000 }];
    let source = SourceSpec::Cbr(CbrSpec { bytes: 1_000, steps, voice: None });
    let call = FlowSpec { source, ..pings("call", 40 * MS, S) };
    for probability in [0.3, 1.0] {
        let delay = constant_delay(20 * MS);
        let mut line = LinkSpec { delay, ..link("line", 8 * MBPS, 50_000) };
        let occurrence = OccurrenceSpec { probability, correlation: 0.0 };
        let reorder = Some(ReorderingSpec { occurrence, gap: 1, late_ns: None });
        line.faults = Some(FaultsSpec { reorder, ..FaultsSpec::default() });
        let summary = measure(&run(60 * S, vec![line], vec![call.clone()]));
        let overall = summary.flows[0].phases.get("overall").unwrap();
        // 1,042 bytes with headers take 1 ms.
        let least_s = overall.one_way_delay_min_s.unwrap();
        assert!((0.001..0.0012).contains(&least_s), "{least_s} s");
        let mean_s = overall.one_way_delay_mean_s.unwrap();
        let expected_s = least_s + 0.020 * (1.0 - probability);
        assert!((mean_s - expected_s).abs() < 0.002, "{mean_s} instead of {expected_s} s");
        let variation_s = overall.delay_variation_mean_s.unwrap();
        assert!((variation_s - (mean_s - least_s)).abs() < 1e-12, "{variation_s} s");
        assert!(overall.one_way_delay_p95_s.unwrap() >= mean_s * 0.98);
    }
}

/// A phase includes its start and excludes its end, as does a sampling interval.
#[test]
fn a_packet_at_the_start_of_a_phase_belongs_to_it() {
    let steps = vec![RateStep { at_ns: 0, rate_bps: 80_000 }];
    let source = SourceSpec::Cbr(CbrSpec { bytes: 1_000, steps, voice: None });
    // Ten datagrams a second.
    let mut call = FlowSpec { source, ..pings("call", 40 * MS, S) };
    for (start_ns, packets) in [(S, [0, 10, 10]), (0, [10, 10, 10])] {
        call.start_ns = start_ns;
        let flows = vec![call.clone(), FlowSpec { start_ns, ..pings("pings", 40 * MS, 100 * MS) }];
        let mut spec = run(3 * S, vec![link("line", 8 * MBPS, 50_000)], flows);
        spec.interval_ns = S;
        spec.phases.extend((0..3).map(|part| PhaseSpec {
            name: part.to_string(),
            from_ns: part * S,
            to_ns: (part + 1) * S,
        }));
        let record = record(&spec);
        for (number, flow) in record.summary.flows.iter().enumerate() {
            let sent = [0, 1, 2]
                .map(|part: usize| flow.phases.get(&part.to_string()).unwrap().sent_packets);
            assert_eq!(sent, packets, "{} from {start_ns} ns", flow.name);
            let bins = record.flows.flow.iter().zip(&record.flows.sent_packets);
            let series = bins.filter(|(flow, _)| **flow as usize == number);
            let series: Vec<u64> = series.map(|(_, sent)| u64::from(*sent)).collect();
            assert_eq!(series, packets, "{} from {start_ns} ns", flow.name);
        }
    }
}

/// Returns the loss of a call, 50 datagrams a second, in intervals of two seconds.
fn losses_by_phase(call: FlowSpec, line: LinkSpec) -> Vec<Option<f64>> {
    let mut spec = run(10 * S, vec![line], vec![call]);
    spec.phases.extend((0..5).map(|part| PhaseSpec {
        name: part.to_string(),
        from_ns: part * 2 * S,
        to_ns: (part + 1) * 2 * S,
    }));
    let phases = &measure(&spec).flows[0].phases;
    (0..5).map(|part| phases.get(&part.to_string()).unwrap().lost_share).collect()
}

#[test]
fn lost_datagrams_count_in_the_phase_in_which_they_were_sent() {
    let steps = vec![RateStep { at_ns: 0, rate_bps: 64_000 }];
    let source = SourceSpec::Cbr(CbrSpec { bytes: 160, steps, voice: None });
    let call = FlowSpec { source, ..pings("call", 40 * MS, S) };
    let line_losing = |numbers: std::ops::Range<u64>| {
        let mut line = link("line", 8 * MBPS, 50_000);
        let fault = |number| NumberedFaultSpec { number, fault: FaultSpec::Lose };
        line.faults = Some(FaultsSpec {
            packets: vec![NumberedFaultsSpec {
                flow: Some(FlowId(0)),
                class: Some(PacketClassSpec::Data),
                faults: numbers.map(fault).collect(),
            }],
            ..FaultsSpec::default()
        });
        line
    };
    let none = Some(0.0);
    let lost = |numbers| losses_by_phase(call.clone(), line_losing(numbers));
    // From 5.0 s to 8.1 s.
    assert_eq!(lost(251..406), [none, none, Some(0.5), Some(1.0), Some(0.05)]);
    // Until the end of the run. Datagrams of the last 40 ms may be under way.
    assert_eq!(lost(251..600), [none, none, Some(0.5), Some(1.0), Some(1.0)]);
    assert_eq!(lost(1..600), [Some(1.0); 5]);
    // The same for a flow that starts late and stops early.
    let call = FlowSpec { start_ns: 3 * S, stop_ns: Some(7 * S), ..call };
    let lost = losses_by_phase(call, line_losing(101..600));
    assert_eq!(lost, [None, none, Some(0.5), Some(1.0), None]);
}

#[test]
fn a_quiet_path_is_measured_exactly() {
    let bottleneck = link("bottleneck", 8 * MBPS, 50_000);
    let spec = run(9_900 * MS, vec![bottleneck], vec![pings("p", 40 * MS, S)]);
    let summary = measure(&spec);
    let found = pings_of(&summary, 0);
    // 62 bytes take 62 µs.
    assert_eq!(found.rtt_max_s, Some(0.040_062));
    assert_eq!(found.echoes_by_ms, [(40, 10)]);
    assert_eq!((found.sent, found.echoed, found.lost, found.waiting), (10, 10, 0, 0));
    let overall = summary.flows[0].phases.get("overall").unwrap();
    assert_eq!(overall.rtt_min_s, Some(0.040_062));
    assert_eq!((overall.sent_packets, overall.retransmitted_packets), (10, Some(0)));
    assert_eq!(overall.cwnd_mean_bytes, None);
    assert_eq!(overall.goodput_bps, 10.0 * 20.0 * 8.0 / 9.9);
    assert_eq!(summary.fairness.get("overall").unwrap().jain, None);
}

#[test]
fn they_see_the_queue_of_others_and_do_not_count_as_one() {
    let bottleneck = link("bottleneck", 50 * MBPS, 250_000);
    let flows = vec![flow("download", "cubic", 40 * MS), pings("p", 40 * MS, 10 * MS)];
    let summary = measure(&run(20 * S, vec![bottleneck], flows));
    let rtt = |flow: usize| summary.flows[flow].phases.get("second half").unwrap().rtt_mean_s;
    let (download_s, pings_s) = (rtt(0).unwrap(), rtt(1).unwrap());
    assert!(pings_s > 0.05 && (pings_s / download_s - 1.0).abs() < 0.05, "{pings_s} {download_s}");
    assert_eq!(summary.fairness.get("overall").unwrap().jain, Some(1.0));
}

#[test]
fn an_outage_is_losses_in_a_row() {
    let mut bottleneck = link("bottleneck", 8 * MBPS, 50_000);
    let durations = [0.0, 1.0].map(|probability| Quantile { probability, value_ns: S });
    bottleneck.outages = Some(OutageSpec { mean_interval_ns: 20 * S, durations: durations.into() });
    let summary = measure(&run(2_000 * S, vec![bottleneck], vec![pings("p", 40 * MS, 100 * MS)]));
    let found = pings_of(&summary, 0);
    let (lost, events) = losses(found);
    assert_eq!(lost, found.lost);
    // One every 21 s; a second holds ten pings.
    assert!((60..140).contains(&events), "{events}");
    assert!((found.lost as f64 / events as f64 - 10.0).abs() < 1.0, "{found:?}");
}

#[test]
fn a_late_echo_is_a_loss_and_a_stopped_flow_sends_no_more() {
    let mut late = pings("p", 500 * MS, 100 * MS);
    late.source = SourceSpec::Ping { bytes: 20, every_ns: 100 * MS, timeout_ns: 400 * MS };
    late.start_ns = S;
    late.stop_ns = Some(2 * S);
    let summary = measure(&run(10 * S, vec![link("bottleneck", 8 * MBPS, 50_000)], vec![late]));
    let found = pings_of(&summary, 0);
    assert_eq!((found.sent, found.echoed, found.lost, found.waiting), (10, 0, 10, 0));
    assert_eq!(found.losses_by_length, [(10, 1)]);
    assert_eq!(found.rtt_max_s, None);
}

/// A card takes its time, and a flow may wait for another.
#[test]
fn they_leave_through_the_card_after_the_flow_before_them() {
    let mut download = flow("download", "cubic", 40 * MS);
    download.source = SourceSpec::Fixed { bytes: 100_000.into() };
    let mut after = pings("p", 40 * MS, S);
    after.after = Some(FlowId(0));
    after.nic_rate_bps = Some(MBPS);
    let summary = measure(&run(10 * S, vec![link("b", 8 * MBPS, 50_000)], vec![download, after]));
    assert_eq!(pings_of(&summary, 1).rtt_max_s, Some(0.040_558));
    assert_eq!(pings_of(&summary, 1).sent, 10);
}

/// Counts what became of pings from what the network tells.
#[derive(Default)]
struct Books {
    sent: u64,
    dropped: u64,
    echoed: u64,
    unanswered: Vec<u32>,
}

impl EventSink for Books {
    fn sent(&mut self, _: Time, _: ConnectionId, packets: u32, _: u64, _: bool) {
        self.sent += u64::from(packets);
    }
    fn dropped(&mut self, _: Time, _: LinkId, _: ConnectionId, _: DropReason, _: u32) {
        self.dropped += 1;
    }
    fn ping_reply(&mut self, _: Time, _: ConnectionId, _: Span) {
        self.echoed += 1;
    }
    fn ping_lost(&mut self, _: Time, _: ConnectionId, number: u32) {
        self.unanswered.push(number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Sent = echoed + lost + waiting, whatever the path does; and what is lost is what it dropped,
    /// there or on the way back, as nothing is late here.
    #[test]
    fn every_ping_is_accounted_for(
        seed: u64,
        loss in 0.0f64..0.5,
        jitter_ms in 0u64..300,
        reorder: bool,
        every_ms in 1u64..500,
        back: bool,
    ) {
        let mut there = link("there", 8 * MBPS, 50_000);
        there.loss = lost(loss);
        let quantiles = [(0.0, 0), (1.0, jitter_ms * MS)]
            .map(|(probability, value_ns)| Quantile { probability, value_ns });
        there.delay.jitter = Some(JitterSpec { quantiles: quantiles.into(), correlation_ns: 0, reorder });
        let mut way_back = there.clone();
        way_back.name = "back".to_owned();
        let mut flow = pings("p", 40 * MS, every_ms * MS);
        if back {
            flow.reverse_path = vec![LinkId(1)];
        }
        let mut spec = run(60 * S, vec![there, way_back], vec![flow]);
        spec.seed = seed;
        let summary = measure(&spec);
        let found = pings_of(&summary, 0);
        prop_assert_eq!(found.sent, found.echoed + found.lost + found.waiting);
        prop_assert_eq!(losses(found).0, found.lost);
        let by_ms: u64 = found.echoes_by_ms.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(by_ms, found.echoed);

        let mut books = Books::default();
        jostle_sim::run(&spec, &mut books, &|| false).unwrap();
        prop_assert_eq!((books.sent, books.echoed), (found.sent, found.echoed));
        prop_assert_eq!(books.unanswered.len() as u64, found.lost);
        prop_assert!(books.unanswered.is_sorted());
        prop_assert!(books.dropped <= found.lost + found.waiting, "{} {found:?}", books.dropped);
        // Nothing is under way longer than a second: all that waits at the end is 11 s old at most.
        prop_assert!(books.dropped >= found.lost, "{} {found:?}", books.dropped);
    }
}
