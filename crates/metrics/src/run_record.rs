//! Measures and series of a run.

use std::ops::Range;

use jostle_link::Service;
use jostle_units::{FlowId, LinkId, Span, Time, mss_of};

use crate::contest::Contests;
use crate::datagram_meter::{DatagramCounters, VoiceQuality, voice_quality};
use crate::fair_bins::FairBinMeter;
use crate::flow_groups::Group;
use crate::flow_meter::{FlowMeter, FlowTotals};
use crate::histogram::Histogram;
use crate::interval_stats::{
    FlowIntervalStats, FrameIntervalStats, GroupIntervalStats, IntervalStats, LinkIntervalStats,
};
use crate::link_meter::{LinkMeter, LinkTotals};
use crate::measures::{
    ArrivedSummary, Fairness, FlowPhase, GroupPhase, LinkPhase, Totals, VideoSummary, WebSummary,
    completion, completion_mean, completion_quantile, completion_rate, completion_rate_mean,
    efficiency, estimate, pings_lost, unfinished, unfinished_of,
};
use crate::summary::{ByPhase, FlowSummary, GroupSummary, LinkSummary, Summary};
use crate::tables::{AckTable, ControllerStateTable, FlowTable, LinkTable, TransferTable, seconds};
use crate::timeline::Timeline;
use crate::transfer_log::Connections;
use crate::transfer_stats::{GroupTransfers, IdealTransfer, TransferOutcome, bytes_of};
use jostle_run_spec::{
    CbrSpec, ConstantService, FaultsSpec, FlowSpec, LinkSpec, PhaseSpec, QuicImplementation,
    RunSpec, SourceSpec, Transport,
};
use jostle_traffic::VideoSession;

/// Internal quantities of peer caches and controllers that a flow's summary contains.
pub(crate) const ESTIMATES: [&str; 2] = ["bandwidth_estimate_bps", "bottleneck_bps"];

/// Measures and series of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Measures per phase.
    pub summary: Summary,
    /// Series of the flows.
    pub flows: FlowTable,
    /// Series of the links.
    pub links: LinkTable,
    /// Series of the controllers' internal values.
    pub internals: ControllerStateTable,
    /// Every ACK, if the spec requests it.
    pub acks: Option<AckTable>,
    /// Transfers of multi-connection flows, if there are any.
    pub transfers: Option<TransferTable>,
}

/// Properties of a flow's spec that its record needs.
#[derive(Clone, Debug)]
pub(crate) struct FlowIdentity {
    pub name: String,
    pub group: String,
    pub transport: Transport,
    pub controller: String,
    /// [`Time::NEVER`] while the flow waits for another flow.
    pub start: Time,
    pub stop: Time,
    /// End of the run.
    pub run_end: Time,
    /// Minimum propagation delay of the path. It is 0 on links whose delay packets can skip.
    pub propagation: Span,
    /// The source always has data to send.
    pub is_bulk: bool,
    /// Payload of a full-sized segment.
    pub segment_bytes: u32,
    /// The flow answers requests.
    pub responds: bool,
    /// The flow has many connections.
    pub is_many: bool,
    /// Each of its transfers has a row in the transfer table.
    arrives: bool,
    /// Delivered bytes are known. Some foreign transports do not report them.
    pub shows_delivery: bool,
    /// RTT, cwnd and losses of the sender are known.
    pub shows_itself: bool,
    /// Last proxy leg, if this flow is the first one. Data that reach the receiver of the last leg
    /// reach the flow's receiver.
    pub last: Option<usize>,
    /// The flow is a later proxy leg or a connection of a tunnel.
    pub carries_other_flows: bool,
    /// Source of a flow that writes frames on a schedule, if it does.
    pub frames: Option<SourceSpec>,
    /// Type of the datagrams, if the flow sends any.
    pub datagrams: Option<Datagrams>,
    /// The flow ends by itself.
    has_end: bool,
    /// Total payload, if it is known before the flow ends.
    bytes: Option<u64>,
    ideal: Option<IdealTransfer>,
}

/// Type of connectionless datagrams.
#[derive(Clone, Debug)]
pub(crate) enum Datagrams {
    /// Pings, which the receiver echoes.
    Pings,
    /// One-way datagrams, optionally with speech.
    OneWay(CbrSpec),
}

impl Datagrams {
    fn of(source: &SourceSpec) -> Option<Self> {
        match source {
            SourceSpec::Ping { .. } => Some(Self::Pings),
            SourceSpec::Cbr(spec) => Some(Self::OneWay(spec.clone())),
            _ => None,
        }
    }
}

impl FlowIdentity {
    /// Returns the properties of all flows.
    pub(crate) fn all(spec: &RunSpec) -> Vec<Self> {
        let continuations = spec.continuations();
        let services: Vec<_> = spec.links.iter().map(LinkSpec::constant_service).collect();
        let of = |flow| Self::of(spec, flow, &continuations, &services);
        (0..spec.flows.len()).map(of).collect()
    }

    fn of(
        spec: &RunSpec,
        position: usize,
        continuations: &[Option<FlowId>],
        services: &[Option<ConstantService>],
    ) -> Self {
        let flow = &spec.flows[position];
        let is_many = flow.is_many();
        let is_relay = flow.source.relays().is_some();
        let waits = flow.after.is_some() || is_relay;
        let next = |at: &usize| continuations[*at].map(FlowId::index);
        let last = std::iter::successors(next(&position), next).last().filter(|_| !is_relay);
        let foreign = flow.quic.as_ref().and_then(|quic| quic.implementation.as_ref());
        // In a capture only TCP, the log of a QUIC stack and ping replies show deliveries.
        let is_open = flow.transport == Transport::Tcp
            || flow.quic.is_some()
            || matches!(flow.source, SourceSpec::Ping { .. });
        let is_sealed = spec.measured.is_some() && !is_open;
        Self {
            name: flow.name.clone(),
            group: flow.group.as_ref().unwrap_or(&flow.name).clone(),
            transport: flow.transport,
            controller: flow.controller.name.clone(),
            // The `opened` event sets the start of a flow that waits for another.
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
            carries_other_flows: is_relay || flow.source.tunnel().is_some(),
            frames: flow.source.is_timed().then(|| flow.source.clone()),
            datagrams: Datagrams::of(&flow.source),
            is_many,
            arrives: flow.arrivals.is_some(),
            has_end: flow.has_end(),
            bytes: bytes_of(flow, spec.seed).filter(|_| !is_many),
            ideal: IdealTransfer::of(spec, position, continuations, services).filter(|_| !is_many),
        }
    }

    /// Returns the delivered bytes, or NaN if unknown.
    pub(crate) fn delivered(&self, bytes: f64) -> f64 {
        if self.shows_delivery { bytes } else { f64::NAN }
    }

    /// Returns the number of retransmissions, or NaN if unknown.
    pub(crate) fn retransmitted(&self, packets: f64) -> f64 {
        if self.shows_itself { packets } else { f64::NAN }
    }

    /// Returns whether ACKs are cumulative, as in TCP.
    pub(crate) fn acknowledges_in_order(&self) -> bool {
        self.transport == Transport::Tcp
    }

    /// Returns the number of responses, or 0 if the flow sends frames instead.
    pub(crate) fn responses(&self, number: f64) -> f64 {
        if self.responds { number } else { 0.0 }
    }

    /// Returns the response time, or `None` if the flow sends frames instead.
    pub(crate) fn response_s(&self, time_s: Option<f64>) -> Option<f64> {
        time_s.filter(|_| self.responds)
    }

    /// Returns whether the flow counts in shares. Pings and constant bit rates, later proxy legs,
    /// and tunnels, which carry the data of the flows inside, do not.
    pub(crate) fn competes(&self) -> bool {
        self.transport != Transport::Udp && !self.carries_other_flows
    }

    /// Returns the time from the start to the stop, or to the completion after a time.
    pub(crate) fn life(&self, completion: Option<Span>) -> Range<Time> {
        let completed = completion.map_or(Time::NEVER, |after| self.start + after);
        self.start..self.stop.min(completed)
    }

    /// Returns whether a flow that completed after a time was active in part of the interval.
    pub(crate) fn is_there(&self, completion: Option<Span>, from: Time, to: Time) -> bool {
        let life = self.life(completion);
        life.start < to && life.end > from
    }
}

fn propagation(spec: &RunSpec, flow: &FlowSpec) -> Span {
    let least_ns = |link: LinkId| {
        let LinkSpec { delay, faults, .. } = &spec.links[link.index()];
        let is_skipped = faults.as_ref().is_some_and(FaultsSpec::skips_delays);
        let steps = delay.steps.iter().map(|step| step.delay_ns);
        steps.min().filter(|_| !is_skipped).unwrap_or(0)
    };
    let with_tunnels = |path| spec.links_with_tunnels(std::iter::once(path)).into_iter();
    let shortest_ns = flow.paths().map(|path| with_tunnels(path).map(least_ns).sum()).min();
    Span::from_ns(shortest_ns.unwrap_or(0))
}

/// Recorded data of a run whose segments have all ended.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub timeline: Timeline,
    pub phases: Vec<PhaseSpec>,
    pub flow_identities: Vec<FlowIdentity>,
    pub contests: Contests,
    pub link_names: Vec<String>,
    pub flows: Vec<FlowMeter>,
    pub links: Vec<LinkMeter>,
    pub fair_bins: FairBinMeter,
    pub flow_table: FlowTable,
    pub internals: ControllerStateTable,
    pub acks: Option<AckTable>,
    pub connections: Connections,
    /// Bytes that each link's service rate allowed until the end of each segment.
    pub services: Vec<Service>,
}

impl Recorded {
    /// Returns the measures and all series.
    pub(crate) fn finish(mut self) -> RunRecord {
        for (flow, identity) in self.flow_identities.iter().enumerate() {
            if let Some(last) = identity.last {
                self.flow_table.take_arrivals(flow, last, self.flows.len());
            }
        }
        for (flow, identity) in (0..).map(FlowId).zip(&self.flow_identities) {
            if !(identity.shows_delivery && identity.shows_itself) {
                self.flow_table.forget(flow, identity.shows_delivery, identity.shows_itself);
            }
        }
        let any = self.flow_identities.iter().any(|flow| flow.arrives);
        RunRecord {
            summary: self.finish_summary(),
            links: LinkTable::new(&self.timeline, &self.links),
            flows: self.flow_table,
            internals: self.internals,
            acks: self.acks,
            transfers: any.then_some(self.connections.table),
        }
    }

    /// Returns the measures.
    pub(crate) fn finish_summary(&mut self) -> Summary {
        self.connections.table.finish();
        let end = self.timeline.end();
        for viewing in self.flows.iter_mut().filter_map(|meter| meter.viewing.as_mut()) {
            viewing.until(end);
        }
        self.summary()
    }

    fn summary(&self) -> Summary {
        let groups = Group::all(self.flow_identities.iter().map(|flow| flow.group.as_str()));
        let stretches: Vec<_> =
            (0..self.phases.len()).map(|at| self.phase_stats(at, &groups)).collect();
        let transfers: Vec<_> = (0..self.flows.len())
            .zip(self.estimates_bps())
            .map(|(at, bandwidth_estimate_bps)| self.transfer(at, bandwidth_estimate_bps))
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
        stretches: &[IntervalStats],
        measures: impl Fn(&IntervalStats) -> T,
    ) -> ByPhase<T> {
        let names = self.phases.iter().map(|phase| phase.name.clone());
        names.zip(stretches.iter().map(measures)).collect()
    }

    /// Returns the final bandwidth estimate of each flow: of the peer cache's estimator, else of
    /// BBR's model.
    fn estimates_bps(&self) -> Vec<Option<f64>> {
        let [memories, models] =
            ESTIMATES.map(|quantity| self.internals.last_of_each(quantity, self.flows.len()));
        memories.into_iter().zip(models).map(|(memory, model)| memory.or(model)).collect()
    }

    fn transfer(&self, at: usize, bandwidth_estimate_bps: Option<f64>) -> TransferOutcome {
        let identity = &self.flow_identities[at];
        TransferOutcome {
            completion_time_s: self.flows[at].completion().map(|after| seconds(after.as_ns())),
            has_end: identity.has_end,
            bytes: identity.bytes,
            ideal: identity.ideal,
            bandwidth_estimate_bps,
        }
    }

    fn flow_summary(
        &self,
        at: usize,
        transfer: &TransferOutcome,
        stretches: &[IntervalStats],
    ) -> FlowSummary {
        let (identity, meter) = (&self.flow_identities[at], &self.flows[at]);
        let started = identity.start != Time::NEVER;
        let pings = meter.pings();
        FlowSummary {
            name: identity.name.clone(),
            group: identity.group.clone(),
            transport: identity.transport,
            controller: identity.controller.clone(),
            start_s: started.then(|| seconds(identity.start.as_ns())),
            completion_time_s: completion(transfer),
            completion_rate_bps: completion_rate(transfer),
            unfinished: unfinished(transfer).map(|count| count as u64),
            efficiency: efficiency(transfer),
            bandwidth_estimate_bps: estimate(transfer),
            video: meter.viewing.as_ref().map(|viewing| {
                let playback = viewing.playback.clone();
                VideoSummary::of(&VideoSession { opened: identity.start, playback })
            }),
            web: meter.pages.as_ref().map(|pages| WebSummary::of(&pages.sorted())),
            captured: None,
            phases: self.by_phase(stretches, |all| FlowPhase::of(&all.flows[at], all)),
            pings_lost: pings.as_ref().and_then(pings_lost),
            pings,
        }
    }

    fn group_summary(
        &self,
        at: usize,
        group: &Group,
        transfers: &[TransferOutcome],
        stretches: &[IntervalStats],
    ) -> GroupSummary {
        let mut theirs = GroupTransfers::of(group.members.iter().map(|at| &transfers[*at]));
        if group.members.iter().any(|at| self.flow_identities[*at].arrives) {
            let table = &self.connections.table;
            theirs =
                theirs.with_arrived(table, &group.members, seconds(self.timeline.end().as_ns()));
        }
        GroupSummary {
            name: group.name.clone(),
            flows: group.members.len() as u64,
            completion_time_mean_s: completion_mean(&theirs),
            completion_time_p50_s: completion_quantile(&theirs, 0.5),
            completion_time_p95_s: completion_quantile(&theirs, 0.95),
            completion_time_p99_s: completion_quantile(&theirs, 0.99),
            completion_rate_mean_bps: completion_rate_mean(&theirs),
            unfinished: unfinished_of(&theirs).map(|count| count as u64),
            arrived: theirs.arrived.as_ref().map(ArrivedSummary::of),
            phases: self.by_phase(stretches, |all| GroupPhase::of(&all.groups[at], all)),
        }
    }

    /// Returns the statistics of the phase at a position.
    fn phase_stats(&self, at: usize, groups: &[Group]) -> IntervalStats {
        let phase = &self.phases[at];
        let segments = self.timeline.segments_of(phase);
        let flows = self.flow_identities.iter().zip(&self.flows);
        let (from, to) = (Time::from_ns(phase.from_ns), Time::from_ns(phase.to_ns));
        let contests = self.contests.between(from, to);
        let mut flows: Vec<_> = flows
            .zip(contests.iter())
            .map(|((it, meter), contest)| flow_stats(it, meter, *contest, &segments, phase))
            .collect();
        for (flow, identity) in self.flow_identities.iter().enumerate() {
            if let Some(last) = identity.last {
                flows[flow].received_bytes = flows[last].received_bytes;
                flows[flow].delivered_bytes = flows[last].delivered_bytes;
            }
        }
        let groups = groups.iter().map(|group| self.group_stats(group, &flows, &segments));
        let groups = groups.collect();
        let counted = flows.iter().map(|flow| flow.counts_for_share && flow.is_active);
        let starts = self.flow_identities.iter().zip(counted).filter(|(_, counts)| *counts);
        let last_start = starts.map(|(identity, _)| identity.start).max().unwrap_or(Time::ZERO);
        IntervalStats::new(
            flows,
            groups,
            (0..self.links.len()).map(|at| self.link_stats(at, &segments, phase)).collect(),
            self.fair_bins.of_phase(at, last_start),
        )
    }

    fn group_stats(
        &self,
        group: &Group,
        flows: &[FlowIntervalStats],
        segments: &Range<usize>,
    ) -> GroupIntervalStats {
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
        GroupIntervalStats {
            response_time_p50_s: quantile_s(0.5),
            response_time_p95_s: quantile_s(0.95),
            response_time_p99_s: quantile_s(0.99),
            ..GroupIntervalStats::of(group.members.iter().map(|at| &flows[*at]))
        }
    }

    fn link_stats(
        &self,
        at: usize,
        segments: &Range<usize>,
        phase: &PhaseSpec,
    ) -> LinkIntervalStats {
        let mut totals = LinkTotals::default();
        for segment in &self.links[at].segments()[segments.clone()] {
            totals.merge(segment);
        }
        let counters = &totals.counters;
        let service = self.service(at, segments.end).since(self.service(at, segments.start));
        let waited_s = |p| totals.waited_ns.quantile(p).map(|ns| ns / 1e9);
        LinkIntervalStats {
            length_ns: (phase.to_ns - phase.from_ns) as f64,
            sent_bytes: counters.sent_bytes as f64,
            service_bytes: service.throughput_bytes,
            drain_bytes: service.drain_bytes + counters.discarded_bytes as f64,
            queue_bytes_ns: counters.queue_bytes_ns as f64,
            queue_length_p95_bytes: totals.queue_bytes.quantile(0.95),
            duplicated: Some(totals.counters.duplicated as f64),
            queueing_delay_mean_s: counters.waited_mean_s(),
            waited_p50_s: waited_s(0.5),
            waited_p95_s: waited_s(0.95),
            waited_p99_s: waited_s(0.99),
            dropped: counters.dropped.map(|count| count as f64),
            marked: counters.marked.map(|count| count as f64),
        }
    }

    /// Returns the service of a link before a segment.
    fn service(&self, link: usize, segment: usize) -> Service {
        match segment {
            0 => Service::default(),
            n => self.services[(n - 1) * self.links.len() + link],
        }
    }
}

fn flow_stats(
    identity: &FlowIdentity,
    meter: &FlowMeter,
    contest: usize,
    segments: &Range<usize>,
    phase: &PhaseSpec,
) -> FlowIntervalStats {
    let mut totals = FlowTotals::default();
    for segment in &meter.segments()[segments.clone()] {
        totals.merge(segment);
    }
    let counters = &totals.counters;
    let quantile_s = |p| totals.rtt_ns.quantile(p).map(|ns| ns / 1e9);
    let propagation_s = seconds(identity.propagation.as_ns());
    let delay_s = |p| totals.excess_ns.quantile(p).map(|ns| propagation_s + ns / 1e9);
    let ack_quantile_s = |p| totals.segment_rtt_ns.quantile(p).map(|ns| ns / 1e9);
    let frames = identity
        .frames
        .as_ref()
        .map(|source| frame_stats(source, identity, meter, &totals, Time::from_ns(phase.to_ns)));
    let datagrams = totals.datagrams.as_ref();
    let quality = datagrams.and_then(|counters| call_quality(identity, counters));
    let (from, to) = (Time::from_ns(phase.from_ns), Time::from_ns(phase.to_ns));
    FlowIntervalStats {
        counts_for_share: identity.competes(),
        carries_other_flows: identity.carries_other_flows,
        contest,
        is_active: identity.is_there(meter.completion(), from, to),
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
        segment_rtt_mean_s: counters.segment_rtt_mean_s(),
        segment_rtt_p50_s: ack_quantile_s(0.5),
        segment_rtt_p95_s: ack_quantile_s(0.95),
        segment_rtt_max_s: totals.segment_rtt_ns.max().map(|ns| ns as f64 / 1e9),
        limited_ns: totals.limited_ns.map(|ns| ns as f64),
        cwnd_mean_bytes: totals.cwnd_mean_bytes(),
        is_bulk: identity.is_bulk,
        segment_bytes: f64::from(identity.segment_bytes),
        delay_mean_s: counters.delay_mean_s(),
        delay_min_s: totals.excess_ns.min().map(|ns| propagation_s + seconds(ns)),
        delay_p50_s: delay_s(0.5),
        delay_p95_s: delay_s(0.95),
        delay_p99_s: delay_s(0.99),
        queueing_delay_mean_s: meter.waited_mean_s(counters),
        jitter_mean_s: datagrams.and_then(DatagramCounters::jitter_mean_s),
        lost_share: datagrams.and_then(DatagramCounters::lost_share),
        mouth_to_ear_s: quality.and_then(|quality| quality.delay_s),
        rating: quality.map(|quality| quality.rating),
        frames,
        responds: identity.responds,
        responses: identity.responses(counters.responses as f64),
        response_time_mean_s: identity.response_s(counters.response_time_mean_s()),
        response_time_p50_s: identity.response_s(totals.response_s(0.5)),
        response_time_p95_s: identity.response_s(totals.response_s(0.95)),
        response_time_p99_s: identity.response_s(totals.response_s(0.99)),
    }
}

/// Returns the quality of the call in a phase, if the datagrams carry speech.
fn call_quality(identity: &FlowIdentity, counters: &DatagramCounters) -> Option<VoiceQuality> {
    let Some(Datagrams::OneWay(CbrSpec { voice: Some(voice), .. })) = &identity.datagrams else {
        return None;
    };
    voice_quality(voice, counters, seconds(identity.propagation.as_ns()))
}

/// Returns the frame statistics of a phase. Frames that were due before the end of the run and are
/// missing count as late in the phases that last until the end.
fn frame_stats(
    source: &SourceSpec,
    identity: &FlowIdentity,
    meter: &FlowMeter,
    totals: &FlowTotals,
    phase_end: Time,
) -> FrameIntervalStats {
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
    FrameIntervalStats {
        frames: counters.responses as f64,
        late: deadline.filter(|_| all > 0).map(|_| late),
        mean_s: counters.response_time_mean_s(),
        p50_s: totals.response_s(0.5),
        p95_s: totals.response_s(0.95),
        p99_s: totals.response_s(0.99),
        max_s: totals.response_ns.as_ref().and_then(|ns| ns.max()).map(seconds),
    }
}
