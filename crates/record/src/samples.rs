//! A run of which samples are known, recorded as one of which every event is.
//!
//! Counters and states are known at the samples. A counter between two samples lies on the line
//! between them; a state stays what it was at the last one. Samples were asked for at the ends of
//! intervals and phases, and a wake-up may be late: each of those moments takes the sample that is
//! nearest.

use jostle_path::{Capacity, Error, Reason};
use jostle_units::{Rate, Span, Stream, Time};

use crate::build::capacity_of;
use crate::sink::{AckRow, FlowState, Sink};
use crate::{Recorder, RunRecord, RunSpec};

const REASONS: usize = Reason::ALL.len();

/// What was seen of a flow, a value per sample. NaN stands for what is not there.
#[derive(Clone, Debug, Default)]
pub struct SampledFlow {
    /// When it was to open; none if it waited for another to the end.
    pub start: Option<Time>,
    /// When all its data were acknowledged.
    pub completed: Option<Time>,
    /// When each response was whole, in order, and how long it took.
    pub responses: Vec<(Time, Span)>,
    /// When each segment of a video was whole, in order, and its bitrate.
    pub segments: Vec<(Time, u64)>,
    /// Each datagram that nobody answers and that came, in order: when, its number counted from 0, and
    /// how long it was on its way.
    pub datagrams: Vec<(Time, u32, Span)>,
    /// What became of each ping, in order: when it was known, its number, and its round trip; none if
    /// it did not come back in time.
    pub pings: Vec<(Time, u32, Option<Span>)>,
    /// Bytes on the wire so far.
    pub sent_bytes: Vec<f64>,
    /// Bytes that arrived so far.
    pub received_bytes: Vec<f64>,
    /// Payload that was delivered so far.
    pub delivered_bytes: Vec<f64>,
    /// Packets sent so far, retransmissions included.
    pub sent_packets: Vec<f64>,
    /// Packets sent again so far.
    pub retransmitted_packets: Vec<f64>,
    /// The RTT that ACKs since the sample before told.
    pub rtt_s: Vec<f64>,
    /// Smoothed RTT.
    pub srtt_s: Vec<f64>,
    /// Smallest RTT so far.
    pub rtt_min_s: Vec<f64>,
    /// Congestion window; NaN before the handshake was over.
    pub cwnd_bytes: Vec<f64>,
    /// Slow-start threshold.
    pub ssthresh_bytes: Vec<f64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<f64>,
    /// Pacing rate.
    pub pacing_rate_bps: Vec<f64>,
    /// Mode of the controller.
    pub mode: Vec<&'static str>,
    /// What the controller shows, by name.
    pub internals: Vec<(&'static str, Vec<f64>)>,
    /// The window that the first flight has.
    pub initial_cwnd_bytes: u64,
}

/// What was seen of a link, a value per sample.
#[derive(Clone, Debug, Default)]
pub struct SampledLink {
    /// Bytes sent so far.
    pub sent_bytes: Vec<f64>,
    /// Packets sent so far.
    pub sent_packets: Vec<f64>,
    /// Bytes waiting.
    pub queue_bytes: Vec<f64>,
    /// Packets dropped so far, by reason in the order of [`Reason::ALL`].
    pub dropped: [Vec<f64>; REASONS],
    /// Packets marked so far, by reason in the order of [`Reason::ALL`].
    pub marked: [Vec<f64>; REASONS],
}

/// What was seen of a run: at least one sample, all lists of one length.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// When, never decreasing.
    pub times: Vec<Time>,
    /// Flows in the order of the spec.
    pub flows: Vec<SampledFlow>,
    /// Links in the order of the spec.
    pub links: Vec<SampledLink>,
}

impl Samples {
    /// Records a run of `spec`.
    ///
    /// # Errors
    /// When a capacity of the spec makes no sense.
    pub fn record(&self, spec: &RunSpec) -> Result<RunRecord, Error> {
        let capacities = spec.links.iter().map(|link| {
            capacity_of(&link.capacity, Stream::new(spec.seed, &link.stream("capacity")))
        });
        let mut telling = Telling {
            samples: self,
            capacities: capacities.collect::<Result<_, _>>()?,
            stops: spec
                .flows
                .iter()
                .map(|flow| flow.stop_ns.map_or(Time::NEVER, Time::from_ns))
                .collect(),
            flows: vec![ToldFlow::default(); self.flows.len()],
            links: vec![ToldLink::default(); self.links.len()],
            recorder: Recorder::of_samples(spec),
            counted: Time::ZERO,
        };
        telling.open(spec);
        let (mut before, mut next) = (Time::ZERO, 0);
        for (moment, ends_interval, ends_phase) in moments(spec) {
            let last = self.nearest(moment);
            telling.count_links(moment, last);
            for sample in next..=last {
                telling.sample(sample, self.times[sample].max(before).min(moment));
            }
            telling.complete(moment);
            telling.respond(moment);
            telling.arrive(moment);
            telling.echo(moment);
            telling.count_flows(moment);
            if ends_interval {
                telling.end_interval(moment, last);
            }
            if ends_phase {
                let offered_bytes = telling.offered_bytes(moment);
                telling.recorder.boundary(moment, &offered_bytes);
            }
            (before, next) = (moment, last + 1);
        }
        Ok(telling.recorder.finish())
    }

    /// The sample that was meant for a moment.
    fn nearest(&self, moment: Time) -> usize {
        let last = self.times.len().saturating_sub(1);
        let after = self.times.partition_point(|time| *time < moment).min(last);
        let before = after.saturating_sub(1);
        let nearer = moment.since(self.times[before]) <= self.times[after].since(moment);
        // What comes after the moment is 0 since it; what comes before it is no time since that.
        if self.times[after] > moment && nearer { before } else { after }
    }

    /// A counter at a moment.
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

/// Ends of intervals and bounds of phases in order, and which of both each is.
fn moments(spec: &RunSpec) -> Vec<(Time, bool, bool)> {
    let duration = spec.duration_ns;
    let interval = spec.interval_ns.max(1);
    let ends = (1..duration.div_ceil(interval)).map(|number| number * interval).chain([duration]);
    let bounds = spec.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]);
    let bounds: Vec<u64> = bounds.chain([0, duration]).collect();
    let mut all: Vec<u64> = ends.chain(bounds.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let ends_interval = |ns: u64| ns > 0 && (ns.is_multiple_of(interval) || ns == duration);
    all.into_iter().map(|ns| (Time::from_ns(ns), ends_interval(ns), bounds.contains(&ns))).collect()
}

/// What a recorder has been told of a flow so far.
#[derive(Clone, Copy, Debug, Default)]
struct ToldFlow {
    sent_bytes: u64,
    received_bytes: u64,
    delivered_bytes: u64,
    sent_packets: u64,
    retransmitted_packets: u64,
    rtt_min: Option<Span>,
    completed: bool,
    responses: usize,
    segments: usize,
    datagrams: usize,
    pings: usize,
}

/// What a recorder has been told of a link so far.
#[derive(Clone, Copy, Debug, Default)]
struct ToldLink {
    sent_bytes: u64,
    sent_packets: u64,
    dropped: [u64; REASONS],
    marked: [u64; REASONS],
}

/// Tells a recorder.
struct Telling<'a> {
    samples: &'a Samples,
    capacities: Vec<Box<dyn Capacity>>,
    stops: Vec<Time>,
    flows: Vec<ToldFlow>,
    links: Vec<ToldLink>,
    recorder: Recorder,
    /// What links have counted was told until here.
    counted: Time,
}

impl Telling<'_> {
    /// Tells of flows that opened after others.
    fn open(&mut self, spec: &RunSpec) {
        for (number, (flow, seen)) in (0..).zip(spec.flows.iter().zip(&self.samples.flows)) {
            if let (Some(_), Some(start)) = (flow.after, seen.start) {
                self.recorder.opened(start, number);
            }
        }
    }

    /// Tells the states of a sample, which is taken for `now`.
    fn sample(&mut self, sample: usize, now: Time) {
        self.complete(now);
        for (number, seen) in (0..).zip(&self.samples.flows) {
            let told = &mut self.flows[number as usize];
            let rtt = span(seen.rtt_s[sample]);
            let cwnd_bytes = seen.cwnd_bytes[sample];
            if cwnd_bytes.is_nan() {
                continue;
            }
            let least = span(seen.rtt_min_s[sample]);
            if let Some(rtt) = least.filter(|rtt| told.rtt_min.is_none_or(|before| *rtt < before)) {
                self.recorder.least_rtt(now, number, rtt);
                told.rtt_min = Some(rtt);
            }
            // Once it has ended, only ACKs that still come are part of a flow's life.
            let ended = told.completed || now > self.stops[number as usize];
            if rtt.is_some() || !ended {
                let row = AckRow {
                    rtt,
                    cwnd_bytes: cwnd_bytes as u64,
                    in_flight_bytes: seen.in_flight_bytes[sample] as u64,
                    acked_bytes: seen.delivered_bytes[sample] as u64,
                    lost_packets: 0,
                };
                self.recorder.acked(now, number, &row);
            }
        }
        for (number, seen) in (0..).zip(&self.samples.links) {
            self.recorder.queue_changed(now, number, seen.queue_bytes[sample] as u64, 0);
        }
    }

    /// Tells of flows that were complete by `now`.
    fn complete(&mut self, now: Time) {
        for (number, (seen, told)) in (0..).zip(self.samples.flows.iter().zip(&mut self.flows)) {
            let (Some(completed), Some(start)) = (seen.completed, seen.start) else { continue };
            if completed <= now && !told.completed {
                told.completed = true;
                self.recorder.completed(completed, number, completed.since(start));
            }
        }
    }

    /// Tells of responses and segments that were whole before `moment`.
    fn respond(&mut self, moment: Time) {
        for (number, (seen, told)) in (0..).zip(self.samples.flows.iter().zip(&mut self.flows)) {
            for &(whole, after) in &seen.responses[told.responses..] {
                if whole >= moment {
                    break;
                }
                told.responses += 1;
                self.recorder.responded(whole, number, after);
            }
            for &(whole, bitrate_bps) in &seen.segments[told.segments..] {
                if whole >= moment {
                    break;
                }
                told.segments += 1;
                self.recorder.segment_loaded(whole, number, bitrate_bps);
            }
        }
    }

    /// Tells of datagrams that came before `moment`; what they waited for is not known.
    fn arrive(&mut self, moment: Time) {
        for (number, (seen, told)) in (0..).zip(self.samples.flows.iter().zip(&mut self.flows)) {
            for &(came, datagram, delay) in &seen.datagrams[told.datagrams..] {
                if came >= moment {
                    break;
                }
                told.datagrams += 1;
                self.recorder.travelled(came, number, delay, Span::ZERO);
                self.recorder.arrived(came, number, datagram, delay);
            }
        }
    }

    /// Tells what became of pings before `moment`.
    fn echo(&mut self, moment: Time) {
        for (number, (seen, told)) in (0..).zip(self.samples.flows.iter().zip(&mut self.flows)) {
            for &(known, ping, rtt) in &seen.pings[told.pings..] {
                if known >= moment {
                    break;
                }
                told.pings += 1;
                match rtt {
                    Some(rtt) => self.recorder.echoed(known, number, rtt),
                    None => self.recorder.unanswered(known, number, ping),
                }
            }
        }
    }

    /// Tells what flows have counted until `moment`.
    fn count_flows(&mut self, moment: Time) {
        let samples = self.samples;
        for (number, (seen, told)) in (0..).zip(samples.flows.iter().zip(&mut self.flows)) {
            let grown = |counter: &[f64], told: &mut u64| grown(samples.at(counter, moment), told);
            let packets = grown(&seen.sent_packets, &mut told.sent_packets);
            let again = grown(&seen.retransmitted_packets, &mut told.retransmitted_packets);
            let bytes = grown(&seen.sent_bytes, &mut told.sent_bytes);
            let received = grown(&seen.received_bytes, &mut told.received_bytes);
            let delivered = grown(&seen.delivered_bytes, &mut told.delivered_bytes);
            for (part, part_bytes) in packets_in_parts(packets.saturating_sub(again), bytes) {
                self.recorder.sent(moment, number, part, part_bytes, false);
            }
            for (part, _) in packets_in_parts(again, 0) {
                self.recorder.sent(moment, number, part, 0, true);
            }
            for part in parts(received) {
                self.recorder.received(moment, number, part);
            }
            self.recorder.delivered(moment, number, delivered);
        }
    }

    /// Tells what links have counted until `moment`, just before it: a link's time is its own.
    /// What waits at its sample, `last`, tells for how long those that were sent before had waited.
    fn count_links(&mut self, moment: Time, last: usize) {
        let now = Time::from_ns(moment.as_ns().saturating_sub(1));
        let samples = self.samples;
        for (number, (seen, told)) in (0..).zip(samples.links.iter().zip(&mut self.links)) {
            let grown = |counter: &[f64], told: &mut u64| grown(samples.at(counter, moment), told);
            let packets = grown(&seen.sent_packets, &mut told.sent_packets);
            // Bytes on the line between two samples wait for the packet that they are of.
            let bytes = match packets {
                0 => 0,
                _ => grown(&seen.sent_bytes, &mut told.sent_bytes),
            };
            let since_ns = now.since(self.counted).as_ns() as f64;
            let waited_ns = seen.queue_bytes[last] / bytes.max(1) as f64 * since_ns;
            let waited = Span::from_ns(waited_ns as u64);
            for part in shared(bytes, packets) {
                self.recorder.link_sent(now, now, number, part, waited);
            }
            for reason in 0..REASONS {
                for _ in 0..grown(&seen.dropped[reason], &mut told.dropped[reason]) {
                    self.recorder.dropped(now, number, 0, reason as u8);
                }
                for _ in 0..grown(&seen.marked[reason], &mut told.marked[reason]) {
                    self.recorder.marked(now, number, 0, reason as u8);
                }
            }
        }
        self.counted = now;
    }

    /// Tells the states at the end of an interval.
    fn end_interval(&mut self, now: Time, sample: usize) {
        for (number, seen) in (0..).zip(&self.samples.flows) {
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
                    self.recorder.internal(now, number, quantity, value);
                }
            }
        }
        let offered_bytes = self.offered_bytes(now);
        for (number, (seen, offered)) in (0..).zip(self.samples.links.iter().zip(offered_bytes)) {
            self.recorder.link_state(now, number, seen.queue_bytes[sample] as u64, offered);
        }
    }

    fn offered_bytes(&mut self, now: Time) -> Vec<f64> {
        self.capacities.iter_mut().map(|capacity| capacity.offered_bytes(now)).collect()
    }
}

/// How much a counter has grown since it was told.
fn grown(now: u64, told: &mut u64) -> u64 {
    let growth = now.saturating_sub(*told);
    *told += growth;
    growth
}

/// Bytes in parts that events can hold.
fn parts(bytes: u64) -> impl Iterator<Item = u32> {
    let most = u64::from(u32::MAX);
    (0..bytes.div_ceil(most)).map(move |part| (bytes - part * most).min(most) as u32)
}

/// Packets with their bytes in parts of which events can hold the packets; at least one part.
fn packets_in_parts(packets: u64, bytes: u64) -> impl Iterator<Item = (u32, u64)> {
    let most = u64::from(u32::MAX);
    let count = packets.div_ceil(most).max(1);
    // Bytes of the first so many packets; bytes without a packet are in the only part.
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

/// Bytes of packets, as equal as can be.
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
        assert_eq!(parts((1 << 32) + 5).map(u64::from).sum::<u64>(), (1 << 32) + 5);
    }

    #[test]
    fn packets_beyond_what_an_event_holds_keep_their_bytes() {
        let most = u64::from(u32::MAX);
        let told = |packets, bytes| packets_in_parts(packets, bytes).collect::<Vec<_>>();
        assert_eq!(told(3, 10), [(3, 10)]);
        assert_eq!(told(0, 7), [(0, 7)]);
        assert_eq!(told(most + 2, 1500 * (most + 2)), [(u32::MAX, 1500 * most), (2, 3000)]);
    }

    #[test]
    fn a_moment_takes_the_nearest_sample_and_counters_lie_on_lines() {
        let times = [0, 11, 20].map(Time::from_ns).to_vec();
        let samples = Samples { times, ..Samples::default() };
        let nearest = |ns| samples.nearest(Time::from_ns(ns));
        assert_eq!([0, 5, 6, 10, 11, 14, 17, 20, 30].map(nearest), [0, 0, 1, 1, 1, 1, 2, 2, 2]);
        let counter = [0.0, 22.0, 40.0];
        let at = |ns| samples.at(&counter, Time::from_ns(ns));
        assert_eq!([0, 5, 11, 15, 20, 30].map(at), [0, 10, 22, 30, 40, 40]);
    }
}
