//! Counters and distributions of one flow.

use jostle_units::{FlowId, HEADER_BYTES, Rate, SendLimit, Span, Time};

use crate::datagram_meter::{DatagramCounters, DatagramMeter};
use crate::event_sink::{AckEvent, FlowState};
use crate::first_transmission::FirstSent;
use crate::histogram::Histogram;
use crate::interval_stats::{bits_per_s, ratio};
use crate::ping_meter::{PingMeter, Pings};
use crate::tables::{FlowTable, seconds, seconds_or_nan};
use jostle_run_spec::CbrSpec;
use jostle_traffic::PageLoads;
use jostle_traffic::VideoMeter;

/// Counters that never decrease. The value of an interval is the difference of two copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowCounters {
    /// Bytes that the sender put on the wire.
    pub sent_bytes: u64,
    /// Bytes on the wire that reached the receiver.
    pub received_bytes: u64,
    /// Payload delivered in order.
    pub delivered_bytes: u64,
    /// Packets sent, including retransmissions.
    pub sent_packets: u64,
    /// Packets retransmitted.
    pub retransmitted_packets: u64,
    /// ACKs that gave an RTT sample.
    pub rtt_samples: u64,
    /// Sum of the RTT samples. 64 bits hold 584 years.
    pub rtt_sum_ns: u64,
    /// Packets with a known one-way delay.
    pub trips: u64,
    /// Sum of the one-way delays.
    pub delay_sum_ns: u64,
    /// Sum of the queueing delays.
    pub waited_sum_ns: u64,
    /// ACKs of new data.
    pub segment_rtt_samples: u64,
    /// Sum of the times since the first transmission of the acknowledged data.
    pub segment_rtt_sum_ns: u64,
    /// Complete responses.
    pub responses: u64,
    /// Sum of the response times.
    pub response_sum_ns: u64,
}

impl FlowCounters {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            received_bytes: self.received_bytes - earlier.received_bytes,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            sent_packets: self.sent_packets - earlier.sent_packets,
            retransmitted_packets: self.retransmitted_packets - earlier.retransmitted_packets,
            rtt_samples: self.rtt_samples - earlier.rtt_samples,
            rtt_sum_ns: self.rtt_sum_ns - earlier.rtt_sum_ns,
            trips: self.trips - earlier.trips,
            delay_sum_ns: self.delay_sum_ns - earlier.delay_sum_ns,
            waited_sum_ns: self.waited_sum_ns - earlier.waited_sum_ns,
            segment_rtt_samples: self.segment_rtt_samples - earlier.segment_rtt_samples,
            segment_rtt_sum_ns: self.segment_rtt_sum_ns - earlier.segment_rtt_sum_ns,
            responses: self.responses - earlier.responses,
            response_sum_ns: self.response_sum_ns - earlier.response_sum_ns,
        }
    }

    /// Returns the mean of the RTT samples.
    fn rtt_mean_s(&self) -> Option<f64> {
        mean_s(self.rtt_sum_ns, self.rtt_samples)
    }

    /// Returns the mean one-way delay.
    pub(crate) fn delay_mean_s(&self) -> Option<f64> {
        mean_s(self.delay_sum_ns, self.trips)
    }

    /// Returns the mean queueing delay.
    fn waited_mean_s(&self) -> Option<f64> {
        mean_s(self.waited_sum_ns, self.trips)
    }

    /// Returns the mean RTT of ACKs of new data.
    pub(crate) fn segment_rtt_mean_s(&self) -> Option<f64> {
        mean_s(self.segment_rtt_sum_ns, self.segment_rtt_samples)
    }

    /// Returns the mean response time.
    pub(crate) fn response_time_mean_s(&self) -> Option<f64> {
        mean_s(self.response_sum_ns, self.responses)
    }

    fn add(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.delivered_bytes += other.delivered_bytes;
        self.sent_packets += other.sent_packets;
        self.retransmitted_packets += other.retransmitted_packets;
        self.rtt_samples += other.rtt_samples;
        self.rtt_sum_ns += other.rtt_sum_ns;
        self.trips += other.trips;
        self.delay_sum_ns += other.delay_sum_ns;
        self.waited_sum_ns += other.waited_sum_ns;
        self.segment_rtt_samples += other.segment_rtt_samples;
        self.segment_rtt_sum_ns += other.segment_rtt_sum_ns;
        self.responses += other.responses;
        self.response_sum_ns += other.response_sum_ns;
    }
}

/// Measurements of a flow in an interval. All values are integers, so that merging does not depend
/// on the order.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowTotals {
    pub counters: FlowCounters,
    pub rtt_squares_ns2: u128,
    pub rtt_ns: Histogram,
    pub segment_rtt_ns: Histogram,
    /// Smallest RTT that was reported without a sample.
    pub rtt_least: Option<Span>,
    /// One-way delays without the propagation delay of the path.
    pub excess_ns: Histogram,
    /// Response times, if the flow has responses.
    pub response_ns: Option<Box<Histogram>>,
    /// Responses that missed their deadline.
    pub late: u64,
    /// Counters of one-way datagrams, if the flow sends them.
    pub datagrams: Option<DatagramCounters>,
    /// Time during which each [`SendLimit`] held.
    pub limited_ns: [u64; SendLimit::COUNT],
    /// ∫ cwnd dt over the flow's lifetime.
    pub cwnd_bytes_ns: u128,
    /// Length of the flow's lifetime.
    pub life_ns: u64,
}

impl FlowTotals {
    /// Merges the measurements of a disjoint interval.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.rtt_squares_ns2 += other.rtt_squares_ns2;
        self.rtt_ns.merge(&other.rtt_ns);
        self.segment_rtt_ns.merge(&other.segment_rtt_ns);
        self.rtt_least = self.rtt_least.into_iter().chain(other.rtt_least).min();
        self.excess_ns.merge(&other.excess_ns);
        if let Some(response_ns) = &other.response_ns {
            self.response_ns.get_or_insert_default().merge(response_ns);
        }
        self.late += other.late;
        if let Some(datagrams) = &other.datagrams {
            self.datagrams.get_or_insert_default().add(datagrams);
        }
        for (sum, ns) in self.limited_ns.iter_mut().zip(other.limited_ns) {
            *sum += ns;
        }
        self.cwnd_bytes_ns += other.cwnd_bytes_ns;
        self.life_ns += other.life_ns;
    }

    /// Returns the smallest RTT.
    pub(crate) fn rtt_min_s(&self) -> Option<f64> {
        let least_ns = self.rtt_least.map(Span::as_ns);
        self.rtt_ns.min().into_iter().chain(least_ns).min().map(seconds)
    }

    /// Returns the mean of the RTT samples.
    pub(crate) fn rtt_mean_s(&self) -> Option<f64> {
        self.counters.rtt_mean_s()
    }

    /// Returns the quantile `p` of the response times.
    pub(crate) fn response_s(&self, p: f64) -> Option<f64> {
        self.response_ns.as_ref()?.quantile(p).map(|ns| ns / 1e9)
    }

    /// Returns the standard deviation of the RTT samples (n − 1), or `None` for fewer than two.
    pub(crate) fn rtt_sd_s(&self) -> Option<f64> {
        let n = u128::from(self.counters.rtt_samples);
        if n < 2 {
            return None;
        }
        let sum = u128::from(self.counters.rtt_sum_ns);
        // Computes n·Σx² − (Σx)² in integers, because floating point would lose the digits of the
        // difference. The product exceeds 128 bits only if n·x_rms exceeds 2⁶⁴ ns.
        let spread = match n.checked_mul(self.rtt_squares_ns2) {
            Some(product) => product.saturating_sub(sum * sum) as f64,
            None => (n as f64 * self.rtt_squares_ns2 as f64 - sum as f64 * sum as f64).max(0.0),
        };
        Some((spread / (n as f64 * (n - 1) as f64)).sqrt() / 1e9)
    }

    /// Returns the time-weighted mean of cwnd during the flow's lifetime.
    pub(crate) fn cwnd_mean_bytes(&self) -> Option<f64> {
        (self.life_ns > 0).then(|| self.cwnd_bytes_ns as f64 / self.life_ns as f64)
    }
}

/// Returns the mean of `samples` values with the sum `sum_ns`.
fn mean_s(sum_ns: u64, samples: u64) -> Option<f64> {
    (samples > 0).then(|| sum_ns as f64 / samples as f64 / 1e9)
}

/// Time integral of cwnd and length of the lifetime.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    cwnd_bytes_ns: u128,
    lived_ns: u64,
}

/// Meter of one flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowMeter {
    total: FlowCounters,
    rtt_last: Option<Span>,
    /// `None` for pings, and if only samples of a connection are known: ACKs then have no RTT.
    first_sent: Option<FirstSent>,
    cwnd_bytes: u64,
    /// Time until which `cwnd_bytes` is integrated; [`Time::NEVER`] before the first ACK.
    cwnd_until: Time,
    /// Limit of the sender. `None` before the handshake is complete, or if unknown.
    limit: Option<SendLimit>,
    limit_since: Time,
    /// Current segment. Its counters are filled in at its end.
    segment: FlowTotals,
    segment_start: FlowCounters,
    bin_start: FlowCounters,
    bin_from: Time,
    /// Lifetime in completed segments, and lifetime at the start of the current bin.
    earlier: Life,
    bin_life: Life,
    /// Time at which the application stops. After it only ACKs extend the flow's lifetime.
    ends: Time,
    completion: Option<Span>,
    segments: Vec<FlowTotals>,
    /// Minimum one-way propagation delay of the path.
    propagation_ns: u64,
    /// Ping statistics, if the flow sends pings.
    pings: Option<Box<PingMeter>>,
    /// Video statistics, if the flow is a video.
    pub viewing: Option<Box<VideoMeter>>,
    /// Page statistics, if the flow is a browser.
    pub pages: Option<Box<PageLoads>>,
    /// Datagram statistics, if the flow sends one-way datagrams.
    pub datagrams: Option<Box<DatagramMeter>>,
    /// Deadline of a response.
    deadline: Span,
    /// The flow has no controller, or each of its connections has its own.
    ungoverned: bool,
    /// Queueing delays of packets are known.
    knows_waits: bool,
}

impl FlowMeter {
    /// Creates a meter. `ends` is the time at which the application stops, or [`Time::NEVER`].
    pub(crate) fn new(ends: Time, segments: usize) -> Self {
        Self {
            total: FlowCounters::default(),
            rtt_last: None,
            first_sent: Some(FirstSent::default()),
            cwnd_bytes: 0,
            cwnd_until: Time::NEVER,
            limit: None,
            limit_since: Time::ZERO,
            segment: FlowTotals::default(),
            segment_start: FlowCounters::default(),
            bin_start: FlowCounters::default(),
            bin_from: Time::ZERO,
            earlier: Life::default(),
            bin_life: Life::default(),
            ends,
            completion: None,
            segments: Vec::with_capacity(segments),
            propagation_ns: 0,
            pings: None,
            viewing: None,
            pages: None,
            datagrams: None,
            deadline: Span::MAX,
            ungoverned: false,
            knows_waits: true,
        }
    }

    /// Sets the minimum one-way propagation delay of the path.
    pub(crate) fn with_propagation(self, propagation: Span) -> Self {
        Self { propagation_ns: propagation.as_ns(), ..self }
    }

    /// Sets the flow to send pings.
    pub(crate) fn with_pings(self) -> Self {
        Self { pings: Some(Box::default()), ungoverned: true, ..self }
    }

    /// Sets the flow to send one-way datagrams of `source`.
    pub(crate) fn with_datagrams(self, source: CbrSpec, start: Time) -> Self {
        let propagation = Span::from_ns(self.propagation_ns);
        let mut datagrams = DatagramMeter::new(source, self.ends, propagation);
        datagrams.start(start);
        Self { datagrams: Some(Box::new(datagrams)), ungoverned: true, ..self }
    }

    /// Sets the flow to have many connections.
    pub(crate) fn of_many(self) -> Self {
        Self { ungoverned: true, ..self }.without_transmissions()
    }

    /// Sets the deadline of responses.
    pub(crate) fn with_deadline(self, deadline: Span) -> Self {
        Self { deadline, ..self }
    }

    /// Disables the RTT of ACKs.
    pub(crate) fn without_transmissions(self) -> Self {
        Self { first_sent: None, ..self }
    }

    /// Disables the RTT of ACKs and the queueing delays from now on.
    pub(crate) fn forget_details(&mut self) {
        self.first_sent = None;
        self.knows_waits = false;
    }

    /// Disables the queueing delays.
    pub(crate) fn forget_waits(&mut self) {
        self.knows_waits = false;
    }

    /// Returns the mean queueing delay, if it is known.
    pub(crate) fn waited_mean_s(&self, counters: &FlowCounters) -> Option<f64> {
        counters.waited_mean_s().filter(|_| self.knows_waits)
    }

    #[inline]
    pub(crate) fn sent(&mut self, now: Time, packets: u32, wire_bytes: u64, again: bool) {
        let headers_bytes = u64::from(packets) * u64::from(HEADER_BYTES);
        self.sent_payload(
            now,
            (packets, wire_bytes, wire_bytes.saturating_sub(headers_bytes)),
            again,
        );
    }

    /// Like `sent`, but for packets with headers of another size. The tuple holds the number of
    /// packets, their bytes on the wire, and the payload that was not sent before. Payload without
    /// packets is missing in a capture.
    #[inline]
    pub(crate) fn sent_payload(
        &mut self,
        now: Time,
        (packets, wire_bytes, payload_bytes): (u32, u64, u64),
        again: bool,
    ) {
        if let Some(first) = self.first_sent.as_mut().filter(|_| !again) {
            if packets == 0 {
                first.missed(payload_bytes);
            } else {
                first.sent(now, payload_bytes);
            }
        }
        self.total.sent_bytes += wire_bytes;
        self.total.sent_packets += u64::from(packets);
        self.total.retransmitted_packets += u64::from(packets) * u64::from(again);
    }

    /// Counts TCP options of a packet that was sent.
    pub(crate) fn options_sent(&mut self, bytes: u32) {
        self.total.sent_bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn received(&mut self, wire_bytes: u32) {
        self.total.received_bytes += u64::from(wire_bytes);
    }

    /// Returns the bytes on the wire that reached the receiver so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.total.received_bytes
    }

    #[inline]
    pub(crate) fn delivered(&mut self, payload_bytes: u64) {
        self.total.delivered_bytes += payload_bytes;
    }

    /// Processes an ACK. Returns the time since the first transmission of the acknowledged data, if
    /// the ACK acknowledges new data.
    #[inline]
    pub(crate) fn acked(&mut self, now: Time, row: &AckEvent) -> Option<Span> {
        let segment_rtt = self.first_sent.as_mut().and_then(|it| it.acked(now, row.acked_bytes));
        if let Some(rtt) = segment_rtt {
            self.total.segment_rtt_samples += 1;
            self.total.segment_rtt_sum_ns += rtt.as_ns();
            self.segment.segment_rtt_ns.record(rtt.as_ns(), 1);
        }
        if let Some(rtt) = row.rtt {
            self.sample(rtt);
        }
        self.hold_cwnd(now);
        self.cwnd_bytes = row.cwnd_bytes;
        self.cwnd_until = if self.ungoverned { Time::NEVER } else { now };
        segment_rtt
    }

    #[inline]
    fn sample(&mut self, rtt: Span) {
        let ns = rtt.as_ns();
        self.total.rtt_samples += 1;
        self.total.rtt_sum_ns += ns;
        self.segment.rtt_squares_ns2 += u128::from(ns) * u128::from(ns);
        self.segment.rtt_ns.record(ns, 1);
        self.rtt_last = Some(rtt);
    }

    /// Changes what limits the sender.
    #[inline]
    pub(crate) fn limited(&mut self, now: Time, limit: SendLimit) {
        self.hold_limit(now);
        self.limit = Some(limit);
    }

    /// Adds a time during which a limit held, for a flow whose changes are not reported.
    pub(crate) fn limited_for(&mut self, limit: SendLimit, length: Span) {
        self.segment.limited_ns[limit as usize] += length.as_ns();
    }

    /// Counts the time until `now`, or until the end of the flow.
    #[inline]
    fn hold_limit(&mut self, now: Time) {
        if let Some(limit) = self.limit {
            let held = now.min(self.ends).since(self.limit_since);
            self.segment.limited_ns[limit as usize] += held.as_ns();
        }
        self.limit_since = now;
    }

    pub(crate) fn echoed(&mut self, rtt: Span) {
        self.sample(rtt);
        if let Some(pings) = &mut self.pings {
            pings.echoed(rtt);
        }
    }

    pub(crate) fn least_rtt(&mut self, rtt: Span) {
        self.segment.rtt_least = self.segment.rtt_least.into_iter().chain([rtt]).min();
    }

    pub(crate) fn unanswered(&mut self, number: u32) {
        if let Some(pings) = &mut self.pings {
            pings.unanswered(number);
        }
    }

    /// Returns the ping statistics, if the flow sends pings.
    pub(crate) fn pings(&self) -> Option<Pings> {
        self.pings.as_ref().map(|pings| pings.finish(self.total.sent_packets))
    }

    /// Integrates cwnd until `now`. Before the first ACK the interval is empty, because no time is
    /// later than [`Time::NEVER`].
    #[inline]
    fn hold_cwnd(&mut self, now: Time) {
        let held_ns = now.since(self.cwnd_until).as_ns();
        self.segment.cwnd_bytes_ns += u128::from(self.cwnd_bytes) * u128::from(held_ns);
        self.segment.life_ns += held_ns;
    }

    #[inline]
    pub(crate) fn travelled(&mut self, delay: Span, waited: Span) {
        let ns = delay.as_ns();
        self.total.trips += 1;
        self.total.delay_sum_ns += ns;
        self.total.waited_sum_ns += waited.as_ns();
        self.segment.excess_ns.record(ns.saturating_sub(self.propagation_ns), 1);
    }

    pub(crate) fn responded(&mut self, after: Span) {
        let ns = after.as_ns();
        self.total.responses += 1;
        self.total.response_sum_ns += ns;
        self.segment.late += u64::from(after > self.deadline);
        self.segment.response_ns.get_or_insert_default().record(ns, 1);
    }

    pub(crate) fn completed(&mut self, now: Time, after: Span) {
        self.hold_limit(now);
        self.completion = Some(after);
        self.ends = self.ends.min(now);
    }

    /// Returns the number of complete responses so far.
    pub(crate) fn responses(&self) -> u64 {
        self.total.responses
    }

    /// Returns the flow completion time.
    pub(crate) fn completion(&self) -> Option<Span> {
        self.completion
    }

    /// Integrates cwnd until `now` or until the end of the flow's lifetime.
    fn live_until(&mut self, now: Time) {
        if self.cwnd_until != Time::NEVER {
            let until = now.min(self.ends.max(self.cwnd_until));
            self.hold_cwnd(until);
            self.cwnd_until = until;
        }
    }

    /// Returns cwnd integral and lifetime so far.
    fn life(&self) -> Life {
        Life {
            cwnd_bytes_ns: self.earlier.cwnd_bytes_ns + self.segment.cwnd_bytes_ns,
            lived_ns: self.earlier.lived_ns + self.segment.life_ns,
        }
    }

    /// Ends the current segment at `now`.
    pub(crate) fn close_segment(&mut self, now: Time) {
        self.live_until(now);
        self.hold_limit(now);
        self.earlier = self.life();
        let mut totals = std::mem::take(&mut self.segment);
        totals.counters = self.total.since(&self.segment_start);
        self.segment_start = self.total;
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.close_segment(now);
        }
        self.segments.push(totals);
    }

    /// Ends the run, after the last segment.
    pub(crate) fn finish(&mut self, end: Time) {
        let counted = self.datagrams.take().map(|datagrams| datagrams.finish(end));
        for (segment, counters) in self.segments.iter_mut().zip(counted.into_iter().flatten()) {
            segment.datagrams = Some(counters);
        }
    }

    /// Returns all completed segments.
    pub(crate) fn segments(&self) -> &[FlowTotals] {
        &self.segments
    }

    /// Ends a bin of the series at `now`. `is_open` is true if the connection was opened before.
    pub(crate) fn close_bin(
        &mut self,
        now: Time,
        flow: FlowId,
        is_open: bool,
        state: &FlowState,
        table: &mut FlowTable,
    ) {
        let bin = self.total.since(&self.bin_start);
        let length_ns = now.since(self.bin_from).as_ns() as f64;
        self.live_until(now);
        let life = self.life();
        let lived_ns = life.lived_ns - self.bin_life.lived_ns;
        let cwnd_bytes_ns = (life.cwnd_bytes_ns - self.bin_life.cwnd_bytes_ns) as f64;
        self.bin_life = life;
        table.time_s.push(seconds(now.as_ns()));
        table.flow.push(flow.0);
        table.sending_rate_bps.push(bits_per_s(bin.sent_bytes as f64, length_ns));
        table.throughput_bps.push(bits_per_s(bin.received_bytes as f64, length_ns));
        table.goodput_bps.push(bits_per_s(bin.delivered_bytes as f64, length_ns));
        table.rtt_mean_s.push(bin.rtt_mean_s().unwrap_or(f64::NAN));
        table.rtt_samples.push(bin.rtt_samples as u32);
        table.segment_rtt_mean_s.push(bin.segment_rtt_mean_s().unwrap_or(f64::NAN));
        table.segment_rtt_samples.push(bin.segment_rtt_samples as u32);
        table.rtt_last_s.push(seconds_or_nan(self.rtt_last.take()));
        table.srtt_s.push(seconds_or_nan(Some(state.srtt).filter(|srtt| !srtt.is_zero())));
        // A flow that is not open yet or has ended has no cwnd.
        let has_window = is_open && !self.ungoverned && (now <= self.ends || lived_ns > 0);
        let there = |bytes: Option<u64>| {
            bytes.filter(|_| has_window).map_or(f64::NAN, |bytes| bytes as f64)
        };
        table.cwnd_bytes.push(there(Some(state.cwnd_bytes)));
        let mean_bytes = ratio(cwnd_bytes_ns, lived_ns as f64);
        table.cwnd_mean_bytes.push(mean_bytes.unwrap_or(f64::NAN));
        table.lived_s.push(seconds(lived_ns));
        table.ssthresh_bytes.push(there(state.ssthresh_bytes));
        table.in_flight_bytes.push(state.in_flight_bytes as f64);
        table.sent_packets.push(bin.sent_packets as u32);
        table.retransmitted_packets.push(bin.retransmitted_packets as u32);
        let again = ratio(bin.retransmitted_packets as f64, bin.sent_packets as f64);
        table.received_packets.push(bin.trips as u32);
        table.one_way_delay_mean_s.push(bin.delay_mean_s().unwrap_or(f64::NAN));
        table.queueing_delay_mean_s.push(self.waited_mean_s(&bin).unwrap_or(f64::NAN));
        table.responses.push(bin.responses as u32);
        table.response_time_mean_s.push(bin.response_time_mean_s().unwrap_or(f64::NAN));
        table.retransmission_ratio.push(again.unwrap_or(f64::NAN));
        table.pacing_rate_bps.push(there(state.pacing_rate.map(Rate::as_bps)));
        table.mode.push(table.modes.code(state.mode));
        self.bin_start = self.total;
        self.bin_from = now;
    }
}

#[cfg(test)]
mod tests;
