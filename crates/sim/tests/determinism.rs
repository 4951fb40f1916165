//! Same spec, same events; and nobody's random numbers depend on who else is there.

use crate::common::{MBPS, MS, S, bdp_bytes, flow, link, lost, run};
use crate::random;
use jostle_link::{DropReason, Service};
use jostle_metrics::{AckEvent, EventSink, FlowState};
use jostle_run_spec::{
    Distribution, DistributionKind, JitterSpec, OutageSpec, Quantile, Quantity, RunSpec, SourceSpec,
};
use jostle_sim::{Controllers, Stepper};
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;

fn exponential(mean: u64) -> Quantity {
    Quantity::Drawn(Distribution::of(DistributionKind::Exponential { mean: mean as f64 }))
}

/// FNV-1a over everything that a sink is told, for each flow and each link by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digest {
    flows: Vec<u64>,
    links: Vec<u64>,
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(hash: &mut u64, words: &[u64]) {
    for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl Digest {
    fn new(spec: &RunSpec) -> Self {
        Self { flows: vec![OFFSET; spec.flows.len()], links: vec![OFFSET; spec.links.len()] }
    }

    fn of(spec: &RunSpec) -> Self {
        spec.validate().unwrap();
        let mut digest = Self::new(spec);
        jostle_sim::run(spec, &mut digest, &|| false).unwrap();
        digest
    }

    fn flow(&mut self, flow: ConnectionId, words: &[u64]) {
        mix(&mut self.flows[flow.index()], words);
    }

    fn link(&mut self, link: LinkId, words: &[u64]) {
        mix(&mut self.links[link.index()], words);
    }
}

impl EventSink for Digest {
    fn sent(&mut self, now: Time, flow: ConnectionId, packets: u32, wire_bytes: u64, again: bool) {
        self.flow(flow, &[1, now.as_ns(), packets.into(), wire_bytes, again.into()]);
    }
    fn received(&mut self, now: Time, flow: ConnectionId, wire_bytes: u32) {
        self.flow(flow, &[2, now.as_ns(), wire_bytes.into()]);
    }
    fn delivered(&mut self, now: Time, flow: ConnectionId, payload_bytes: u64) {
        self.flow(flow, &[3, now.as_ns(), payload_bytes]);
    }
    fn acked(&mut self, now: Time, flow: ConnectionId, row: &AckEvent) {
        let rtt = row.rtt.unwrap_or(Span::MAX).as_ns();
        let lost = row.lost_packets.into();
        let words = [row.cwnd_bytes, row.in_flight_bytes, row.acked_bytes, lost];
        self.flow(flow, &[4, now.as_ns(), rtt]);
        self.flow(flow, &words);
    }
    fn flow_completed(&mut self, now: Time, flow: ConnectionId, after: Span) {
        self.flow(flow, &[5, now.as_ns(), after.as_ns()]);
    }
    fn queue_changed(&mut self, now: Time, link: LinkId, bytes: u64, packets: u64) {
        self.link(link, &[6, now.as_ns(), bytes, packets]);
    }
    fn link_sent(&mut self, now: Time, _: Time, link: LinkId, wire_bytes: u32, _: Span) {
        self.link(link, &[7, now.as_ns(), wire_bytes.into()]);
    }
    fn dropped(
        &mut self,
        now: Time,
        link: LinkId,
        _flow: ConnectionId,
        reason: DropReason,
        _queued_bytes: u32,
    ) {
        self.link(link, &[8, now.as_ns(), reason as u64]);
    }
    fn marked(&mut self, now: Time, link: LinkId, _flow: ConnectionId, reason: DropReason) {
        self.link(link, &[9, now.as_ns(), reason as u64]);
    }
    fn flow_state(&mut self, now: Time, flow: FlowId, state: &FlowState) {
        let words = [state.srtt.as_ns(), state.cwnd_bytes, state.in_flight_bytes];
        self.flow(flow.into(), &[10, now.as_ns()]);
        self.flow(flow.into(), &words);
    }
    fn controller_state(&mut self, now: Time, flow: FlowId, _quantity: &'static str, value: f64) {
        self.flow(flow.into(), &[11, now.as_ns(), value.to_bits()]);
    }
    fn link_state(&mut self, now: Time, link: LinkId, queue_bytes: u64, service: Service) {
        self.link(link, &[12, now.as_ns(), queue_bytes, service.throughput_bytes.to_bits()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_same_spec_gives_the_same_events(case in random::any_run(false)) {
        prop_assert_eq!(Digest::of(&case.0), Digest::of(&case.0));
    }

    /// However often a run stops on its way, and wherever.
    #[test]
    fn stops_change_nothing(
        case in random::any_run(false),
        shares in prop::collection::vec(0.0..1.0, 0..300),
    ) {
        let spec = &case.0;
        let none: Controllers = Box::new(|flow, _| Err(flow.name.clone()));
        let mut stepper = Stepper::new(spec.clone(), Digest::new(spec), none).unwrap();
        let mut stops: Vec<_> =
            shares.iter().map(|share| (share * spec.duration_ns as f64) as u64).collect();
        stops.sort_unstable();
        for stop in stops {
            stepper.run_until(Time::from_ns(stop), &|| false).unwrap();
        }
        stepper.run_until(Time::NEVER, &|| false).unwrap();
        prop_assert!(stepper.is_over());
        prop_assert_eq!(stepper.finish().unwrap().1, Digest::of(spec));
    }
}

/// Everything random that there is, on a link that is never full.
fn random_but_roomy() -> RunSpec {
    let mut wide = link("wide", 1_000 * MBPS, bdp_bytes(1_000 * MBPS, S));
    wide.loss = lost(0.01);
    let durations = [(0.0, MS), (1.0, 50 * MS)];
    let points = durations.map(|(probability, value_ns)| Quantile { probability, value_ns });
    wide.outages = Some(OutageSpec { mean_interval_ns: S, durations: points.to_vec() });
    wide.delay.jitter =
        Some(JitterSpec { quantiles: points.to_vec(), correlation_ns: 10 * MS, reorder: false });
    let sources = [
        SourceSpec::OnOff { on_ns: exponential(200 * MS), off_ns: exponential(300 * MS) },
        SourceSpec::RequestResponse {
            bytes: exponential(30_000),
            think_ns: exponential(100 * MS),
            count: None,
        },
        SourceSpec::Bulk,
    ];
    let flows = ["vivace", "cubic", "bbr"].into_iter().zip(sources).enumerate().map(
        |(i, (controller, source))| {
            let mut flow = flow(&format!("{controller} flow"), controller, 20 * MS);
            flow.source = source;
            flow.start_ns = 17 + 12_345_678 * i as u64;
            flow
        },
    );
    run(5 * S, vec![wide], flows.collect())
}

#[test]
fn another_seed_gives_other_events() {
    let spec = random_but_roomy();
    let other = RunSpec { seed: spec.seed + 1, ..spec.clone() };
    let (one, two) = (Digest::of(&spec), Digest::of(&other));
    assert!(one.flows.iter().zip(&two.flows).all(|(a, b)| a != b));
    assert_ne!(one.links, two.links);
}

/// A flow that comes in the last nanosecond leaves everything before it as it was.
#[test]
fn a_flow_that_never_starts_changes_nothing() {
    let spec = random_but_roomy();
    let before = Digest::of(&spec);
    for position in 0..=spec.flows.len() {
        let mut more = spec.clone();
        let mut late = flow("late", "reno", 20 * MS);
        late.start_ns = spec.duration_ns - 1;
        more.flows.insert(position, late);
        let mut after = Digest::of(&more);
        after.flows.remove(position);
        assert_eq!(after.flows, before.flows, "inserted at {position}");
    }
}

#[test]
fn the_order_of_flows_does_not_matter() {
    let spec = random_but_roomy();
    let before = Digest::of(&spec);
    let mut turned = spec;
    turned.flows.reverse();
    let mut after = Digest::of(&turned);
    after.flows.reverse();
    assert_eq!(after, before);
}

/// A link's random numbers are its own: another link beside it changes nothing.
#[test]
fn an_unused_link_changes_nothing() {
    let spec = random_but_roomy();
    let before = Digest::of(&spec);
    let mut more = spec;
    let mut unused = more.links[0].clone();
    unused.name = "unused".to_owned();
    more.links.insert(0, unused);
    for flow in &mut more.flows {
        flow.path = vec![LinkId(1)];
    }
    let after = Digest::of(&more);
    assert_eq!(after.flows, before.flows);
    assert_eq!(after.links[1..], before.links);
}

/// A renamed flow has other random numbers.
#[test]
fn names_choose_the_random_numbers() {
    let spec = random_but_roomy();
    let before = Digest::of(&spec);
    let mut renamed = spec;
    renamed.flows[0].name = "somebody else".to_owned();
    assert_ne!(Digest::of(&renamed).flows[0], before.flows[0]);
}
