//! Routes that change during a run.

use jostle_metrics::{EventSink, LinkSummary};
use jostle_run_spec::*;
use jostle_units::{ConnectionId, LinkId, Time};

use crate::common::*;

/// A path with a delay, and the way back.
fn path(name: &str, rate_bps: u64, delay_ns: u64) -> [LinkSpec; 2] {
    let way = |name, rate_bps| {
        let mut way = link(name, rate_bps, 1 << 24);
        way.delay = constant_delay(delay_ns);
        way
    };
    [way(name, rate_bps), way(&format!("{name} back"), 100 * rate_bps)]
}

fn route(at_ns: u64, path: &[u32], reverse_path: &[u32]) -> RouteSpec {
    let links = |numbers: &[u32]| numbers.iter().copied().map(LinkId).collect();
    RouteSpec { at_ns, path: links(path), reverse_path: links(reverse_path) }
}

/// A flow over a path of 50 ms one way, then over one of 10 ms, and back. 0 and 2 carry data, 1 and
/// 3 ACKs.
fn moved(flow: FlowSpec) -> RunSpec {
    let [far, far_back] = path("far", 20 * MBPS, 50 * MS);
    let [near, near_back] = path("near", 10 * MBPS, 10 * MS);
    let routes = vec![route(4 * S, &[2], &[3]), route(8 * S, &[0], &[1])];
    let flow = FlowSpec { reverse_path: vec![LinkId(1)], routes, ..flow };
    run(12 * S, vec![far, far_back, near, near_back], vec![flow])
}

/// The number of the datagrams of a source at a constant rate, and the times at which they arrive.
#[derive(Default)]
struct Arrivals(Vec<Time>);

impl EventSink for Arrivals {
    fn received(&mut self, now: Time, _: ConnectionId, _: u32) {
        self.0.push(now);
    }
}

fn cbr() -> FlowSpec {
    let steps = vec![RateStep { at_ns: 0, rate_bps: 8 * 478 * 1_000 }];
    FlowSpec {
        transport: Transport::Udp,
        slow_start: None,
        // One datagram per millisecond.
        source: SourceSpec::Cbr(CbrSpec { bytes: 478, steps, voice: None }),
        ..flow("cbr", "none", 0)
    }
}

#[test]
fn packets_on_the_old_path_are_overtaken_and_none_is_lost() {
    let spec = moved(cbr());
    spec.validate().unwrap();
    let mut arrivals = Arrivals::default();
    jostle_sim::run(&spec, &mut arrivals, &|| false).unwrap();
    // One per millisecond; the last 50 ms are on the way.
    assert!((11_945..=11_950).contains(&arrivals.0.len()), "{}", arrivals.0.len());
    let between = |from_ms: u64, to_ms: u64| {
        let within = |at: &&Time| (from_ms * MS..to_ms * MS).contains(&at.as_ns());
        arrivals.0.iter().filter(within).count()
    };
    // For 40 ms, packets of both paths arrive: those of the last 50 ms before the change, and new
    // ones after 10 ms.
    assert_eq!([between(3_900, 3_940), between(4_012, 4_048), between(4_060, 4_100)], [40, 72, 40]);
    // Back on the long path, nothing arrives from 10 ms to 50 ms after the change.
    assert_eq!(between(8_012, 8_048), 0);
    assert_eq!(between(8_060, 8_100), 40);
}

/// Which links are used in a phase.
fn used(links: &[LinkSummary], phase: &str) -> Vec<bool> {
    links.iter().map(|link| link.phases.get(phase).unwrap().utilisation.unwrap() > 0.0).collect()
}

#[test]
fn tcp_and_quic_follow_their_route_in_both_directions() {
    for transport in ["tcp", "quic"] {
        let download = flow("download", "cubic", 0);
        let mut spec = moved(if transport == "quic" { over_quic(download) } else { download });
        spec.phases = [("overall", 0, 12), ("first", 2, 4), ("second", 5, 8), ("third", 9, 12)]
            .map(|(name, from, to)| PhaseSpec {
                name: name.to_owned(),
                from_ns: from * S,
                to_ns: to * S,
            })
            .to_vec();
        let summary = measure(&spec);
        let at_far = [true, true, false, false];
        assert_eq!(used(&summary.links, "first"), at_far, "{transport}");
        assert_eq!(used(&summary.links, "second"), at_far.map(|it| !it), "{transport}");
        assert_eq!(used(&summary.links, "third"), at_far, "{transport}");
        let phase = |name: &str| summary.flows[0].phases.get(name).unwrap();
        for (name, least_bps) in [("second", 9.0e6), ("third", 17.0e6)] {
            let goodput_bps = phase(name).goodput_bps;
            assert!(goodput_bps > least_bps, "{transport} {name}: {goodput_bps}");
        }
        let drops: u64 =
            summary.links.iter().map(|it| it.phases.get("overall").unwrap().dropped_packets).sum();
        assert_eq!(drops, 0, "{transport}: the buffers hold a window");
    }
}

#[test]
fn a_change_to_an_equal_path_changes_nothing_but_the_link() {
    let [one, back] = path("one", 20 * MBPS, 20 * MS);
    let [other, other_back] = path("other", 20 * MBPS, 20 * MS);
    let flow = FlowSpec { reverse_path: vec![LinkId(1)], ..cbr() };
    let links = vec![one, back, other, other_back];
    let fixed = run(4 * S, links, vec![flow]);
    let mut changed = fixed.clone();
    changed.flows[0].routes = vec![route(2 * S, &[2], &[3])];
    let arrivals = |spec: &RunSpec| {
        spec.validate().unwrap();
        let mut arrivals = Arrivals::default();
        jostle_sim::run(spec, &mut arrivals, &|| false).unwrap();
        arrivals.0
    };
    assert_eq!(arrivals(&fixed), arrivals(&changed));
}

#[test]
fn connections_and_the_network_card_follow_the_route_of_their_flow() {
    let every_50_ms = (0..240).map(|i| i * 50 * MS).collect();
    let pages = FlowSpec {
        source: SourceSpec::Fixed { bytes: 20_000.into() },
        arrivals: Some(ArrivalsSpec::Listed { at_ns: every_50_ms, bytes: None }),
        ..flow("pages", "cubic", 0)
    };
    let behind_a_card = FlowSpec { nic_rate_bps: Some(50 * MBPS), ..flow("download", "cubic", 0) };
    for flow in [pages, behind_a_card] {
        let mut spec = moved(flow);
        spec.phases.push(PhaseSpec { name: "second".to_owned(), from_ns: 5 * S, to_ns: 8 * S });
        assert_eq!(used(&measure(&spec).links, "second"), [false, false, true, true]);
    }
}
