//! The event sink that measures a run.

use jostle_link::{DropReason, Service};
use jostle_units::{ConnectionId, FlowId, LinkId, SendLimit, Span, Time};

use crate::contest::Contests;
use crate::event_sink::{AckEvent, EventSink, FlowState};
use crate::fair_bins::FairBinMeter;
use crate::flow_meter::FlowMeter;
use crate::link_meter::{LinkMeter, LinkState, Sending};
use crate::memory_limit::{self, MemoryShortage, OutOfMemory};
use crate::run_record::{Datagrams, ESTIMATES, FlowIdentity, Recorded, RunRecord};
use crate::summary::Summary;
use crate::tables::{AckTable, ControllerStateTable, FlowTable, seconds};
use crate::timeline::Timeline;
use crate::transfer_log::Connections;
use jostle_run_spec::{RunSpec, SourceSpec, TraceLevel};
use jostle_traffic::{PlayerBuffer, VideoMeter};

/// Event sink that measures a run.
///
/// Every sample is recorded once: in counters, which are copied at the ends of intervals and at
/// phase boundaries, and in the distributions of the segment between two boundaries.
/// [`finish`](Self::finish) merges the segments into phases.
///
/// Intervals end at every multiple of `interval_ns` and at the end of the run. The simulator
/// reports each end with one call of [`flow_state`](EventSink::flow_state) per flow and one of
/// [`link_state`](EventSink::link_state) per link.
#[derive(Clone, Debug)]
pub struct Recorder {
    run: Recorded,
    shortage: MemoryShortage,
    /// Number of completed segments.
    closed: usize,
    /// Whether the series of flows and controllers are recorded.
    keeps_series: bool,
}

impl Recorder {
    /// Like [`new`](Self::new), but checks the memory for the run's series first.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn try_new(spec: &RunSpec) -> Result<Self, OutOfMemory> {
        memory_limit::for_series(spec, &Timeline::new(spec))?;
        Ok(Self::new(spec))
    }

    /// Records no series, for callers of [`finish_summary`](Self::finish_summary). The measures
    /// are the same.
    #[must_use]
    pub fn without_series(mut self) -> Self {
        self.keeps_series = false;
        self.run.flow_table = FlowTable::default();
        self.run.acks = None;
        self
    }

    /// Returns a flag that is set during the run if memory runs out. The recorder then stops
    /// recording.
    pub fn shortage(&self) -> MemoryShortage {
        self.shortage.clone()
    }

    /// Creates a recorder for one run of a valid `spec`.
    pub fn new(spec: &RunSpec) -> Self {
        let timeline = Timeline::new(spec);
        let flow_identities = FlowIdentity::all(spec);
        let flow_meter = |flow: &FlowIdentity| {
            let meter =
                FlowMeter::new(flow.stop, timeline.segments()).with_propagation(flow.propagation);
            let meter = match &flow.datagrams {
                None => meter,
                Some(Datagrams::Pings) => meter.with_pings(),
                Some(Datagrams::OneWay(source)) => meter.with_datagrams(source.clone(), flow.start),
            };
            let meter = if flow.is_many { meter.of_many() } else { meter };
            let deadline_ns = flow.frames.as_ref().and_then(SourceSpec::deadline_ns);
            let meter = match deadline_ns {
                None => meter,
                Some(ns) => meter.with_deadline(Span::from_ns(ns)),
            };
            if flow.acknowledges_in_order() { meter } else { meter.without_transmissions() }
        };
        // The receiver of a flow's last proxy leg is the flow's receiver.
        let competing = flow_identities.iter().enumerate().filter(|(_, flow)| flow.competes());
        let competing = competing.map(|(at, flow)| (at, flow.last.unwrap_or(at)));
        let run = Recorded {
            phases: spec.phases.clone(),
            flows: flow_identities.iter().map(flow_meter).collect(),
            fair_bins: FairBinMeter::new(competing, &spec.phases),
            flow_identities,
            contests: Contests::new(spec),
            link_names: spec.links.iter().map(|link| link.name.clone()).collect(),
            links: spec.links.iter().map(|_| LinkMeter::new(&timeline)).collect(),
            flow_table: FlowTable::with_capacity(timeline.bins() * spec.flows.len()),
            internals: ControllerStateTable::default(),
            connections: Connections::new(spec),
            acks: (spec.record == TraceLevel::Acks).then(AckTable::default),
            services: Vec::with_capacity(timeline.segments() * spec.links.len()),
            timeline,
        };
        let shortage = MemoryShortage::default();
        let mut recorder = Self { run, shortage, closed: 0, keeps_series: true };
        recorder.watch(spec);
        recorder
    }

    fn watch(&mut self, spec: &RunSpec) {
        for (meter, flow) in self.run.flows.iter_mut().zip(&spec.flows) {
            if let SourceSpec::Video(video) = &flow.source {
                let leaves = flow.stop_ns.map_or(Time::NEVER, Time::from_ns);
                let playback = PlayerBuffer::new(video);
                meter.viewing = Some(Box::new(VideoMeter { playback, leaves }));
            }
            if let SourceSpec::Web(_) = &flow.source {
                meter.pages = Some(Box::default());
            }
        }
    }

    /// Creates a recorder for a sampled run, in which an ACK event represents many ACKs.
    pub(crate) fn of_samples(spec: &RunSpec) -> Self {
        let mut recorder = Self::new(spec);
        recorder.run.flows.iter_mut().for_each(FlowMeter::forget_details);
        recorder
    }

    /// Creates a recorder for a capture. Flows whose sender was not `seen` have no RTT of ACKs. No
    /// flow has queueing delays, or losses of datagrams.
    pub fn of_capture(spec: &RunSpec, seen: &[bool]) -> Self {
        let mut recorder = Self::new(spec);
        for (meter, seen) in recorder.run.flows.iter_mut().zip(seen) {
            meter.forget_waits();
            // A capture does not show the numbers of datagrams.
            meter.datagrams = None;
            if !seen {
                meter.forget_details();
            }
        }
        recorder
    }

    /// Like [`sent`](EventSink::sent), but for packets with headers of another size than in
    /// simulated runs. `amount` holds the number of packets, their bytes on the wire, and the
    /// payload that was not sent before.
    #[inline]
    pub fn sent_payload(
        &mut self,
        now: Time,
        connection: ConnectionId,
        amount: (u32, u64, u64),
        retransmission: bool,
    ) {
        self.meter(connection).sent_payload(now, amount, retransmission);
    }

    /// Records that `limit` kept the sender of a flow from sending for `length` up to now. For
    /// sources that report sums instead of changes.
    pub fn limited_for(&mut self, connection: ConnectionId, limit: SendLimit, length: Span) {
        self.meter(connection).limited_for(limit, length);
    }

    /// Records the outcome of the latest transfer of a connection. For sources that report
    /// transfers after the run.
    pub(crate) fn transfer_outcome(
        &mut self,
        connection: ConnectionId,
        after: Option<Span>,
        packets: u32,
    ) {
        self.run.connections.repeated(connection, packets);
        if let Some(after) = after {
            self.run.connections.ended(connection, after);
        }
    }

    /// Ends the run and returns the measures and all series.
    pub fn finish(mut self) -> RunRecord {
        self.close();
        self.run.finish()
    }

    /// Ends the run and returns the measures.
    pub fn finish_summary(mut self) -> Summary {
        self.close();
        self.run.finish_summary()
    }

    /// Closes all intervals at the end of the run.
    fn close(&mut self) {
        while self.closed < self.run.timeline.segments() {
            // The simulator did not report the service rates up to this boundary.
            self.run.services.extend(self.run.links.iter().map(|_| Service::from(f64::NAN)));
            self.close_segments(self.run.timeline.segment_end(self.closed));
        }
        let end = self.run.timeline.end();
        self.run.flows.iter_mut().for_each(|flow| flow.finish(end));
        if self.run.fair_bins.is_due(end) {
            self.close_fair_bins(end);
        }
        for link in &mut self.run.links {
            link.finish(&self.run.timeline);
        }
    }

    /// Decides for the bins that end until `now` whether the flows had about the same throughput.
    #[cold]
    fn close_fair_bins(&mut self, now: Time) {
        let Recorded { fair_bins, flows, flow_identities, .. } = &mut self.run;
        fair_bins.advance(
            now,
            |at| flows[at].received_bytes(),
            |at| flow_identities[at].life(flows[at].completion()),
        );
    }

    /// Returns the flow of a connection. Single flows need only a bounds check.
    #[inline]
    fn flow_of(&self, connection: ConnectionId) -> FlowId {
        let Recorded { flows, connections, .. } = &self.run;
        connection.own_flow(flows.len()).unwrap_or_else(|| connections.flow_of(connection))
    }

    /// Returns the meter of the flow of a connection.
    #[inline]
    fn meter(&mut self, connection: ConnectionId) -> &mut FlowMeter {
        let flow = self.flow_of(connection);
        &mut self.run.flows[flow.index()]
    }

    fn close_segments(&mut self, now: Time) {
        for flow in &mut self.run.flows {
            flow.close_segment(now);
        }
        self.closed += 1;
    }
}

impl EventSink for Recorder {
    #[inline]
    fn wants_transit_times(&self) -> bool {
        true
    }

    fn opened(&mut self, now: Time, flow: FlowId) {
        self.run.flow_identities[flow.index()].start = now;
        if let Some(datagrams) = &mut self.run.flows[flow.index()].datagrams {
            datagrams.start(now);
        }
    }

    fn connection_opened(&mut self, _now: Time, _connection: ConnectionId, flow: FlowId) {
        self.run.connections.connected(flow);
    }

    fn transfer_requested(&mut self, now: Time, connection: ConnectionId, payload_bytes: u64) {
        self.run.connections.requested(seconds(now.as_ns()), connection, payload_bytes);
    }

    #[inline]
    fn sent(
        &mut self,
        now: Time,
        connection: ConnectionId,
        packets: u32,
        wire_bytes: u64,
        retransmission: bool,
    ) {
        if retransmission {
            self.run.connections.repeated(connection, packets);
        }
        self.meter(connection).sent(now, packets, wire_bytes, retransmission);
    }

    fn options_sent(&mut self, _now: Time, connection: ConnectionId, bytes: u32) {
        self.meter(connection).options_sent(bytes);
    }

    /// The connections of a flow can have different limits at the same time. Its meter has one.
    #[inline]
    fn send_limit(&mut self, now: Time, connection: ConnectionId, limit: SendLimit) {
        if let Some(meter) = self.run.flows.get_mut(connection.index()) {
            meter.limited(now, limit);
        }
    }

    #[inline]
    fn received(&mut self, now: Time, connection: ConnectionId, wire_bytes: u32) {
        if self.run.fair_bins.is_due(now) {
            self.close_fair_bins(now);
        }
        self.meter(connection).received(wire_bytes);
    }

    #[inline]
    fn packet_transit(&mut self, _now: Time, connection: ConnectionId, delay: Span, waited: Span) {
        self.meter(connection).travelled(delay, waited);
    }

    #[inline]
    fn delivered(&mut self, _now: Time, connection: ConnectionId, payload_bytes: u64) {
        self.meter(connection).delivered(payload_bytes);
    }

    #[inline]
    fn acked(&mut self, now: Time, connection: ConnectionId, row: &AckEvent) {
        let flow = self.flow_of(connection);
        let segment_rtt = self.run.flows[flow.index()].acked(now, row);
        if let Some(acks) = &mut self.run.acks {
            acks.push(now, flow, row, segment_rtt, &self.shortage);
        }
    }

    fn datagram_received(
        &mut self,
        _now: Time,
        connection: ConnectionId,
        number: u32,
        delay: Span,
    ) {
        if let Some(datagrams) = &mut self.run.flows[connection.index()].datagrams {
            datagrams.arrived(number, delay);
        }
    }

    fn ping_reply(&mut self, _now: Time, connection: ConnectionId, rtt: Span) {
        self.run.flows[connection.index()].echoed(rtt);
    }

    fn min_rtt(&mut self, _now: Time, connection: ConnectionId, rtt: Span) {
        self.meter(connection).least_rtt(rtt);
    }

    fn ping_lost(&mut self, _now: Time, connection: ConnectionId, number: u32) {
        self.run.flows[connection.index()].unanswered(number);
    }

    fn response_complete(&mut self, _now: Time, connection: ConnectionId, after: Span) {
        self.run.connections.ended(connection, after);
        self.meter(connection).responded(after);
    }

    fn segment_loaded(&mut self, now: Time, connection: ConnectionId, bitrate_bps: u64) {
        if let Some(viewing) = &mut self.run.flows[connection.index()].viewing {
            viewing.playback.loaded(now, bitrate_bps);
        }
    }

    fn page_requested(&mut self, _now: Time, flow: FlowId) {
        if let Some(pages) = &mut self.run.flows[flow.index()].pages {
            pages.requested += 1;
        }
    }

    fn page_loaded(&mut self, _now: Time, flow: FlowId, after: Span) {
        if let Some(pages) = &mut self.run.flows[flow.index()].pages {
            pages.loaded(after);
        }
    }

    fn flow_completed(&mut self, now: Time, connection: ConnectionId, after: Span) {
        match self.run.flows.get_mut(connection.index()) {
            Some(meter) => meter.completed(now, after),
            None => self.run.connections.ended(connection, after),
        }
    }

    #[inline]
    fn queue_changed(&mut self, now: Time, link: LinkId, bytes: u64, _packets: u64) {
        self.run.links[link.index()].queue_changed(now, bytes, &self.run.timeline);
    }

    #[inline]
    fn link_sent(
        &mut self,
        start: Time,
        finish: Time,
        link: LinkId,
        wire_bytes: u32,
        waited: Span,
    ) {
        let sending = Sending { start, finish, bytes: wire_bytes };
        self.run.links[link.index()].sent(sending, waited, &self.run.timeline);
    }

    fn dropped(
        &mut self,
        now: Time,
        link: LinkId,
        _connection: ConnectionId,
        reason: DropReason,
        queued_bytes: u32,
    ) {
        self.run.links[link.index()].dropped(now, reason, queued_bytes, &self.run.timeline);
    }

    fn duplicated(&mut self, now: Time, link: LinkId, _connection: ConnectionId) {
        self.run.links[link.index()].duplicated(now, &self.run.timeline);
    }

    fn marked(&mut self, now: Time, link: LinkId, _connection: ConnectionId, reason: DropReason) {
        self.run.links[link.index()].marked(now, reason, &self.run.timeline);
    }

    fn flow_state(&mut self, now: Time, flow: FlowId, state: &FlowState) {
        let meter = &mut self.run.flows[flow.index()];
        if self.keeps_series {
            let identity = &self.run.flow_identities[flow.index()];
            let is_open = identity.start < now;
            meter.close_bin(now, flow, is_open, state, &mut self.run.flow_table);
            if !identity.responds {
                // Frames and objects of pages are measured alike, but are no responses.
                self.run.flow_table.clear_last_responses();
            }
        }
        if let Some(playback) = meter.viewing.as_mut().map(|viewing| viewing.until(now))
            && let Some(bitrate_bps) = playback.bitrate_bps()
            && self.keeps_series
        {
            let internals = &mut self.run.internals;
            internals.push(now, flow, "video_buffer_s", playback.buffered().as_secs_f64());
            internals.push(now, flow, "video_bitrate_bps", bitrate_bps as f64);
        }
    }

    fn controller_state(&mut self, now: Time, flow: FlowId, quantity: &'static str, value: f64) {
        if self.keeps_series || ESTIMATES.contains(&quantity) {
            self.run.internals.push(now, flow, quantity, value);
        }
    }

    fn link_state(&mut self, _now: Time, link: LinkId, queue_bytes: u64, service: Service) {
        self.run.links[link.index()].state(LinkState { queue_bytes, service });
    }

    fn phase_boundary(&mut self, now: Time, services: &[Service]) {
        // The start of the run ends no segment.
        if now == self.run.timeline.segment_end(self.closed) {
            self.run.services.extend_from_slice(services);
            self.close_segments(now);
        }
    }
}
