//! Converts the samples of a kernel run into events, so that the run is recorded like a simulated
//! one.
//!
//! Counters and states are known only at the samples. A counter is interpolated linearly between
//! two samples; a state keeps its value until the next sample. The sampler wakes at the ends of
//! intervals and phases, but may be late. Each of these times therefore uses the nearest sample.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

use jostle_link::{DropReason, Error, Service};
use jostle_units::{ConnectionId, FlowId, LinkId, Rate, SendLimit, Span, Time};

use crate::departures::Departures;
use crate::event_sink::{AckEvent, EventSink, FlowState};
use crate::fair_bins;
use crate::kernel_services::LinkService;
use crate::{Recorder, RunRecord};
use jostle_run_spec::{FlowSpec, RunSpec, SourceSpec};
use jostle_traffic::{MessageRecord, PageRecord};

const REASONS: usize = DropReason::ALL.len();

/// Samples of a flow, one value per sample. NaN means unknown.
#[derive(Clone, Debug, Default)]
pub struct SampledFlow {
    /// Time of the start; `None` if the flow still waited for another flow at the end.
    pub start: Option<Time>,
    /// Time at which all data were acknowledged.
    pub completed: Option<Time>,
    /// Messages of each connection, in order.
    pub connections: Vec<Vec<MessageRecord>>,
    /// Pages of a browser, in order.
    pub pages: Vec<PageRecord>,
    /// Arrival time, number counted from 0, and one-way delay of each one-way datagram received, in
    /// order.
    pub datagrams: Vec<(Time, u32, Span)>,
    /// Each ping in order: time of its reply or timeout, its number, and its RTT. The RTT is `None`
    /// if no reply arrived in time.
    pub pings: Vec<(Time, u32, Option<Span>)>,
    /// Bytes put on the wire so far.
    pub sent_bytes: Vec<f64>,
    /// Bytes received so far.
    pub received_bytes: Vec<f64>,
    /// Payload delivered so far.
    pub delivered_bytes: Vec<f64>,
    /// Packets sent so far, including retransmissions.
    pub sent_packets: Vec<f64>,
    /// Packets retransmitted so far.
    pub retransmitted_packets: Vec<f64>,
    /// Time so far, in ns, during which each limit held; empty if unknown.
    pub limited_ns: Vec<(SendLimit, Vec<f64>)>,
    /// RTT reported by ACKs since the previous sample.
    pub rtt_s: Vec<f64>,
    /// Smoothed RTT.
    pub srtt_s: Vec<f64>,
    /// Smallest RTT so far.
    pub rtt_min_s: Vec<f64>,
    /// Congestion window; NaN before the handshake is complete.
    pub cwnd_bytes: Vec<f64>,
    /// Slow-start threshold.
    pub ssthresh_bytes: Vec<f64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<f64>,
    /// Pacing rate.
    pub pacing_rate_bps: Vec<f64>,
    /// Mode of the controller.
    pub mode: Vec<&'static str>,
    /// Internal values of the controller, by name.
    pub internals: Vec<(&'static str, Vec<f64>)>,
    /// Initial window.
    pub initial_cwnd_bytes: u64,
}

/// Samples of a link, one value per sample.
#[derive(Clone, Debug, Default)]
pub struct SampledLink {
    /// Bytes sent so far.
    pub sent_bytes: Vec<f64>,
    /// Packets sent so far.
    pub sent_packets: Vec<f64>,
    /// Bytes waiting in the queue.
    pub queue_bytes: Vec<f64>,
    /// Packets dropped so far, by reason in the order of [`DropReason::ALL`].
    pub dropped: [Vec<f64>; REASONS],
    /// Packets marked so far, by reason in the order of [`DropReason::ALL`].
    pub marked: [Vec<f64>; REASONS],
    /// Packets duplicated so far.
    pub duplicated: Vec<f64>,
}

/// Samples of a kernel run. There is at least one, and all lists have the same length.
#[derive(Clone, Debug, Default)]
pub struct KernelSamples {
    /// Sample times; never decreasing.
    pub times: Vec<Time>,
    /// Flows in the order of the spec.
    pub flows: Vec<SampledFlow>,
    /// Links in the order of the spec.
    pub links: Vec<SampledLink>,
}

impl KernelSamples {
    /// Records the run of `spec` that the samples describe.
    ///
    /// # Errors
    /// If a capacity in the spec is invalid.
    pub fn record(&self, spec: &RunSpec) -> Result<RunRecord, Error> {
        let mut reporter = Reporter {
            samples: self,
            phase_services: LinkService::all(spec)?,
            services: LinkService::all(spec)?,
            stops: spec
                .flows
                .iter()
                .map(|flow| flow.stop_ns.map_or(Time::NEVER, Time::from_ns))
                .collect(),
            flows: vec![ReportedFlow::default(); self.flows.len()],
            links: vec![ReportedLink::default(); self.links.len()],
            recorder: Recorder::of_samples(spec),
            events: self.application_events(spec).into_iter().peekable(),
            connections: BTreeMap::new(),
        };
        reporter.open(spec);
        let (mut before, mut next) = (Time::ZERO, 0);
        for (moment, ends_interval, ends_phase) in moments(spec) {
            let last = self.nearest(moment);
            for sample in next..=last {
                let now = self.times[sample].max(before).min(moment);
                reporter.count_links(now);
                reporter.sample(sample, now);
            }
            reporter.count_links(moment);
            reporter.complete(moment);
            reporter.report_events(moment);
            reporter.count_flows(moment);
            if ends_interval {
                reporter.end_interval(moment, last);
            }
            if ends_phase {
                let services = read_services(&mut reporter.phase_services, &reporter.links, moment);
                reporter.recorder.phase_boundary(moment, &services);
            }
            (before, next) = (moment, last + 1);
        }
        Ok(reporter.recorder.finish())
    }

    /// Returns what the applications did during the run, in order of time.
    fn application_events(&self, spec: &RunSpec) -> Vec<(Time, FlowId, ApplicationEvent)> {
        let end_ns = spec.duration_ns;
        let mut events = Vec::new();
        for (flow, (seen, spec)) in (0..).map(FlowId).zip(self.flows.iter().zip(&spec.flows)) {
            let mut add = |at: Time, event| events.push((at, flow, event));
            for (connection, messages) in (0..).zip(&seen.connections) {
                for message in messages {
                    if spec.arrivals.is_some() {
                        let transfer = Transfer::of(spec, connection, message, end_ns);
                        add(
                            Time::from_ns(message.requested_ns),
                            ApplicationEvent::Transfer(transfer),
                        );
                    }
                    let Some(received_ns) = message.received_ns else { continue };
                    let received = Time::from_ns(received_ns);
                    let after = received.since(Time::from_ns(message.requested_ns));
                    let event = message
                        .bitrate_bps
                        .map_or(ApplicationEvent::Response(after), ApplicationEvent::Segment);
                    add(received, event);
                }
            }
            for page in &seen.pages {
                let requested = Time::from_ns(page.requested_ns);
                add(requested, ApplicationEvent::PageRequested);
                if let Some(after) = page.load_ns.map(Span::from_ns) {
                    add(requested + after, ApplicationEvent::PageLoaded(after));
                }
            }
            for &(came, number, delay) in &seen.datagrams {
                add(came, ApplicationEvent::Datagram(number, delay));
            }
            for &(known, number, rtt) in &seen.pings {
                add(known, ApplicationEvent::Ping(number, rtt));
            }
        }
        // Stable: events of one flow at one time keep their order.
        events.sort_by_key(|(at, flow, _)| (*at, *flow));
        events
    }

    /// Returns the index of the sample nearest to `moment`.
    fn nearest(&self, moment: Time) -> usize {
        let last = self.times.len().saturating_sub(1);
        let after = self.times.partition_point(|time| *time < moment).min(last);
        let before = after.saturating_sub(1);
        let nearer = moment.since(self.times[before]) <= self.times[after].since(moment);
        // `since` returns 0 for an earlier time, so the comparison with `after` is needed.
        if self.times[after] > moment && nearer { before } else { after }
    }

    /// Returns the interpolated value of a counter at `moment`.
    fn at(&self, counter: &[f64], moment: Time) -> u64 {
        let last = self.times.len().saturating_sub(1);
        let after = self.times.partition_point(|time| *time < moment).min(last);
        let before = after.saturating_sub(1);
        let (from, to) = (self.times[before], self.times[after]);
        let length_ns = to.since(from).as_ns();
        let passed_ns = moment.min(to).since(from).as_ns();
        let part = if length_ns == 0 { 1.0 } else { passed_ns as f64 / length_ns as f64 };
        (counter[before] + (counter[after] - counter[before]) * part).round() as u64
    }
}

/// Returns the ends of intervals and the bounds of phases in order, each with two flags: it ends an
/// interval, it bounds a phase.
fn moments(spec: &RunSpec) -> Vec<(Time, bool, bool)> {
    let duration = spec.duration_ns;
    let interval = spec.interval_ns.max(1);
    let ends = (1..duration.div_ceil(interval)).map(|number| number * interval).chain([duration]);
    let bounds = spec.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]);
    let bounds: Vec<u64> = bounds.chain([0, duration]).collect();
    // Whether flows share fairly is decided for every second.
    let bin_ns = fair_bins::BIN.as_ns();
    let bins = (1..=duration / bin_ns).map(|number| number * bin_ns);
    let mut all: Vec<u64> = ends.chain(bounds.iter().copied()).chain(bins).collect();
    all.sort_unstable();
    all.dedup();
    let ends_interval = |ns: u64| ns > 0 && (ns.is_multiple_of(interval) || ns == duration);
    all.into_iter().map(|ns| (Time::from_ns(ns), ends_interval(ns), bounds.contains(&ns))).collect()
}

/// Counters of a flow that were already reported to the recorder.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedFlow {
    limited_ns: [u64; SendLimit::COUNT],
    sent_bytes: u64,
    received_bytes: u64,
    delivered_bytes: u64,
    sent_packets: u64,
    retransmitted_packets: u64,
    rtt_min: Option<Span>,
    /// An ACK of data has come.
    acknowledged: bool,
    completed: bool,
}

/// Event of an application.
#[derive(Clone, Copy, Debug)]
enum ApplicationEvent {
    /// A response was complete at the receiver, this long after its request.
    Response(Span),
    /// A video segment of this bitrate was complete at the player.
    Segment(u64),
    /// A one-way datagram arrived: its number and delay.
    Datagram(u32, Span),
    /// The result of a ping is known: its number, and the RTT if it was answered in time.
    Ping(u32, Option<Span>),
    PageRequested,
    /// A page was complete at the browser, this long after its request.
    PageLoaded(Span),
    Transfer(Transfer),
}

/// A transfer of a multi-connection flow.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// Number of the connection within the flow.
    connection: u32,
    bytes: u64,
    /// Completion time, if it was complete by the end of the run.
    after: Option<Span>,
    retransmitted_packets: u32,
}

impl Transfer {
    /// A response is complete at the receiver, another transfer at its last acknowledgement.
    fn of(flow: &FlowSpec, connection: u32, message: &MessageRecord, end_ns: u64) -> Self {
        let over_ns = match flow.source {
            SourceSpec::RequestResponse { .. } => message.received_ns,
            _ => message.acknowledged_ns,
        };
        let over_ns = over_ns.filter(|over_ns| *over_ns <= end_ns);
        Self {
            connection,
            bytes: message.bytes,
            after: over_ns
                .map(|over_ns| Span::from_ns(over_ns.saturating_sub(message.requested_ns))),
            retransmitted_packets: message.retransmitted_packets.try_into().unwrap_or(u32::MAX),
        }
    }
}

/// Counters of a link that were already reported to the recorder.
#[derive(Clone, Debug, Default)]
struct ReportedLink {
    departures: Departures,
    sent_bytes: u64,
    sent_packets: u64,
    dropped: [u64; REASONS],
    marked: [u64; REASONS],
    duplicated: u64,
}

/// Reports the samples to a recorder.
struct Reporter<'a> {
    samples: &'a KernelSamples,
    /// Read at the ends of intervals and at the boundaries of phases. They are separate, because
    /// the sizes of packets are estimated between two readings, and the values of a phase must not
    /// depend on the sampling interval.
    services: Vec<LinkService>,
    phase_services: Vec<LinkService>,
    stops: Vec<Time>,
    flows: Vec<ReportedFlow>,
    links: Vec<ReportedLink>,
    recorder: Recorder,
    /// Events of applications that were not reported yet.
    events: Peekable<IntoIter<(Time, FlowId, ApplicationEvent)>>,
    /// Numbers of connections in the run, by flow and number within the flow.
    connections: BTreeMap<(FlowId, u32), ConnectionId>,
}

impl Reporter<'_> {
    /// Reports the start of flows that waited for another flow.
    fn open(&mut self, spec: &RunSpec) {
        for (number, (flow, seen)) in
            (0..).map(FlowId).zip(spec.flows.iter().zip(&self.samples.flows))
        {
            if let (Some(_), Some(start)) = (flow.after, seen.start) {
                self.recorder.opened(start, number);
            }
        }
    }

    /// Reports the states of a sample at the time `now`.
    fn sample(&mut self, sample: usize, now: Time) {
        self.complete(now);
        for (number, seen) in (0..).map(FlowId).zip(&self.samples.flows) {
            let reported = &mut self.flows[number.index()];
            let rtt = span(seen.rtt_s[sample]);
            let cwnd_bytes = seen.cwnd_bytes[sample];
            if cwnd_bytes.is_nan() {
                continue;
            }
            let least = span(seen.rtt_min_s[sample]);
            if let Some(rtt) =
                least.filter(|rtt| reported.rtt_min.is_none_or(|before| *rtt < before))
            {
                self.recorder.min_rtt(now, number.into(), rtt);
                reported.rtt_min = Some(rtt);
            }
            // Its lifetime begins with its first ACK. After its end, only further ACKs extend it.
            reported.acknowledged |= rtt.is_some();
            let ended = reported.completed || now > self.stops[number.index()];
            if rtt.is_some() || (reported.acknowledged && !ended) {
                let row = AckEvent {
                    rtt,
                    cwnd_bytes: cwnd_bytes as u64,
                    in_flight_bytes: seen.in_flight_bytes[sample] as u64,
                    acked_bytes: seen.delivered_bytes[sample] as u64,
                    lost_packets: 0,
                };
                self.recorder.acked(now, number.into(), &row);
            }
        }
        for (number, seen) in (0..).map(LinkId).zip(&self.samples.links) {
            self.recorder.queue_changed(now, number, seen.queue_bytes[sample] as u64, 0);
        }
    }

    /// Reports flows that completed until `now`.
    fn complete(&mut self, now: Time) {
        for (number, (seen, reported)) in
            (0..).map(FlowId).zip(self.samples.flows.iter().zip(&mut self.flows))
        {
            let (Some(completed), Some(start)) = (seen.completed, seen.start) else { continue };
            if completed <= now && !reported.completed {
                reported.completed = true;
                self.recorder.flow_completed(completed, number.into(), completed.since(start));
            }
        }
    }

    /// Reports what applications did before `moment`.
    fn report_events(&mut self, moment: Time) {
        while let Some((now, flow, event)) = self.events.next_if(|(at, ..)| *at < moment) {
            let recorder = &mut self.recorder;
            match event {
                ApplicationEvent::Response(after) => {
                    recorder.response_complete(now, flow.into(), after)
                }
                ApplicationEvent::Segment(bitrate) => {
                    recorder.segment_loaded(now, flow.into(), bitrate)
                }
                ApplicationEvent::Datagram(number, delay) => {
                    // The queueing delay is unknown.
                    recorder.packet_transit(now, flow.into(), delay, Span::ZERO);
                    recorder.datagram_received(now, flow.into(), number, delay);
                }
                ApplicationEvent::Ping(_, Some(rtt)) => recorder.ping_reply(now, flow.into(), rtt),
                ApplicationEvent::Ping(number, None) => {
                    recorder.ping_lost(now, flow.into(), number)
                }
                ApplicationEvent::PageRequested => recorder.page_requested(now, flow),
                ApplicationEvent::PageLoaded(after) => recorder.page_loaded(now, flow, after),
                ApplicationEvent::Transfer(transfer) => self.report_transfer(now, flow, transfer),
            }
        }
    }

    fn report_transfer(&mut self, now: Time, flow: FlowId, transfer: Transfer) {
        let next = ConnectionId::at(self.flows.len() + self.connections.len());
        let number = *self.connections.entry((flow, transfer.connection)).or_insert(next);
        if number == next {
            self.recorder.connection_opened(now, number, flow);
        }
        self.recorder.transfer_requested(now, number, transfer.bytes);
        self.recorder.transfer_outcome(number, transfer.after, transfer.retransmitted_packets);
    }

    /// Reports the counters of flows until `moment`. Received bytes are reported 1 ns earlier,
    /// because they arrived before.
    fn count_flows(&mut self, moment: Time) {
        let samples = self.samples;
        let arrival = Time::from_ns(moment.as_ns().saturating_sub(1));
        for (number, (seen, reported)) in
            (0..).map(FlowId).zip(samples.flows.iter().zip(&mut self.flows))
        {
            let grown =
                |counter: &[f64], reported: &mut u64| grown(samples.at(counter, moment), reported);
            let packets = grown(&seen.sent_packets, &mut reported.sent_packets);
            let again = grown(&seen.retransmitted_packets, &mut reported.retransmitted_packets);
            let bytes = grown(&seen.sent_bytes, &mut reported.sent_bytes);
            let received = grown(&seen.received_bytes, &mut reported.received_bytes);
            let delivered = grown(&seen.delivered_bytes, &mut reported.delivered_bytes);
            for (part, part_bytes) in split_packets(packets.saturating_sub(again), bytes) {
                self.recorder.sent(moment, number.into(), part, part_bytes, false);
            }
            for (part, _) in split_packets(again, 0) {
                self.recorder.sent(moment, number.into(), part, 0, true);
            }
            for part in split_bytes(received) {
                self.recorder.received(arrival, number.into(), part);
            }
            self.recorder.delivered(moment, number.into(), delivered);
            for (limit, counter) in &seen.limited_ns {
                let held_ns = grown(counter, &mut reported.limited_ns[*limit as usize]);
                self.recorder.limited_for(number.into(), *limit, Span::from_ns(held_ns));
            }
        }
    }

    /// Reports the counters of links 1 ns before `moment`, because a link keeps time independently
    /// of interval ends. The queueing delay of the packets sent is estimated; see [`Departures`].
    fn count_links(&mut self, moment: Time) {
        let now = Time::from_ns(moment.as_ns().saturating_sub(1));
        let samples = self.samples;
        for (number, (seen, reported)) in
            (0..).map(LinkId).zip(samples.links.iter().zip(&mut self.links))
        {
            let grown =
                |counter: &[f64], reported: &mut u64| grown(samples.at(counter, moment), reported);
            let packets = grown(&seen.sent_packets, &mut reported.sent_packets);
            // Interpolated bytes are reported together with the packet to which they belong.
            let bytes = match packets {
                0 => 0,
                _ => grown(&seen.sent_bytes, &mut reported.sent_bytes),
            };
            let queue_bytes = samples.at(&seen.queue_bytes, moment) as f64;
            let waited = reported.departures.wait(now, reported.sent_bytes, queue_bytes);
            for part in shared(bytes, packets) {
                self.recorder.link_sent(now, now, number, part, waited);
            }
            for _ in 0..grown(&seen.duplicated, &mut reported.duplicated) {
                self.recorder.duplicated(now, number, ConnectionId(0));
            }
            for (index, reason) in DropReason::ALL.into_iter().enumerate() {
                for _ in 0..grown(&seen.dropped[index], &mut reported.dropped[index]) {
                    // Samples do not show whether the packet was queued first.
                    self.recorder.dropped(now, number, ConnectionId(0), reason, 0);
                }
                for _ in 0..grown(&seen.marked[index], &mut reported.marked[index]) {
                    self.recorder.marked(now, number, ConnectionId(0), reason);
                }
            }
        }
    }

    /// Reports the states at the end of an interval.
    fn end_interval(&mut self, now: Time, sample: usize) {
        for (number, seen) in (0..).map(FlowId).zip(&self.samples.flows) {
            let there = |value: f64| Some(value).filter(|value| !value.is_nan());
            let bytes = |value: f64| there(value).map(|bytes| bytes as u64);
            let state = FlowState {
                srtt: span(seen.srtt_s[sample]).unwrap_or(Span::ZERO),
                cwnd_bytes: bytes(seen.cwnd_bytes[sample]).unwrap_or(seen.initial_cwnd_bytes),
                ssthresh_bytes: bytes(seen.ssthresh_bytes[sample]),
                in_flight_bytes: bytes(seen.in_flight_bytes[sample]).unwrap_or(0),
                pacing_rate: there(seen.pacing_rate_bps[sample])
                    .map(|bps| Rate::from_bps(bps as u64)),
                mode: seen.mode[sample],
            };
            self.recorder.flow_state(now, number, &state);
            for (quantity, values) in &seen.internals {
                if let Some(value) = there(values[sample]) {
                    self.recorder.controller_state(now, number, quantity, value);
                }
            }
        }
        let services = read_services(&mut self.services, &self.links, now);
        for (number, (seen, service)) in
            (0..).map(LinkId).zip(self.samples.links.iter().zip(services))
        {
            self.recorder.link_state(now, number, seen.queue_bytes[sample] as u64, service);
        }
    }
}

/// Returns the services of all links until `now`.
fn read_services(services: &mut [LinkService], links: &[ReportedLink], now: Time) -> Vec<Service> {
    let links = services.iter_mut().zip(links);
    links.map(|(service, sent)| service.until(now, sent.sent_packets, sent.sent_bytes)).collect()
}

/// Returns the increase of a counter since its last report.
fn grown(now: u64, reported: &mut u64) -> u64 {
    let growth = now.saturating_sub(*reported);
    *reported += growth;
    growth
}

/// Splits bytes into numbers that fit into an event.
fn split_bytes(bytes: u64) -> impl Iterator<Item = u32> {
    let most = u64::from(u32::MAX);
    (0..bytes.div_ceil(most)).map(move |part| (bytes - part * most).min(most) as u32)
}

/// Splits packets and their bytes into numbers of packets that fit into an event; at least one.
fn split_packets(packets: u64, bytes: u64) -> impl Iterator<Item = (u32, u64)> {
    let most = u64::from(u32::MAX);
    let count = packets.div_ceil(most).max(1);
    // Bytes of the first `first` packets. Without packets all bytes belong to the only chunk.
    let bytes_of = move |first: u64| match first < packets {
        true => (u128::from(bytes) * u128::from(first) / u128::from(packets)) as u64,
        false => bytes,
    };
    (0..count).map(move |part| {
        let (from, to) = (part * most, packets.min((part + 1) * most));
        let before = if part == 0 { 0 } else { bytes_of(from) };
        ((to - from) as u32, bytes_of(to) - before)
    })
}

/// Distributes bytes evenly over packets.
fn shared(bytes: u64, packets: u64) -> impl Iterator<Item = u32> {
    let (each, rest) = (bytes / packets.max(1), bytes % packets.max(1));
    (0..packets).map(move |packet| (each + u64::from(packet < rest)) as u32)
}

fn span(s: f64) -> Option<Span> {
    (!s.is_nan()).then(|| Span::from_ns((s * 1e9).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shared_among_packets() {
        assert_eq!(shared(10, 3).collect::<Vec<_>>(), [4, 3, 3]);
        assert_eq!(shared(0, 0).count(), 0);
        assert_eq!(split_bytes((1 << 32) + 5).map(u64::from).sum::<u64>(), (1 << 32) + 5);
    }

    #[test]
    fn packets_beyond_what_an_event_holds_keep_their_bytes() {
        let most = u64::from(u32::MAX);
        let reported = |packets, bytes| split_packets(packets, bytes).collect::<Vec<_>>();
        assert_eq!(reported(3, 10), [(3, 10)]);
        assert_eq!(reported(0, 7), [(0, 7)]);
        assert_eq!(reported(most + 2, 1500 * (most + 2)), [(u32::MAX, 1500 * most), (2, 3000)]);
    }

    #[test]
    fn a_moment_takes_the_nearest_sample_and_counters_lie_on_lines() {
        let times = [0, 11, 20].map(Time::from_ns).to_vec();
        let samples = KernelSamples { times, ..KernelSamples::default() };
        let nearest = |ns| samples.nearest(Time::from_ns(ns));
        assert_eq!([0, 5, 6, 10, 11, 14, 17, 20, 30].map(nearest), [0, 0, 1, 1, 1, 1, 2, 2, 2]);
        let counter = [0.0, 22.0, 40.0];
        let at = |ns| samples.at(&counter, Time::from_ns(ns));
        assert_eq!([0, 5, 11, 15, 20, 30].map(at), [0, 10, 22, 30, 40, 40]);
    }
}
