//! Analysis of a flow captured near its sender: sent data packets and received ACKs.

use std::collections::VecDeque;

use jostle_metrics::{AckEvent, CaptureCounters, EventSink, FlowState, Recorder};
use jostle_units::{FlowId, SendLimit, Span, Time};

use crate::byte_ranges::{Range, Ranges};
use crate::handshake_times::HandshakeTimes;
use crate::packet::{Packet, Segment};
use crate::scoreboard::{CapturedScoreboard, NewlyAcked, OutstandingPacket};
use crate::sequence_number::{Block, WINDOW_MAX, blocks, first, is_after, near};
use crate::time_sequence::{AckPacket, DataPacket, Kind};
use crate::transit::{CaptureWindow, Transmissions};

/// Number of retransmitted ranges that are kept to match them with D-SACKs.
const RETRANSMISSIONS_MAX: usize = 1 << 10;
/// Duplicate ACKs that trigger a fast retransmission (RFC 5681 §3.2).
const DUPLICATE_ACKS: u32 = 3;

/// Converts nanoseconds to seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Counts the options of a segment after the handshake.
pub(crate) fn count_options(seen: &mut CaptureCounters, segment: &Segment) {
    seen.segments += 1;
    seen.cut_segments += u64::from(segment.is_cut);
    seen.stamped_segments += u64::from(segment.stamps.is_some());
}

/// Facts about a flow from the first pass over the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownFlowFacts {
    pub flow: FlowId,
    pub mss_bytes: u32,
    /// Window scale of the receiver. `None` if the capture does not include the handshake.
    pub scale: Option<u8>,
    /// When another capture, taken near the receiver, records the arrivals of this flow.
    pub other_end: Option<CaptureWindow>,
}

/// State of a flow's sender, reconstructed from a capture near it.
#[derive(Clone, Debug)]
pub(crate) struct CapturedSender {
    given: KnownFlowFacts,
    /// First byte of data. `None` until a segment of the flow was seen.
    start: Option<u64>,
    /// End of the highest byte sent.
    high: u64,
    acknowledged: u64,
    /// Whether a FIN was sent. The ACK of the FIN is one above `high`.
    finished: bool,
    outstanding: CapturedScoreboard,
    /// Ranges of data that the capture did not record.
    unseen: Ranges,
    repeated: VecDeque<(u64, u64)>,
    duplicate_acks: u32,
    srtt_ns: u64,
    /// Header bytes of a data packet.
    header_bytes: u32,
    window: InFlightMaximum,
    right_edge: Option<u64>,
    last_is_short: bool,
    least: MinFullPacketRtt,
    limits: LimitedTimes,
    closed_window: bool,
    seen: CaptureCounters,
    /// End of the last retransmitted packet.
    burst_end: u64,
    repeated_packets: u64,
    spurious_packets: u64,
    sent_packets: u64,
    /// Transmissions that the capture at the other end can record.
    pub transmissions: Transmissions,
    opening: HandshakeTimes,
    sent_data: bool,
}

/// Minimum RTT of full-sized packets. Smaller packets are excluded, because their serialisation
/// delay is shorter. Captures often begin with small packets, for example the banner of a protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MinFullPacketRtt {
    pub full_ns: Option<u64>,
}

impl MinFullPacketRtt {
    /// Updates the minimum with the RTT of a packet with `payload_bytes` of payload.
    pub fn see(&mut self, rtt_ns: u64, payload_bytes: u32, mss_bytes: u32) {
        if payload_bytes >= mss_bytes {
            self.full_ns = Some(self.full_ns.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
    }
}

/// Maximum of bytes in flight over the last round trip, a lower bound of cwnd.
#[derive(Clone, Copy, Debug, Default)]
struct InFlightMaximum {
    since_ns: u64,
    now_bytes: u64,
    before_bytes: u64,
}

impl InFlightMaximum {
    fn see(&mut self, now_ns: u64, in_flight_bytes: u64, srtt_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > srtt_ns {
            (self.before_bytes, self.now_bytes, self.since_ns) = (self.now_bytes, 0, now_ns);
        }
        self.now_bytes = self.now_bytes.max(in_flight_bytes);
    }

    fn bytes(&self) -> u64 {
        self.now_bytes.max(self.before_bytes)
    }
}

/// Durations since the last data packet during which each limit held.
#[derive(Clone, Copy, Debug, Default)]
struct LimitedTimes {
    since_ns: u64,
    /// Limit of the sender. `None` before the first data packet.
    state: Option<SendLimit>,
    pending_ns: [u64; SendLimit::COUNT],
}

impl LimitedTimes {
    fn until(&mut self, now_ns: u64) {
        if let Some(limit) = self.state {
            self.pending_ns[limit as usize] += now_ns.saturating_sub(self.since_ns);
        }
        self.since_ns = now_ns;
    }

    /// Reports the durations when a data packet follows. The wait after the last packet is never
    /// reported: the capture does not show what ends it.
    fn report(&mut self, flow: FlowId, to: &mut Recorder) {
        let limits = [SendLimit::Application, SendLimit::ReceiveWindow, SendLimit::Other];
        for limit in limits {
            let pending_ns = std::mem::take(&mut self.pending_ns[limit as usize]);
            to.limited_for(flow.into(), limit, Span::from_ns(pending_ns));
        }
    }
}

impl CapturedSender {
    pub fn new(given: KnownFlowFacts) -> Self {
        Self {
            given,
            start: None,
            high: 0,
            acknowledged: 0,
            finished: false,
            outstanding: CapturedScoreboard::default(),
            unseen: Ranges::default(),
            repeated: VecDeque::new(),
            duplicate_acks: 0,
            srtt_ns: 0,
            header_bytes: jostle_units::HEADER_BYTES,
            window: InFlightMaximum::default(),
            right_edge: None,
            last_is_short: false,
            least: MinFullPacketRtt::default(),
            limits: LimitedTimes::default(),
            closed_window: false,
            seen: CaptureCounters::default(),
            burst_end: 0,
            repeated_packets: 0,
            spurious_packets: 0,
            sent_packets: 0,
            transmissions: Transmissions::default(),
            opening: HandshakeTimes::default(),
            sent_data: false,
        }
    }

    /// Processes a segment that leaves the sender. Returns the data packet, if it carries data.
    pub fn sent(
        &mut self,
        now_ns: u64,
        packet: &Packet,
        segment: &Segment,
        to: &mut Recorder,
    ) -> Option<DataPacket> {
        self.opening.see(segment, now_ns, true);
        if segment.syn {
            self.begin(first(segment.sequence.wrapping_add(1)));
            return None;
        }
        count_options(&mut self.seen, segment);
        self.finished |= segment.fin;
        if segment.payload_bytes == 0 {
            return None;
        }
        let (start, end) = match self.start {
            None => {
                let start = first(segment.sequence);
                self.begin(start);
                (start, start + u64::from(segment.payload_bytes))
            }
            Some(_) => {
                let start = near(self.high, segment.sequence);
                (start, start + u64::from(segment.payload_bytes))
            }
        };
        // Sequence numbers outside any possible window are invalid or belong to another connection.
        if start > self.high + WINDOW_MAX || end + WINDOW_MAX < self.high {
            return None;
        }
        // Keep-alives (RFC 9293 §3.8.4) and zero-window probes carry one byte that was already
        // acknowledged.
        if segment.payload_bytes == 1 && end <= self.acknowledged {
            return None;
        }
        self.limits.until(now_ns);
        self.limits.report(self.given.flow, to);
        self.sent_data = true;
        let packets = segment.payload_bytes.div_ceil(self.given.mss_bytes);
        self.header_bytes = packet.wire_bytes.saturating_sub(segment.payload_bytes).min(256);
        self.seen.capable += u64::from(packet.understands_marks) * u64::from(packets);
        self.seen.marked += u64::from(packet.is_marked) * u64::from(packets);
        self.sent_packets += u64::from(packets);
        if let Some(window) = self.given.other_end {
            for key in segment.packet_keys(start, self.given.mss_bytes) {
                self.transmissions.sent(now_ns, key, window);
            }
        }
        let mut kind = Kind::New;
        if start < self.high {
            kind = self.sent_again(now_ns, start, end.min(self.high), segment, to);
        }
        if end > self.high {
            self.sent_new(now_ns, start, end, segment, to);
        }
        let in_flight_bytes = self.outstanding.in_flight_bytes();
        self.window.see(now_ns, in_flight_bytes, self.srtt_ns);
        self.judge_limits();
        Some(DataPacket { start, end, kind })
    }

    fn begin(&mut self, start: u64) {
        if self.start.is_none() {
            self.start = Some(start);
            (self.high, self.acknowledged) = (start, start);
        }
    }

    fn sent_new(
        &mut self,
        now_ns: u64,
        start: u64,
        end: u64,
        segment: &Segment,
        to: &mut Recorder,
    ) {
        let stamp = segment.stamps.map_or(0, |(value, _)| value);
        let now = Time::from_ns(now_ns);
        if start > self.high {
            // The capture missed the packets between, or they follow out of order.
            let (end, since_ns) = (start, now_ns);
            let range = Range { start: self.high, end, stamp, is_acked: false, since_ns };
            self.unseen.add(range, |_, _| {});
            to.sent_payload(now, self.given.flow.into(), (0, 0, start - self.high), false);
            self.high = start;
        }
        let packets = self.add_outstanding(self.high, end, now_ns, stamp);
        let payload_bytes = end - self.high;
        self.last_is_short = !payload_bytes.is_multiple_of(u64::from(self.given.mss_bytes));
        self.high = end;
        let wire_bytes = payload_bytes + u64::from(packets) * u64::from(self.header_bytes);
        to.sent_payload(now, self.given.flow.into(), (packets, wire_bytes, payload_bytes), false);
    }

    /// Adds the packets of data that was not yet captured. Returns their number.
    fn add_outstanding(&mut self, start: u64, end: u64, now_ns: u64, stamp: u32) -> u32 {
        let (mut at, mut packets) = (start, 0);
        while at < end {
            let length = (end - at).min(u64::from(self.given.mss_bytes)) as u32;
            self.outstanding.insert(at, length, now_ns, stamp);
            at += u64::from(length);
            packets += 1;
        }
        packets
    }

    fn sent_again(
        &mut self,
        now_ns: u64,
        start: u64,
        end: u64,
        segment: &Segment,
        to: &mut Recorder,
    ) -> Kind {
        let stamp = segment.stamps.map_or(0, |(value, _)| value);
        let payload_bytes = end - start;
        let packets = payload_bytes.div_ceil(u64::from(self.given.mss_bytes)) as u32;
        let wire_bytes = payload_bytes + u64::from(packets) * u64::from(self.header_bytes);
        let now = Time::from_ns(now_ns);
        // The packet was captured late (multiple NIC queues or cores, or merged with later packets):
        // it was sent before the packet above the gap, or before its ACK, and is not a retransmission.
        let hole = self.unseen.after(start).filter(|hole| hole.start <= start && end <= hole.end);
        if hole.is_some_and(|hole| match segment.stamps {
            Some(_) => !is_after(stamp, hole.stamp),
            None => hole.is_acked,
        }) {
            self.unseen.remove(start, end);
            // Data acknowledged before already count as received.
            self.add_outstanding(start.max(self.acknowledged), end, now_ns, stamp);
            to.sent_payload(now, self.given.flow.into(), (packets, wire_bytes, 0), false);
            *self.seen.out_of_order.get_or_insert(0) += u64::from(packets);
            return Kind::OutOfOrder;
        }
        let cause = self.cause(start, end);
        let first_time = self.outstanding.repeat(start, end, now_ns, stamp);
        let cause = if cause == Kind::Probe && !first_time { Kind::Timeout } else { cause };
        let count = match cause {
            Kind::Fast => &mut self.seen.fast,
            Kind::Probe => &mut self.seen.probe,
            _ => &mut self.seen.timeout,
        };
        *count.get_or_insert(0) += u64::from(packets);
        self.repeated_packets += u64::from(packets);
        self.seen.lost_packets += u64::from(packets);
        if start != self.burst_end {
            *self.seen.loss_bursts.get_or_insert(0) += 1;
        }
        self.burst_end = end;
        if self.repeated.len() == RETRANSMISSIONS_MAX {
            self.repeated.pop_front();
        }
        self.repeated.push_back((start, end));
        to.sent_payload(now, self.given.flow.into(), (packets, wire_bytes, 0), true);
        cause
    }

    /// Classifies a retransmission.
    fn cause(&self, start: u64, end: u64) -> Kind {
        let told = self.outstanding.highest_sacked().is_some_and(|highest| highest > start);
        if told || self.duplicate_acks >= DUPLICATE_ACKS {
            Kind::Fast
        } else if end == self.high {
            Kind::Probe
        } else {
            Kind::Timeout
        }
    }

    /// Processes a segment that arrives from the receiver. Returns the ACK, if the segment is a
    /// valid ACK.
    pub fn came(&mut self, now_ns: u64, segment: &Segment, to: &mut Recorder) -> Option<AckPacket> {
        self.opening.see(segment, now_ns, false);
        if !segment.ack || segment.rst {
            return None;
        }
        if self.start.is_none() {
            self.begin(first(segment.acknowledgment));
        }
        if segment.syn {
            return None;
        }
        count_options(&mut self.seen, segment);
        self.seen.sack_acks += u64::from(!segment.blocks().is_empty());
        let number = near(self.acknowledged, segment.acknowledgment);
        // RFC 9293 §3.10.7.4 drops an ACK of data not yet sent. Here such an ACK is accepted within
        // the maximum window, because the capture may have missed the data.
        if number > self.high + WINDOW_MAX || number + WINDOW_MAX < self.acknowledged {
            return None;
        }
        self.limits.until(now_ns);
        self.seen.echoes += u64::from(segment.ece);
        let number = self.known(now_ns, number, segment, to);
        let arrived = self.on_ack(number, segment);
        let lost_packets = self.outstanding.judge(self.given.mss_bytes);
        self.see_window(number, segment);
        if number > self.acknowledged
            && self.seen.initial_window_packets.is_none()
            && self.opening.has_handshake()
        {
            self.seen.initial_window_packets = Some(self.sent_packets);
        }
        let advanced = number.saturating_sub(self.acknowledged);
        let unseen_bytes = self.unseen.overlap_bytes(self.acknowledged, number);
        self.count_duplicates(advanced, segment);
        self.acknowledged = self.acknowledged.max(number);
        let timed = arrived.timed();
        let rtt = timed.map(|packet| now_ns.saturating_sub(packet.sent_ns));
        if let (Some(packet), Some(rtt_ns)) = (timed, rtt) {
            self.least.see(rtt_ns, packet.length, self.given.mss_bytes);
            // RFC 6298 §2 (2.3).
            self.srtt_ns = if self.srtt_ns == 0 {
                rtt_ns
            } else {
                self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8
            };
        }
        self.record_ack(now_ns, &arrived, (advanced, unseen_bytes), (rtt, lost_packets), to);
        self.judge_limits();
        Some(AckPacket { number, origin: self.origin(), scale: self.given.scale })
    }

    /// Returns the first byte of data.
    pub fn origin(&self) -> u64 {
        self.start.unwrap_or(0)
    }

    /// Returns the acknowledged number without the FIN. Data that is acknowledged, but missing in
    /// the capture, is counted as sent.
    fn known(&mut self, now_ns: u64, number: u64, segment: &Segment, to: &mut Recorder) -> u64 {
        if self.finished && number == self.high + 1 {
            return self.high;
        }
        if number > self.high {
            let stamp = segment.stamps.map_or(0, |(_, echo)| echo);
            let (end, since_ns) = (number, now_ns);
            let range = Range { start: self.high, end, stamp, is_acked: true, since_ns };
            self.unseen.add(range, |_, _| {});
            let missed = (0, 0, number - self.high);
            to.sent_payload(Time::from_ns(now_ns), self.given.flow.into(), missed, false);
            self.high = number;
        }
        number
    }

    /// Updates the scoreboard with an ACK. Returns the newly acknowledged data.
    fn on_ack(&mut self, number: u64, segment: &Segment) -> NewlyAcked {
        let mut arrived = NewlyAcked::default();
        for Block { start, end, is_duplicate } in blocks(number, segment) {
            if is_duplicate {
                self.note_duplicate(start, end);
            } else if start < end && end <= self.high && start >= number {
                self.outstanding.sack(start, end, &mut arrived);
            }
        }
        let echo = segment.stamps.map(|(_, echo)| echo);
        self.outstanding.acknowledge(number, echo, &mut arrived);
        self.unseen.forget_before(number.saturating_sub(WINDOW_MAX));
        arrived
    }

    /// Counts a D-SACK as spurious retransmission if the range was retransmitted; otherwise the
    /// network duplicated the packet.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        let about = |&(from, to): &(u64, u64)| from < end && start < to;
        let length = end.saturating_sub(start);
        if length > WINDOW_MAX || !self.repeated.iter().any(about) {
            return;
        }
        let packets = length.div_ceil(u64::from(self.given.mss_bytes)).max(1);
        self.spurious_packets = (self.spurious_packets + packets).min(self.repeated_packets);
    }

    fn see_window(&mut self, number: u64, segment: &Segment) {
        let is_closed = segment.window == 0;
        self.seen.zero_windows += u64::from(is_closed && !self.closed_window);
        self.closed_window = is_closed;
        self.right_edge = self.given.scale.map(|scale| {
            let edge = number + (u64::from(segment.window) << scale.min(14));
            edge.max(self.right_edge.unwrap_or(0))
        });
    }

    fn count_duplicates(&mut self, advanced: u64, segment: &Segment) {
        if advanced > 0 || self.outstanding.is_empty() {
            self.duplicate_acks = 0;
        } else if segment.payload_bytes == 0 {
            self.duplicate_acks += 1;
        }
    }

    fn record_ack(
        &mut self,
        now_ns: u64,
        arrived: &NewlyAcked,
        (advanced, unseen_bytes): (u64, u64),
        (rtt_ns, lost_packets): (Option<u64>, u32),
        to: &mut Recorder,
    ) {
        let (now, connection) = (Time::from_ns(now_ns), self.given.flow.into());
        if self.given.other_end.is_none() {
            // Data that the capture did not record was received, too.
            let unseen_packets = unseen_bytes.div_ceil(u64::from(self.given.mss_bytes));
            let packets = u64::from(arrived.packets) + unseen_packets;
            let headers = packets * u64::from(self.header_bytes);
            let bytes = u32::try_from(arrived.bytes + unseen_bytes + headers).unwrap_or(u32::MAX);
            to.received(now, connection, bytes);
            to.delivered(now, connection, advanced);
        }
        let in_flight_bytes = self.outstanding.in_flight_bytes();
        self.window.see(now_ns, in_flight_bytes, self.srtt_ns);
        let row = AckEvent {
            rtt: rtt_ns.map(Span::from_ns),
            cwnd_bytes: self.window.bytes(),
            in_flight_bytes,
            acked_bytes: self.acknowledged - self.start.unwrap_or(self.acknowledged),
            lost_packets,
        };
        to.acked(now, connection, &row);
    }

    /// Updates what limits the sender from now on.
    fn judge_limits(&mut self) {
        let full = u64::from(self.given.mss_bytes);
        let has_room = self.right_edge.is_none_or(|edge| self.high + full <= edge);
        self.limits.state = if !self.sent_data {
            None
        } else if !has_room {
            Some(SendLimit::ReceiveWindow)
        } else if self.last_is_short && self.outstanding.lost_bytes() == 0 {
            // As `tcp_rate.c::tcp_rate_check_app_limited`: less than a packet waits, cwnd and
            // window allow more, and no lost data remains to be retransmitted.
            Some(SendLimit::Application)
        } else {
            Some(SendLimit::Other)
        };
    }

    /// Returns whether all data and the FIN were acknowledged.
    pub fn is_complete(&self) -> bool {
        self.finished && self.start.is_some() && self.acknowledged >= self.high
    }

    /// Returns the outstanding packet that contains a sequence number.
    pub fn piece_of(&self, raw: u32) -> Option<&OutstandingPacket> {
        self.outstanding.piece(near(self.high, raw))
    }

    /// Returns the state of the flow at the end of an interval.
    pub fn state(&self) -> FlowState {
        FlowState {
            srtt: Span::from_ns(self.srtt_ns),
            cwnd_bytes: self.window.bytes(),
            ssthresh_bytes: None,
            in_flight_bytes: self.outstanding.in_flight_bytes(),
            pacing_rate: None,
            mode: match self.limits.state {
                Some(SendLimit::Application) => "application_limited",
                Some(SendLimit::ReceiveWindow) => "receiver_limited",
                _ => "",
            },
        }
    }

    /// Returns the receive window beyond the acknowledged data, if the window scale is known.
    pub fn receive_window_bytes(&self) -> Option<u64> {
        self.right_edge.map(|edge| edge.saturating_sub(self.acknowledged))
    }

    /// Returns the number of packets that the path carried, and how many of them arrived.
    pub fn path_counts(&mut self) -> Option<(u64, u64)> {
        std::mem::take(&mut self.transmissions).counts(self.given.other_end?)
    }

    /// Returns the counters of the flow.
    pub fn finish(self) -> CaptureCounters {
        CaptureCounters {
            handshake_s: self.opening.took_ns.map(seconds),
            sender_side_s: self.opening.sender_side_ns.map(seconds),
            full_rtt_min_s: self.least.full_ns.map(seconds),
            fast: Some(self.seen.fast.unwrap_or(0)),
            timeout: Some(self.seen.timeout.unwrap_or(0)),
            probe: Some(self.seen.probe.unwrap_or(0)),
            spurious: Some(self.spurious_packets),
            loss_bursts: Some(self.seen.loss_bursts.unwrap_or(0)),
            ..self.seen
        }
    }
}
