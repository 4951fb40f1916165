//! Flows that are many connections: they come when they should, and go without a trace.

use crate::common::*;
use jostle_metrics::{RunRecord, TransferTable};
use jostle_run_spec::{
    ArrivalsSpec, Distribution, DistributionKind, FlowSpec, LinkSpec, Quantity, QuicHandshake,
    SourceSpec, TraceLevel,
};
use jostle_units::LinkId;

fn exponential(mean: f64) -> Quantity {
    Quantity::Drawn(Distribution::of(DistributionKind::Exponential { mean }))
}

fn short(rtt_ns: u64, bytes: Quantity, arrivals: ArrivalsSpec) -> FlowSpec {
    FlowSpec {
        source: SourceSpec::Fixed { bytes },
        arrivals: Some(arrivals),
        ..flow("short", "cubic", rtt_ns)
    }
}

fn transfers(record: &RunRecord) -> &TransferTable {
    record.transfers.as_ref().unwrap()
}

/// A link that serves its flows in turn, each of which has a queue: as good as processor sharing.
fn fair(rate_bps: u64) -> LinkSpec {
    let mut link = link("fair", rate_bps, 1 << 20);
    link.queue = part("drr", json!({"limit": {"packets": 10_000}, "quantum": 1_514}));
    link
}

#[test]
fn a_connection_alone_takes_the_least_time_there_is() {
    let at_ns = vec![0, S, 2 * S];
    let bytes = Some(vec![1_448, 14_480, 1_448]);
    let one = short(40 * MS, 1.into(), ArrivalsSpec::Listed { at_ns, bytes });
    let record = record(&run(4 * S, vec![link("wide", 100 * MBPS, 1 << 20)], vec![one]));
    let table = transfers(&record);
    assert_eq!(table.start_s, [0.0, 1.0, 2.0]);
    assert_eq!(table.bytes, [1_448, 14_480, 1_448]);
    assert_eq!(table.connection, [0, 1, 2]);
    // Handshake and data with their ACK: two round trips; ten packets fit into the first window.
    for (completion_time_s, least_s) in table.completion_time_s.iter().zip([0.08, 0.08, 0.08]) {
        assert!((least_s..least_s + 0.002).contains(completion_time_s), "{completion_time_s} s");
    }
    assert!(table.slowdown.iter().all(|it| (1.0..1.02).contains(it)), "{:?}", table.slowdown);
    let group = &record.summary.groups[0];
    let arrived = group.arrived.as_ref().unwrap();
    assert_eq!((arrived.transfers, arrived.transfers_finished), (Some(3.0), Some(3.0)));
    assert_eq!(group.unfinished, Some(0));
}

#[test]
fn the_acks_of_connections_are_those_of_their_flow() {
    let arrivals = ArrivalsSpec::Listed { at_ns: vec![0, S], bytes: None };
    let many = short(40 * MS, 14_480.into(), arrivals);
    let wide = link("wide", 100 * MBPS, 1 << 20);
    let mut spec = run(2 * S, vec![wide], vec![flow("long", "cubic", 40 * MS), many]);
    spec.record = TraceLevel::Acks;
    let record = record(&spec);
    let acks = record.acks.as_ref().unwrap();
    let mut flows = acks.flow.clone();
    flows.sort_unstable();
    flows.dedup();
    assert_eq!(flows, [0, 1]);
}

#[test]
fn the_load_that_is_offered_is_the_one_that_was_asked_for() {
    let load = ArrivalsSpec::Load { share: 0.6, link: LinkId(0) };
    let one = short(10 * MS, exponential(30_000.0), load);
    let record = record(&run(60 * S, vec![link("wide", 50 * MBPS, 1 << 20)], vec![one]));
    let wire: u64 = transfers(&record).bytes.iter().map(|it| it + it.div_ceil(1_448) * 66).sum();
    let offered = wire as f64 * 8.0 / (60.0 * 50e6);
    // 7100 exponential sizes: the share has a standard deviation of 0.6 · √(2 ⁄ 7100) = 0.010.
    assert!((offered - 0.6).abs() < 0.03, "{offered}");
    let utilisation = record.summary.links[0].phases.get("overall").unwrap().utilisation;
    assert!((utilisation.unwrap() - 0.61).abs() < 0.035, "{utilisation:?}");
}

#[test]
fn under_processor_sharing_the_mean_slowdown_is_that_of_the_theory() {
    // M/G/1-PS: E[T | x] = x ⁄ (1 − ρ) whatever the distribution (Kleinrock 1976, section 4.4). Sizes
    // of many packets over a short way leave little of TCP's start.
    for (bytes, name) in [(exponential(1e6), "exponential"), (1_000_000.into(), "constant")] {
        let load = ArrivalsSpec::Load { share: 0.5, link: LinkId(0) };
        let one = short(MS, bytes, load);
        let record = record(&run(600 * S, vec![fair(50 * MBPS)], vec![one]));
        let table = transfers(&record);
        let large = table.bytes.iter().zip(&table.slowdown).filter(|(bytes, _)| **bytes > 200_000);
        let known: Vec<_> =
            large.map(|(_, slowdown)| *slowdown).filter(|it| !it.is_nan()).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        assert!((mean / 2.0 - 1.0).abs() < 0.1, "{name}: {mean} over {} transfers", known.len());
    }
}

#[test]
fn nothing_stays_of_connections_that_lost_packets() {
    let load = ArrivalsSpec::Load { share: 1.2, link: LinkId(0) };
    let one = short(20 * MS, exponential(20_000.0), load);
    let one = FlowSpec { stop_ns: Some(5 * S), ..one };
    let tight = link("tight", 10 * MBPS, 15_000);
    let record = record(&run(60 * S, vec![tight], vec![one]));
    let table = transfers(&record);
    assert!(table.retransmitted_packets.iter().sum::<u32>() > 100);
    assert!(table.start_s.iter().all(|start_s| *start_s < 5.0));
    // All are over long before the end, though stray packets and timers found nobody.
    assert!(table.completion_time_s.iter().all(|it| !it.is_nan()));
    let phases = &record.summary.flows[0].phases;
    let overall = phases.get("overall").unwrap();
    let bytes: u64 = table.bytes.iter().sum();
    let goodput = overall.goodput_bps * 60.0 / 8.0;
    assert!((goodput / bytes as f64 - 1.0).abs() < 1e-9, "{goodput} of {bytes} bytes");
    assert_eq!(overall.cwnd_mean_bytes, None);
}

#[test]
fn sessions_ask_one_after_the_other() {
    let source = SourceSpec::RequestResponse {
        bytes: 14_480.into(),
        think_ns: (200 * MS).into(),
        count: Some(3.into()),
    };
    let arrivals = ArrivalsSpec::Listed { at_ns: vec![0, 50 * MS], bytes: None };
    let one = FlowSpec { source, ..short(40 * MS, 1.into(), arrivals) };
    let record = record(&run(4 * S, vec![link("wide", 100 * MBPS, 1 << 20)], vec![one]));
    let table = transfers(&record);
    assert_eq!(table.connection, [0, 1, 0, 1, 0, 1]);
    assert!(table.completion_time_s.iter().all(|it| *it < 0.05), "{:?}", table.completion_time_s);
    assert!(table.slowdown.iter().all(|it| (0.99..1.6).contains(it)), "{:?}", table.slowdown);
}

#[test]
fn arrivals_and_sizes_repeat_by_seed_and_leave_other_flows_alone() {
    let table = |seed, bytes: Quantity| {
        let arrivals = ArrivalsSpec::Poisson { rate_per_s: 50.0 };
        let one = short(20 * MS, bytes, arrivals);
        let mut spec = run(5 * S, vec![link("wide", 50 * MBPS, 1 << 20)], vec![one]);
        spec.seed = seed;
        record(&spec).transfers.unwrap()
    };
    let (first, again) = (table(1, exponential(2e4)), table(1, exponential(2e4)));
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert_ne!(first.start_s, table(2, exponential(2e4)).start_s);
    // Arrivals have numbers of their own.
    assert_eq!(first.start_s, table(1, 1_000.into()).start_s);
}

#[test]
fn over_quic_they_come_and_go_as_well() {
    let arrivals = ArrivalsSpec::Poisson { rate_per_s: 20.0 };
    let one = short(20 * MS, exponential(2e4), arrivals);
    let one = FlowSpec { stop_ns: Some(2 * S), ..over_quic(one) };
    let record = record(&run(8 * S, vec![link("wide", 20 * MBPS, 30_000)], vec![one]));
    let table = transfers(&record);
    assert!(table.start_s.len() > 20);
    assert!(table.completion_time_s.iter().all(|it| !it.is_nan()), "{:?}", table.completion_time_s);
}

/// RFC 9001 §4.6: with 0-RTT, no handshake precedes the data. Nor does it in the least time.
#[test]
fn the_least_time_with_0rtt_has_no_handshake() {
    for (handshake, round_trips) in [(QuicHandshake::OneRtt, 2.0), (QuicHandshake::ZeroRtt, 1.0)] {
        let arrivals = ArrivalsSpec::Listed { at_ns: vec![0, S], bytes: None };
        let mut many = over_quic(short(40 * MS, 5_000.into(), arrivals));
        let mut one = over_quic(FlowSpec {
            source: SourceSpec::Fixed { bytes: 5_000.into() },
            start_ns: 2 * S,
            ..flow("one", "cubic", 40 * MS)
        });
        for flow in [&mut many, &mut one] {
            flow.quic.as_mut().unwrap().handshake = handshake;
        }
        let record = record(&run(4 * S, vec![link("wide", 100 * MBPS, 1 << 20)], vec![many, one]));
        let table = transfers(&record);
        // The last ACK may be delayed by 25 ms (RFC 9000 §18.2, max_ack_delay).
        let times_s = 0.04 * round_trips..0.04 * round_trips + 0.028;
        let shares = 1.0..times_s.end / times_s.start;
        for (slowdown, time_s) in table.slowdown.iter().zip(&table.completion_time_s) {
            assert!(shares.contains(slowdown), "{handshake:?}: {slowdown}");
            assert!(times_s.contains(time_s), "{handshake:?}: {time_s} s");
        }
        let efficiency = record.summary.flows[1].efficiency.unwrap();
        assert!(efficiency < 1.0 && shares.contains(&(1.0 / efficiency)), "{efficiency}");
    }
}

/// The efficiency relates to the capacity of the data path, not to that of the ACKs.
#[test]
fn the_rate_of_the_ack_path_does_not_raise_the_efficiency() {
    let efficiency = |ack_rate_bps| {
        let one = FlowSpec {
            source: SourceSpec::Fixed { bytes: 500_000.into() },
            reverse_path: vec![LinkId(1)],
            ..flow("one", "cubic", 80 * MS)
        };
        let links = vec![link("down", 10 * MBPS, 1 << 20), link("up", ack_rate_bps, 1 << 20)];
        measure(&run(10 * S, links, vec![one])).flows[0].efficiency.unwrap()
    };
    let (fast, slow) = (efficiency(100 * MBPS), efficiency(MBPS));
    assert!(fast < 0.9 && slow <= fast, "{fast}, {slow}");
}
