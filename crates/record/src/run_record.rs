//! What a run leaves behind.

use std::ops::Range;

use jostle_units::{Span, Time, mss_of};

use crate::connections::Connections;
use crate::datagram_meter::heard;
use crate::flow_meter::{FlowMeter, FlowTotals};
use crate::groups::Group;
use crate::histogram::Histogram;
use crate::link_meter::{LinkMeter, LinkTotals};
use crate::measures::{
    ArrivedSummary, Fairness, FlowPhase, GroupPhase, LinkPhase, Totals, VideoSummary, WebSummary,
    completion, completion_mean, completion_quantile, completion_rate, completion_rate_mean,
    efficiency, estimate, unfinished, unfinished_of,
};
use crate::playback::Watched;
use crate::stretch::{
    FlowStretch, FrameStretch, GroupStretch, LinkStretch, Rates, Stretch, bits_per_s, ratio,
};
use crate::summary::{ByPhase, FlowSummary, GroupSummary, LinkSummary, Summary};
use crate::tables::{AckTable, FlowTable, InternalTable, LinkTable, TransferTable, seconds};
use crate::timeline::Timeline;
use crate::transfer::{Ideal, Transfer, Transfers, bytes_of};
use crate::{FlowSpec, PhaseSpec, QuicImplementation, RunSpec, SourceSpec, Transport, VoiceSpec};

/// What a run leaves behind: its measures and its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Measures per phase.
    pub summary: Summary,
    /// Series of the flows.
    pub flows: FlowTable,
    /// Series of the links.
    pub links: LinkTable,
    /// Series of what the controllers keep inside.
    pub internals: InternalTable,
    /// Every ACK, if the spec asks for it.
    pub acks: Option<AckTable>,
    /// The transfers of flows that are many connections, if there are such flows.
    pub transfers: Option<TransferTable>,
}

/// What of a flow's spec its record needs.
#[derive(Clone, Debug)]
pub(crate) struct FlowIdentity {
    pub name: String,
    pub group: String,
    pub transport: Transport,
    pub controller: String,
    /// [`Time::NEVER`] as long as it waits for another.
    pub start: Time,
    pub stop: Time,
    /// When the run ends.
    pub run_end: Time,
    /// Least that the propagation of its path's links takes.
    pub propagation: Span,
    /// It always has something to send.
    pub is_bulk: bool,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// It answers requests.
    pub responds: bool,
    /// It is many connections.
    pub is_many: bool,
    /// Their transfers are kept one by one.
    arrives: bool,
    /// What has reached its application is known; of some foreign transports it is not.
    pub shows_delivery: bool,
    /// RTT, window and losses of its sender are known.
    pub shows_itself: bool,
    /// The last connection of a flow that proxies split, if this is the first: what reaches the
    /// flow's receiver reaches that one's.
    pub last: Option<usize>,
    /// It passes on what came over another connection.
    is_relay: bool,
    /// What it writes by the clock, if it does.
    pub frames: Option<SourceSpec>,
    /// What its datagrams are, if it sends datagrams.
    pub datagrams: Option<Datagrams>,
    /// All the payload that it ever sends, if it ends by itself.
    bytes: Option<u64>,
    ideal: Option<Ideal>,
}

/// Datagrams without a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Datagrams {
    /// Each comes back.
    Pings,
    /// None does, and they may carry speech.
    OneWay(Option<VoiceSpec>),
}

impl Datagrams {
    fn of(source: &SourceSpec) -> Option<Self> {
        match source {
            SourceSpec::Ping { .. } => Some(Self::Pings),
            SourceSpec::Cbr(spec) => Some(Self::OneWay(spec.voice)),
            _ => None,
        }
    }
}

impl FlowIdentity {
    /// Those of all flows.
    pub(crate) fn all(spec: &RunSpec) -> Vec<Self> {
        let continuations = spec.continuations();
        (0..spec.flows.len()).map(|flow| Self::of(spec, flow, &continuations)).collect()
    }

    fn of(spec: &RunSpec, position: usize, continuations: &[Option<u32>]) -> Self {
        let flow = &spec.flows[position];
        let is_many = flow.is_many();
        let is_relay = flow.source.relays().is_some();
        let waits = flow.after.is_some() || is_relay;
        let next = |at: &usize| continuations[*at].map(|next| next as usize);
        let last = std::iter::successors(next(&position), next).last().filter(|_| !is_relay);
        let foreign = flow.quic.as_ref().and_then(|quic| quic.implementation.as_ref());
        // Of what was captured, TCP alone shows what becomes of it; a QUIC stack's log does, too, and
        // the answers to pings.
        let is_open = flow.transport == Transport::Tcp
            || flow.quic.is_some()
            || matches!(flow.source, SourceSpec::Ping { .. });
        let is_sealed = spec.measured.is_some() && !is_open;
        Self {
            name: flow.name.clone(),
            group: flow.group.as_ref().unwrap_or(&flow.name).clone(),
            transport: flow.transport,
            controller: flow.controller.name.clone(),
            // Of those that wait for another, `opened` tells.
            start: if waits { Time::NEVER } else { Time::from_ns(flow.start_ns) },
            stop: flow.stop_ns.map_or(Time::NEVER, Time::from_ns),
            run_end: Time::from_ns(spec.duration_ns),
            propagation: propagation(spec, flow),
            is_bulk: flow.source == SourceSpec::Bulk,
            segment_bytes: mss_of(flow.mtu_bytes),
            responds: matches!(flow.source, SourceSpec::RequestResponse { .. }),
            shows_delivery: foreign.is_none_or(QuicImplementation::shows_delivery) && !is_sealed,
            shows_itself: foreign.is_none_or(QuicImplementation::shows_itself) && !is_sealed,
            last,
            is_relay,
            frames: flow.source.is_timed().then(|| flow.source.clone()),
            datagrams: Datagrams::of(&flow.source),
            is_many,
            arrives: flow.arrivals.is_some(),
            bytes: bytes_of(flow, spec.seed).filter(|_| !is_many),
            ideal: Ideal::of(spec, position, continuations).filter(|_| !is_many),
        }
    }

    /// A counter of the application's bytes, NaN if there is none.
    pub(crate) fn delivered(&self, bytes: f64) -> f64 {
        if self.shows_delivery { bytes } else { f64::NAN }
    }

    /// A counter of what was sent again, NaN if there is none.
    pub(crate) fn retransmitted(&self, packets: f64) -> f64 {
        if self.shows_itself { packets } else { f64::NAN }
    }

    /// An ACK says up to where everything has arrived: of TCP alone.
    pub(crate) fn acknowledges_in_order(&self) -> bool {
        self.transport == Transport::Tcp
    }

    /// A number of responses, if they are any: frames are none.
    pub(crate) fn responses(&self, number: f64) -> f64 {
        if self.responds { number } else { 0.0 }
    }

    /// The time of a response, if it is one.
    pub(crate) fn response_s(&self, time_s: Option<f64>) -> Option<f64> {
        time_s.filter(|_| self.responds)
    }

    /// A controller takes its share. What passes on a flow's data takes none beside the flow.
    pub(crate) fn competes(&self) -> bool {
        self.transport != Transport::Udp && !self.is_relay
    }

    /// Whether a flow that was complete at `completed` was there during part of a stretch.
    pub(crate) fn is_there(&self, completed: Time, from: Time, to: Time) -> bool {
        self.start < to && self.stop.min(completed) > from
    }
}

fn propagation(spec: &RunSpec, flow: &FlowSpec) -> Span {
    let least_ns = |link: &u32| {
        let steps = &spec.links[*link as usize].delay.steps;
        steps.iter().map(|step| step.delay_ns).min().unwrap_or(0)
    };
    Span::from_ns(flow.path.iter().map(least_ns).sum())
}

/// What was recorded, of a run whose segments have all ended.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub timeline: Timeline,
    pub phases: Vec<PhaseSpec>,
    pub flow_identities: Vec<FlowIdentity>,
    pub link_names: Vec<String>,
    pub flows: Vec<FlowMeter>,
    pub links: Vec<LinkMeter>,
    pub flow_table: FlowTable,
    pub internals: InternalTable,
    pub acks: Option<AckTable>,
    pub connections: Connections,
    /// Bytes that each link could have carried until the end of each segment.
    pub offered_bytes: Vec<f64>,
}

impl Recorded {
    /// The measures and all columns.
    pub(crate) fn finish(mut self) -> RunRecord {
        for (flow, identity) in self.flow_identities.iter().enumerate() {
            if let Some(last) = identity.last {
                self.flow_table.take_arrivals(flow, last, self.flows.len());
            }
        }
        for (flow, identity) in (0..).zip(&self.flow_identities) {
            if !(identity.shows_delivery && identity.shows_itself) {
                self.flow_table.forget(flow, identity.shows_delivery, identity.shows_itself);
            }
        }
        self.connections.table.finish();
        let any = self.flow_identities.iter().any(|flow| flow.arrives);
        let end = self.timeline.end();
        for viewing in self.flows.iter_mut().filter_map(|meter| meter.viewing.as_mut()) {
            viewing.until(end);
        }
        RunRecord {
            summary: self.summary(),
            links: link_table(&self.timeline, &self.links),
            flows: self.flow_table,
            internals: self.internals,
            acks: self.acks,
            transfers: any.then_some(self.connections.table),
        }
    }

    fn summary(&self) -> Summary {
        let groups = Group::all(self.flow_identities.iter().map(|flow| flow.group.as_str()));
        let stretches: Vec<_> =
            self.phases.iter().map(|phase| self.stretch(phase, &groups)).collect();
        let transfers: Vec<_> = (0..self.flows.len())
            .zip(self.estimates_bps())
            .map(|(at, estimate_bps)| self.transfer(at, estimate_bps))
            .collect();
        let flows = transfers.iter().enumerate();
        let links = self.link_names.iter().enumerate().map(|(at, name)| LinkSummary {
            name: name.clone(),
            phases: self.by_phase(&stretches, |all| LinkPhase::of(&all.links[at], all)),
        });
        Summary {
            flows: flows.map(|(at, it)| self.flow_summary(at, it, &stretches)).collect(),
            groups: groups
                .iter()
                .enumerate()
                .map(|(at, group)| self.group_summary(at, group, &transfers, &stretches))
                .collect(),
            links: links.collect(),
            fairness: self.by_phase(&stretches, |all| Fairness::of(all, all)),
            totals: self.by_phase(&stretches, |all| Totals::of(all, all)),
        }
    }

    fn by_phase<T>(
        &self,
        stretches: &[Stretch<'_>],
        measures: impl Fn(&Stretch<'_>) -> T,
    ) -> ByPhase<T> {
        let names = self.phases.iter().map(|phase| phase.name.clone());
        names.zip(stretches.iter().map(measures)).collect()
    }

    /// What the estimator of each flow's memory said in the end; without one, what BBR's did.
    fn estimates_bps(&self) -> Vec<Option<f64>> {
        let last = |quantity| self.internals.last_of_each(quantity, self.flows.len());
        let (memories, models) = (last("estimate_bps"), last("bottleneck_bps"));
        memories.into_iter().zip(models).map(|(memory, model)| memory.or(model)).collect()
    }

    fn transfer(&self, at: usize, estimate_bps: Option<f64>) -> Transfer {
        let identity = &self.flow_identities[at];
        Transfer {
            completion_s: self.flows[at].completion().map(|after| seconds(after.as_ns())),
            bytes: identity.bytes,
            ideal: identity.ideal,
            estimate_bps,
        }
    }

    fn flow_summary(
        &self,
        at: usize,
        transfer: &Transfer,
        stretches: &[Stretch<'_>],
    ) -> FlowSummary {
        let (identity, meter) = (&self.flow_identities[at], &self.flows[at]);
        let started = identity.start != Time::NEVER;
        FlowSummary {
            name: identity.name.clone(),
            group: identity.group.clone(),
            transport: identity.transport,
            controller: identity.controller.clone(),
            start_s: started.then(|| seconds(identity.start.as_ns())),
            completion_s: completion(transfer),
            completion_rate_bps: completion_rate(transfer),
            unfinished: unfinished(transfer).map(|count| count as u64),
            efficiency: efficiency(transfer),
            estimate_bps: estimate(transfer),
            video: meter.viewing.as_ref().map(|viewing| {
                let playback = viewing.playback.clone();
                VideoSummary::of(&Watched { opened: identity.start, playback })
            }),
            web: meter.pages.as_ref().map(|pages| WebSummary::of(&pages.sorted())),
            captured: None,
            phases: self.by_phase(stretches, |all| FlowPhase::of(&all.flows[at], all)),
            pings: meter.pings(),
        }
    }

    fn group_summary(
        &self,
        at: usize,
        group: &Group,
        transfers: &[Transfer],
        stretches: &[Stretch<'_>],
    ) -> GroupSummary {
        let mut theirs = Transfers::of(group.members.iter().map(|at| &transfers[*at]));
        if group.members.iter().any(|at| self.flow_identities[*at].arrives) {
            let table = &self.connections.table;
            theirs =
                theirs.with_arrived(table, &group.members, seconds(self.timeline.end().as_ns()));
        }
        GroupSummary {
            name: group.name.clone(),
            flows: group.members.len() as u64,
            completion_mean_s: completion_mean(&theirs),
            completion_p50_s: completion_quantile(&theirs, 0.5),
            completion_p95_s: completion_quantile(&theirs, 0.95),
            completion_p99_s: completion_quantile(&theirs, 0.99),
            completion_rate_mean_bps: completion_rate_mean(&theirs),
            unfinished: unfinished_of(&theirs).map(|count| count as u64),
            arrived: theirs.arrived.as_ref().map(ArrivedSummary::of),
            phases: self.by_phase(stretches, |all| GroupPhase::of(&all.groups[at], all)),
        }
    }

    /// What happened in a phase.
    fn stretch(&self, phase: &PhaseSpec, groups: &[Group]) -> Stretch<'_> {
        let segments = self.timeline.segments_of(phase);
        let flows = self.flow_identities.iter().zip(&self.flows);
        let mut flows: Vec<_> =
            flows.map(|(it, meter)| flow_stretch(it, meter, &segments, phase)).collect();
        for (flow, identity) in self.flow_identities.iter().enumerate() {
            if let Some(last) = identity.last {
                flows[flow].received_bytes = flows[last].received_bytes;
                flows[flow].delivered_bytes = flows[last].delivered_bytes;
            }
        }
        let groups = groups.iter().map(|group| self.group_stretch(group, &flows, &segments));
        let groups = groups.collect();
        Stretch::new(
            flows,
            groups,
            (0..self.links.len()).map(|at| self.link_stretch(at, &segments, phase)).collect(),
            Rates::between(
                &self.flow_table,
                self.flows.len(),
                seconds(phase.from_ns),
                seconds(phase.to_ns),
            ),
        )
    }

    fn group_stretch(
        &self,
        group: &Group,
        flows: &[FlowStretch],
        segments: &Range<usize>,
    ) -> GroupStretch {
        let mut responses_ns = Histogram::default();
        let respond = |at: &&usize| self.flow_identities[**at].responds;
        for at in group.members.iter().filter(respond) {
            for segment in &self.flows[*at].segments()[segments.clone()] {
                if let Some(response_ns) = &segment.response_ns {
                    responses_ns.merge(response_ns);
                }
            }
        }
        let quantile_s = |p| responses_ns.quantile(p).map(|ns| ns / 1e9);
        GroupStretch {
            response_p50_s: quantile_s(0.5),
            response_p95_s: quantile_s(0.95),
            response_p99_s: quantile_s(0.99),
            ..GroupStretch::of(group.members.iter().map(|at| &flows[*at]))
        }
    }

    fn link_stretch(&self, at: usize, segments: &Range<usize>, phase: &PhaseSpec) -> LinkStretch {
        let mut totals = LinkTotals::default();
        for segment in &self.links[at].segments()[segments.clone()] {
            totals.merge(segment);
        }
        let counters = &totals.counters;
        let waited_s = |p| totals.waited_ns.quantile(p).map(|ns| ns / 1e9);
        LinkStretch {
            length_ns: (phase.to_ns - phase.from_ns) as f64,
            sent_bytes: counters.sent_bytes as f64,
            offered_bytes: self.offered_bytes(at, segments),
            queue_bytes_ns: counters.queue_bytes_ns as f64,
            queue_p95_bytes: totals.queue_bytes.quantile(0.95),
            waited_mean_s: counters.waited_mean_s(),
            waited_p50_s: waited_s(0.5),
            waited_p95_s: waited_s(0.95),
            waited_p99_s: waited_s(0.99),
            dropped: counters.dropped.map(|count| count as f64),
            marked: counters.marked.map(|count| count as f64),
        }
    }

    /// Bytes that a link could have carried during some segments.
    fn offered_bytes(&self, link: usize, segments: &Range<usize>) -> f64 {
        let until = |segment: usize| match segment {
            0 => 0.0,
            n => self.offered_bytes[(n - 1) * self.links.len() + link],
        };
        until(segments.end) - until(segments.start)
    }
}

fn flow_stretch(
    identity: &FlowIdentity,
    meter: &FlowMeter,
    segments: &Range<usize>,
    phase: &PhaseSpec,
) -> FlowStretch {
    let mut totals = FlowTotals::default();
    for segment in &meter.segments()[segments.clone()] {
        totals.merge(segment);
    }
    let counters = &totals.counters;
    let quantile_s = |p| totals.rtt_ns.quantile(p).map(|ns| ns / 1e9);
    let propagation_s = seconds(identity.propagation.as_ns());
    let delay_s = |p| totals.excess_ns.quantile(p).map(|ns| propagation_s + ns / 1e9);
    let ack_quantile_s = |p| totals.ack_rtt_ns.quantile(p).map(|ns| ns / 1e9);
    let voice = match identity.datagrams {
        Some(Datagrams::OneWay(voice)) => voice,
        _ => None,
    };
    let frames = identity
        .frames
        .as_ref()
        .map(|source| frame_stretch(source, identity, meter, &totals, Time::from_ns(phase.to_ns)));
    let heard = voice
        .zip(totals.datagrams)
        .and_then(|(voice, datagrams)| heard(&voice, &datagrams, &totals.excess_ns, propagation_s));
    let completed = meter.completion().map_or(Time::NEVER, |after| identity.start + after);
    let (from, to) = (Time::from_ns(phase.from_ns), Time::from_ns(phase.to_ns));
    FlowStretch {
        competes: identity.competes(),
        is_there: identity.is_there(completed, from, to),
        length_ns: (phase.to_ns - phase.from_ns) as f64,
        sent_bytes: counters.sent_bytes as f64,
        received_bytes: counters.received_bytes as f64,
        delivered_bytes: identity.delivered(counters.delivered_bytes as f64),
        sent_packets: counters.sent_packets as f64,
        retransmitted_packets: identity.retransmitted(counters.retransmitted_packets as f64),
        rtt_mean_s: totals.rtt_mean_s(),
        rtt_min_s: totals.rtt_min_s(),
        rtt_p50_s: quantile_s(0.5),
        rtt_p95_s: quantile_s(0.95),
        rtt_sd_s: totals.rtt_sd_s(),
        ack_rtt_mean_s: counters.ack_rtt_mean_s(),
        ack_rtt_p50_s: ack_quantile_s(0.5),
        ack_rtt_p95_s: ack_quantile_s(0.95),
        ack_rtt_max_s: totals.ack_rtt_ns.max().map(|ns| ns as f64 / 1e9),
        cwnd_mean_bytes: totals.cwnd_mean_bytes(),
        is_bulk: identity.is_bulk,
        segment_bytes: f64::from(identity.segment_bytes),
        delay_mean_s: counters.delay_mean_s(),
        delay_min_s: totals.excess_ns.min().map(|ns| propagation_s + seconds(ns)),
        delay_p50_s: delay_s(0.5),
        delay_p95_s: delay_s(0.95),
        delay_p99_s: delay_s(0.99),
        waited_mean_s: meter.waited_mean_s(counters),
        jitter_mean_s: totals.datagrams.and_then(|datagrams| datagrams.jitter_mean_s()),
        lost_share: totals.datagrams.and_then(|datagrams| datagrams.lost_share()),
        mouth_to_ear_s: heard.map(|heard| heard.delay_s),
        rating: heard.map(|heard| heard.rating),
        frames,
        responds: identity.responds,
        responses: identity.responses(counters.responses as f64),
        response_mean_s: identity.response_s(counters.response_mean_s()),
        response_p50_s: identity.response_s(totals.response_s(0.5)),
        response_p95_s: identity.response_s(totals.response_s(0.95)),
        response_p99_s: identity.response_s(totals.response_s(0.99)),
    }
}

/// What became of frames. Those that were due before the run's end and are missing are late in the
/// phases that last until then.
fn frame_stretch(
    source: &SourceSpec,
    identity: &FlowIdentity,
    meter: &FlowMeter,
    totals: &FlowTotals,
    phase_end: Time,
) -> FrameStretch {
    let deadline = source.deadline_ns().map(Span::from_ns);
    let missing = match deadline {
        Some(deadline) if phase_end >= identity.run_end && identity.start < identity.run_end => {
            let last =
                identity.stop.min(Time::ZERO + identity.run_end.since(Time::ZERO + deadline));
            source
                .writes_before(last.since(identity.start).as_ns())
                .saturating_sub(meter.responses())
        }
        _ => 0,
    };
    let counters = &totals.counters;
    let all = counters.responses + missing;
    let late = (totals.late + missing) as f64 / all as f64;
    FrameStretch {
        frames: counters.responses as f64,
        late: deadline.filter(|_| all > 0).map(|_| late),
        mean_s: counters.response_mean_s(),
        p50_s: totals.response_s(0.5),
        p95_s: totals.response_s(0.95),
        p99_s: totals.response_s(0.99),
        max_s: totals.response_ns.as_ref().and_then(|ns| ns.max()).map(seconds),
    }
}

fn link_table(timeline: &Timeline, links: &[LinkMeter]) -> LinkTable {
    let mut table = LinkTable::default();
    for bin in 0..timeline.bins() {
        for (link, meter) in links.iter().enumerate() {
            // No state: the simulator was not there at the end of this interval.
            let Some(state) = meter.states().get(bin) else { continue };
            let counters = &meter.bins()[bin];
            let offered_before = if bin == 0 { 0.0 } else { meter.states()[bin - 1].offered_bytes };
            let offered_bytes = state.offered_bytes - offered_before;
            let length_ns = timeline.bin_length(bin).as_ns() as f64;
            table.time_s.push(seconds(timeline.bin_end(bin).as_ns()));
            table.link.push(link as u32);
            let sent_bytes = counters.sent_bytes as f64;
            table.throughput_bps.push(bits_per_s(sent_bytes, length_ns));
            table.capacity_bps.push(bits_per_s(offered_bytes, length_ns));
            let utilisation = ratio(sent_bytes, offered_bytes).map(|share| share.min(1.0));
            table.utilisation.push(utilisation.unwrap_or(f64::NAN));
            table.queue_bytes.push(state.queue_bytes as f64);
            let queue_bytes_ns = counters.queue_bytes_ns as f64;
            table.queue_mean_bytes.push(queue_bytes_ns / length_ns);
            let queue_s = ratio(queue_bytes_ns / 1e9, offered_bytes);
            table.queue_mean_s.push(queue_s.unwrap_or(f64::NAN));
            table.sent_packets.push(counters.sent_packets as u32);
            table.queueing_delay_mean_s.push(counters.waited_mean_s().unwrap_or(f64::NAN));
            for (column, count) in table.dropped.iter_mut().zip(counters.dropped) {
                column.push(count as u32);
            }
            for (column, count) in table.marked.iter_mut().zip(counters.marked) {
                column.push(count as u32);
            }
        }
    }
    table
}
