//! Flows that proxies split into connections: what arrives, what is held back, what is told.

use crate::common;
use crate::common::{MBPS, MS, S, constant_delay, flow, link, lost, record, run};
use jostle_metrics::{AckEvent, EventSink};
use jostle_run_spec::{FlowSpec, LinkSpec, RunSpec, SourceSpec, VideoChoice, VideoSpec};
use jostle_units::{ConnectionId, FlowId, LinkId, Span, Time};
use proptest::prelude::*;

const SEGMENT: u64 = 1_448;

/// A link of a rate and a delay, with a queue of `packets`.
fn hop(name: &str, rate_bps: u64, delay_ns: u64, packets: u64) -> LinkSpec {
    LinkSpec { delay: constant_delay(delay_ns), ..link(name, rate_bps, packets * 1_514) }
}

/// The connection that goes on from where `from` ends, over a link of its own.
fn relay(name: &str, controller: &str, from: u32, over: u32, buffer_bytes: u64) -> FlowSpec {
    let source = SourceSpec::Relay { from: FlowId(from), buffer_bytes };
    FlowSpec { source, path: vec![LinkId(over)], ..flow(name, controller, 20 * MS) }
}

/// 20 Mbit/s and 20 ms to the proxy, then a satellite of 10 Mbit/s and 520 ms.
fn satellite(bytes: u64, buffer_bytes: u64) -> RunSpec {
    let links = vec![hop("lan", 20 * MBPS, 0, 200), hop("sat", 10 * MBPS, 500 * MS, 200)];
    let first = FlowSpec {
        source: SourceSpec::Fixed { bytes: bytes.into() },
        receive_window_bytes: buffer_bytes,
        initial_receive_window_bytes: buffer_bytes.min(65_535),
        ..flow("f", "cubic", 20 * MS)
    };
    run(60 * S, links, vec![first, relay("f@sat", "hybla", 0, 1, buffer_bytes)])
}

/// What every connection has delivered and what of it is acknowledged, and how much a proxy ever held.
#[derive(Debug)]
struct Hops {
    relayed: Vec<Option<FlowId>>,
    buffers: Vec<u64>,
    delivered: Vec<u64>,
    acked: Vec<u64>,
    most_held: Vec<u64>,
    opened: Vec<Option<Time>>,
    completed: Vec<Option<Time>>,
    wrong: Option<String>,
}

impl Hops {
    fn new(spec: &RunSpec) -> Self {
        let flows = spec.flows.len();
        let buffer = |flow: &FlowSpec| match flow.source {
            // A proxy reads no more than its buffer, and its receive buffer holds the rest: a segment
            // more than its window, for one is not counted yet when it is acknowledged.
            SourceSpec::Relay { from, buffer_bytes } => {
                buffer_bytes + spec.flows[from.index()].receive_window_bytes + SEGMENT
            }
            _ => u64::MAX,
        };
        Self {
            relayed: spec.flows.iter().map(|flow| flow.source.relays()).collect(),
            buffers: spec.flows.iter().map(buffer).collect(),
            delivered: vec![0; flows],
            acked: vec![0; flows],
            most_held: vec![0; flows],
            opened: vec![None; flows],
            completed: vec![None; flows],
            wrong: None,
        }
    }

    fn check(&mut self, flow: usize, now: Time) {
        let Some(from) = self.relayed[flow] else { return };
        let came = self.delivered[from.index()];
        if self.delivered[flow] > came {
            let gone = self.delivered[flow];
            self.wrong = Some(format!("{now}: {gone} bytes left a proxy that had {came}"));
        }
        let held = came - self.acked[flow];
        self.most_held[flow] = self.most_held[flow].max(held);
        if held > self.buffers[flow] {
            self.wrong = Some(format!("{now}: {held} bytes in a proxy for {}", self.buffers[flow]));
        }
    }
}

impl EventSink for Hops {
    fn opened(&mut self, now: Time, flow: FlowId) {
        self.opened[flow.index()] = Some(now);
    }
    fn delivered(&mut self, now: Time, flow: ConnectionId, payload_bytes: u64) {
        self.delivered[flow.index()] += payload_bytes;
        (0..self.relayed.len()).for_each(|it| self.check(it, now));
    }
    fn acked(&mut self, now: Time, flow: ConnectionId, row: &AckEvent) {
        self.acked[flow.index()] = row.acked_bytes;
        self.check(flow.index(), now);
    }
    fn flow_completed(&mut self, now: Time, flow: ConnectionId, _: Span) {
        let last = self.acked.len() - 1;
        if self.acked[last] != self.delivered[0] {
            self.wrong = Some(format!("complete, and {} bytes acknowledged", self.acked[last]));
        }
        self.completed[flow.index()] = Some(now);
    }
}

fn hops(spec: &RunSpec) -> Hops {
    spec.validate().unwrap();
    let mut hops = Hops::new(spec);
    jostle_sim::run(spec, &mut hops, &|| false).unwrap();
    assert_eq!(hops.wrong, None, "{}", serde_json::to_string(spec).unwrap());
    hops
}

#[test]
fn the_second_connection_opens_when_the_first_syn_arrives() {
    let found = hops(&satellite(1_000_000, 4_000_000));
    // A SYN of 74 bytes on 20 Mbit/s; the way back has the 20 ms.
    assert_eq!(found.opened[1], Some(Time::from_ns(74 * 8 * 1_000 / 20)));
    assert_eq!(found.opened[0], Some(Time::ZERO));
}

#[test]
fn a_flow_is_complete_when_the_last_receiver_has_everything() {
    let found = hops(&satellite(3_000_000, 4_000_000));
    assert_eq!(found.delivered, [3_000_000, 3_000_000]);
    assert_eq!(found.acked, found.delivered);
    // The buffer takes all of it long before the satellite has carried it: 2.5 s at 10 Mbit/s.
    assert!(found.most_held[1] > 2_000_000, "{found:?}");
    assert!(found.completed[0].unwrap() > Time::from_ns(2_500 * MS), "{found:?}");
    assert_eq!(found.completed[1], None, "what passes on a flow's data has no end of its own");
}

#[test]
fn a_small_buffer_holds_the_sender_back_by_its_window() {
    let (small, large) = (satellite(4_000_000, 40 * SEGMENT), satellite(4_000_000, 4_000_000));
    let (few, many) = (hops(&small), hops(&large));
    assert!(few.most_held[1] <= 81 * SEGMENT, "{few:?}");
    // 40 segments per 520 ms, and what slow start takes.
    let least = Span::from_ms(520 * (4_000_000 / (40 * SEGMENT) - 10));
    assert!(few.completed[0].unwrap() > Time::ZERO + least, "{few:?}");
    assert!(many.completed[0].unwrap() < Time::ZERO + Span::from_secs(8), "{many:?}");
    // Nothing is lost for it: the first connection has room in its queue for its window.
    let summary = record(&small).summary;
    assert_eq!(summary.flows[0].phases.get("overall").unwrap().retransmitted_packets, Some(0));
}

#[test]
fn the_flow_has_the_goodput_of_its_receiver_and_the_rtt_of_its_sender() {
    let mut spec = satellite(1, 2_000_000);
    spec.flows[0].source = SourceSpec::Bulk;
    let record = record(&spec);
    let phase = |flow: usize| record.summary.flows[flow].phases.get("second half").unwrap();
    assert_eq!(phase(0).goodput_bps, phase(1).goodput_bps);
    assert_eq!(phase(0).throughput_bps, phase(1).throughput_bps);
    assert!(phase(0).rtt_mean_s.unwrap() < 0.2, "{:?}", phase(0));
    assert!(phase(1).rtt_mean_s.unwrap() > 0.52, "{:?}", phase(1));
    // One flow, and nobody that it shares with.
    assert_eq!(phase(0).share, Some(1.0));
    assert_eq!(phase(1).share, None);
    let total = record.summary.totals.get("second half").unwrap().total_throughput_bps;
    assert_eq!(total, phase(0).throughput_bps);
    // The series agrees with the summary.
    let of = |flow: u32| {
        let table = &record.flows;
        let rows = (0..table.flow.len()).filter(|&row| table.flow[row] == flow);
        rows.map(|row| table.goodput_bps[row]).collect::<Vec<_>>()
    };
    assert_eq!(of(0), of(1));
    assert!(of(0).iter().sum::<f64>() > 0.0);
}

/// The proxy may stand beside the sender: what that sends is there at once.
#[test]
fn totals_ignore_later_legs() {
    let mut spec = satellite(2_000_000, 300_000);
    spec.links[1].loss = lost(0.01);
    let summary = record(&spec).summary;
    let [first, relay] = [0, 1].map(|flow: usize| {
        summary.flows[flow].phases.get("overall").unwrap().retransmitted_packets.unwrap()
    });
    let total = summary.totals.get("overall").unwrap().total_retransmitted_packets;
    assert!(relay > 0, "{relay}");
    assert_eq!(total, Some(first), "{relay} of the second connection");
}

#[test]
fn a_way_without_links_takes_no_time_but_the_flow_s_own() {
    let mut spec = satellite(500_000, 1_000_000);
    spec.flows[0].path = vec![];
    spec.links.remove(0);
    spec.flows[1].path = vec![LinkId(0)];
    let found = hops(&spec);
    assert_eq!(found.opened[1], Some(Time::ZERO));
    assert_eq!(found.delivered, [500_000, 500_000]);
    let first = record(&spec).summary.flows[0].phases.get("overall").unwrap().rtt_mean_s;
    // Delayed ACKs aside.
    assert!((0.02..0.021).contains(&first.unwrap()), "{first:?}");
}

/// Nobody but a flow whose data are passed on can do without a link.
#[test]
fn senders_beside_their_receiver_are_refused() {
    let mut spec = satellite(1, 1_000_000);
    spec.flows[1].path = vec![];
    let problem = spec.validate().unwrap_err().to_string();
    assert!(problem.contains("flows[1].path"), "{problem}");
}

#[test]
fn connections_are_passed_on_once_and_from_before() {
    let find = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = satellite(1, 1_000_000);
        change(&mut spec);
        spec.validate().unwrap_err().to_string()
    };
    let twice = find(&|spec| spec.flows.push(relay("again", "cubic", 0, 1, 100_000)));
    assert!(twice.contains("flows[1].source.from"), "{twice}");
    let itself = find(&|spec| {
        spec.flows[1].source = SourceSpec::Relay { from: FlowId(1), buffer_bytes: 100_000 };
    });
    assert!(itself.contains("flows[1].source.from"), "{itself}");
    let tiny = find(&|spec| {
        spec.flows[1].source = SourceSpec::Relay { from: FlowId(0), buffer_bytes: 1_447 };
    });
    assert!(tiny.contains("flows[1].source.buffer_bytes"), "{tiny}");
    let other = find(&|spec| spec.flows[1].mtu_bytes = 1_400);
    assert!(other.contains("flows[1].mtu_bytes"), "{other}");
    let quic = find(&|spec| spec.flows[0] = common::over_quic(spec.flows[0].clone()));
    assert!(quic.contains("flows[1].source.from"), "{quic}");
    let film = find(&|spec| {
        spec.flows[0].source = SourceSpec::Video(VideoSpec {
            bitrates_bps: vec![1_000_000],
            segment_ns: S,
            segments: None,
            variation: 0.0,
            choice: VideoChoice::Throughput { samples: 20, safety: 0.85 },
            startup_ns: S,
            buffer_ns: 60 * S,
        });
    });
    assert!(film.contains("flows[1].source.from"), "{film}");
    let stopped = find(&|spec| spec.flows[1].stop_ns = Some(S));
    assert!(stopped.contains("flows[1].stop_ns"), "{stopped}");
}

/// A response is there when the flow's receiver has it, and the next is asked for after that.
#[test]
fn responses_are_those_of_the_receiver() {
    let mut spec = satellite(1, 1_000_000);
    spec.flows[0].source = SourceSpec::RequestResponse {
        bytes: 50_000.into(),
        think_ns: (100 * MS).into(),
        count: Some(jostle_run_spec::Quantity::Constant(3)),
    };
    let record = record(&spec);
    let phase = record.summary.flows[0].phases.get("overall").unwrap();
    assert_eq!(phase.responses, Some(3));
    // The first waits for both handshakes, each for a way over the satellite of 500 ms.
    assert!(phase.response_time_mean_s.unwrap() > 0.5, "{phase:?}");
    // Three of them, each with the satellite's round trip, and two pauses.
    let completion_time_s = record.summary.flows[0].completion_time_s.unwrap();
    assert!((3.0 * 0.52 + 0.2..6.0).contains(&completion_time_s), "{completion_time_s}");
}

/// What proxies hold when the application stops still arrives; the flow has not completed.
#[test]
fn a_flow_that_is_stopped_empties_its_proxies() {
    let mut spec = satellite(20_000_000, 4_000_000);
    spec.flows[0].stop_ns = Some(2 * S);
    let found = hops(&spec);
    assert_eq!(found.delivered[0], found.delivered[1]);
    assert!(found.delivered[0] > 1_000_000, "{found:?}");
    assert_eq!(found.completed, [None, None]);
}

#[derive(Clone, Debug)]
struct Chain {
    hops: Vec<(u64, u64, u64, f64, bool)>,
    buffers: Vec<u64>,
    windows: Vec<u64>,
    bytes: u64,
    controllers: Vec<usize>,
    gro: bool,
    seed: u64,
}

const CONTROLLERS: [&str; 5] = ["reno", "cubic", "bbr", "hybla", "vivace"];

impl Chain {
    fn spec(&self) -> RunSpec {
        let links =
            (0..).zip(&self.hops).map(|(i, &(rate, delay_ms, packets, loss, _))| LinkSpec {
                loss: lost(loss),
                ..hop(&format!("l{i}"), rate * MBPS, delay_ms * MS, packets)
            });
        let links: Vec<_> = links.collect();
        let flows = (0u32..).zip(&self.hops).map(|(i, &(.., beside))| {
            let at = i as usize;
            let window = self.windows[at] * SEGMENT;
            FlowSpec {
                path: if beside && at + 1 < self.hops.len() { vec![] } else { vec![LinkId(i)] },
                receive_window_bytes: window,
                initial_receive_window_bytes: window.min(65_535),
                receive_window_autotuning: self.gro,
                gro: self.gro,
                source: if i == 0 {
                    SourceSpec::Fixed { bytes: self.bytes.into() }
                } else {
                    let buffer_bytes = self.buffers[at] * SEGMENT;
                    SourceSpec::Relay { from: FlowId(i - 1), buffer_bytes }
                },
                ..flow(&format!("f{i}"), CONTROLLERS[self.controllers[at]], 5 * MS)
            }
        });
        let flows = flows.collect();
        RunSpec { seed: self.seed, ..run(4_000 * S, links, flows) }
    }
}

fn chain() -> impl Strategy<Value = Chain> {
    let hop = (1..50u64, 0..100u64, 4..200u64, prop_oneof![Just(0.0), 0.0..0.03], any::<bool>());
    let hops = prop::collection::vec(hop, 2..5);
    let sizes = || prop::collection::vec(1..300u64, 5);
    let controllers = prop::collection::vec(0..CONTROLLERS.len(), 5);
    (hops, sizes(), sizes(), 1..600_000u64, controllers, any::<bool>(), any::<u64>()).prop_map(
        |(hops, buffers, windows, bytes, controllers, gro, seed)| Chain {
            hops,
            buffers,
            windows,
            bytes,
            controllers,
            gro,
            seed: seed >> 1,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Over any chain of connections, with losses and buffers down to a segment: no proxy sends what
    /// it does not have nor holds more than it may, and every byte arrives.
    #[test]
    fn every_byte_crosses_every_hop_once(chain in chain()) {
        let spec = chain.spec();
        let found = hops(&spec);
        prop_assert!(found.delivered.iter().all(|it| *it == chain.bytes), "{found:?}");
        prop_assert_eq!(&found.acked, &found.delivered);
        prop_assert!(found.completed[0].is_some(), "{found:?}");
    }
}
