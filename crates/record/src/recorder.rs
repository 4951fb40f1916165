//! The sink that measures.

use jostle_units::{Span, Time};

use crate::flow_meter::FlowMeter;
use crate::link_meter::{LinkMeter, LinkState};
use crate::run_record::{self, RunRecord};
use crate::sink::{AckRow, FlowState, Sink};
use crate::tables::{AckTable, FlowTable, InternalTable, seconds, seconds_or_nan};
use crate::timeline::Timeline;
use crate::{PhaseSpec, RunSpec, TraceLevel, Transport};

/// What of a flow's spec its record needs.
#[derive(Clone, Debug)]
pub(crate) struct FlowIdentity {
    pub name: String,
    pub transport: Transport,
    pub controller: String,
    pub start: Time,
    pub stop: Time,
}

impl FlowIdentity {
    /// A controller takes its share.
    pub fn competes(&self) -> bool {
        self.transport == Transport::Tcp
    }
}

/// Measures a run.
///
/// Every sample is accumulated once: into counters that only grow, copied at the ends of intervals
/// and at the boundaries of phases, and into the distributions of the segment between two
/// boundaries. [`finish`](Self::finish) puts phases together from segments.
///
/// Intervals end at every multiple of `interval_ns` and at the end of the run. The simulator tells
/// each with one [`flow_state`](Sink::flow_state) per flow and one
/// [`link_state`](Sink::link_state) per link.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(crate) timeline: Timeline,
    pub(crate) phases: Vec<PhaseSpec>,
    pub(crate) flow_identities: Vec<FlowIdentity>,
    pub(crate) link_names: Vec<String>,
    pub(crate) flows: Vec<FlowMeter>,
    pub(crate) links: Vec<LinkMeter>,
    pub(crate) flow_table: FlowTable,
    pub(crate) internals: InternalTable,
    pub(crate) acks: Option<AckTable>,
    /// Segments that ended.
    pub(crate) closed: usize,
    /// Bytes that each link could have carried until the end of each of them.
    pub(crate) offered_bytes: Vec<f64>,
}

impl Recorder {
    /// A recorder for one run of a valid `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let timeline = Timeline::new(spec);
        let identity = |flow: &crate::FlowSpec| FlowIdentity {
            name: flow.name.clone(),
            transport: flow.transport,
            controller: flow.controller.name.clone(),
            // Of those that wait for another, `opened` tells.
            start: if flow.after.is_some() { Time::NEVER } else { Time::from_ns(flow.start_ns) },
            stop: flow.stop_ns.map_or(Time::NEVER, Time::from_ns),
        };
        let flow_identities: Vec<_> = spec.flows.iter().map(identity).collect();
        Self {
            phases: spec.phases.clone(),
            flows: flow_identities
                .iter()
                .map(|flow| {
                    let meter = FlowMeter::new(flow.stop, timeline.segments());
                    if flow.competes() { meter } else { meter.with_pings() }
                })
                .collect(),
            flow_identities,
            link_names: spec.links.iter().map(|link| link.name.clone()).collect(),
            links: spec.links.iter().map(|_| LinkMeter::new(&timeline)).collect(),
            flow_table: FlowTable::with_capacity(timeline.bins() * spec.flows.len()),
            internals: InternalTable::default(),
            acks: (spec.trace == TraceLevel::Acks).then(AckTable::default),
            closed: 0,
            offered_bytes: Vec::with_capacity(timeline.segments() * spec.links.len()),
            timeline,
        }
    }

    /// Ends the run: the measures and all columns.
    pub fn finish(mut self) -> RunRecord {
        while self.closed < self.timeline.segments() {
            // The simulator did not tell what the links could have carried.
            self.offered_bytes.extend(self.links.iter().map(|_| f64::NAN));
            self.close_segments(self.timeline.segment_end(self.closed));
        }
        for link in &mut self.links {
            link.finish(&self.timeline);
        }
        run_record::of(self)
    }

    fn close_segments(&mut self, now: Time) {
        for flow in &mut self.flows {
            flow.close_segment(now);
        }
        self.closed += 1;
    }
}

impl Sink for Recorder {
    fn opened(&mut self, now: Time, flow: u32) {
        self.flow_identities[flow as usize].start = now;
    }

    #[inline]
    fn sent(&mut self, _now: Time, flow: u32, packets: u32, wire_bytes: u64, retransmission: bool) {
        self.flows[flow as usize].sent(packets, wire_bytes, retransmission);
    }

    #[inline]
    fn received(&mut self, _now: Time, flow: u32, wire_bytes: u32) {
        self.flows[flow as usize].received(wire_bytes);
    }

    #[inline]
    fn delivered(&mut self, _now: Time, flow: u32, payload_bytes: u64) {
        self.flows[flow as usize].delivered(payload_bytes);
    }

    #[inline]
    fn acked(&mut self, now: Time, flow: u32, row: &AckRow) {
        self.flows[flow as usize].acked(now, row);
        if let Some(acks) = &mut self.acks {
            acks.push(now, flow, row);
        }
    }

    fn echoed(&mut self, _now: Time, flow: u32, rtt: Span) {
        self.flows[flow as usize].echoed(rtt);
    }

    fn unanswered(&mut self, _now: Time, flow: u32, number: u32) {
        self.flows[flow as usize].unanswered(number);
    }

    fn completed(&mut self, now: Time, flow: u32, after: Span) {
        self.flows[flow as usize].completed(now, after);
    }

    #[inline]
    fn queue_changed(&mut self, now: Time, link: u32, bytes: u64, _packets: u64) {
        self.links[link as usize].queue_changed(now, bytes, &self.timeline);
    }

    #[inline]
    fn link_sent(&mut self, now: Time, link: u32, wire_bytes: u32) {
        self.links[link as usize].sent(now, wire_bytes, &self.timeline);
    }

    fn dropped(&mut self, now: Time, link: u32, _flow: u32, reason: u8) {
        self.links[link as usize].dropped(now, reason, &self.timeline);
    }

    fn marked(&mut self, now: Time, link: u32, _flow: u32, reason: u8) {
        self.links[link as usize].marked(now, reason, &self.timeline);
    }

    fn flow_state(&mut self, now: Time, flow: u32, state: &FlowState) {
        self.flows[flow as usize].close_bin(now, flow, state, &mut self.flow_table);
    }

    fn internal(&mut self, now: Time, flow: u32, quantity: &'static str, value: f64) {
        self.internals.push(now, flow, quantity, value);
    }

    fn link_state(&mut self, _now: Time, link: u32, queue_bytes: u64, offered_bytes: f64) {
        self.links[link as usize].state(LinkState { queue_bytes, offered_bytes });
    }

    fn boundary(&mut self, now: Time, offered_bytes: &[f64]) {
        // The start of the run ends no segment.
        if now == self.timeline.segment_end(self.closed) {
            self.offered_bytes.extend_from_slice(offered_bytes);
            self.close_segments(now);
        }
    }
}

impl AckTable {
    fn push(&mut self, now: Time, flow: u32, row: &AckRow) {
        self.time_s.push(seconds(now.as_ns()));
        self.flow.push(flow);
        self.rtt_s.push(seconds_or_nan(row.rtt));
        self.cwnd_bytes.push(row.cwnd_bytes as f64);
        self.in_flight_bytes.push(row.in_flight_bytes as f64);
        self.acked_bytes.push(row.acked_bytes);
        self.lost_packets.push(row.lost_packets);
    }
}
