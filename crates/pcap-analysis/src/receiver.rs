//! Analysis of a flow captured near its receiver: received data packets and sent
//! ACKs.

use std::collections::VecDeque;

use jostle_metrics::{AckEvent, CaptureCounters, EventSink, FlowState, Recorder};
use jostle_units::{ConnectionId, Span, Time};

use crate::byte_ranges::{Range, Ranges};
use crate::handshake_times::HandshakeTimes;
use crate::packet::{Packet, Segment};
use crate::sender::{CapturedSender, KnownFlowFacts, MinFullPacketRtt, count_options, seconds};
use crate::sequence_number::{WINDOW_MAX, first, is_after, near};
use crate::time_sequence::{AckPacket, DataPacket, Kind};

/// Maximum number of time stamps that wait for their echo.
const STAMPS_MAX: usize = 1 << 12;
/// A packet that follows its ACK within this time was captured late, and one that fills a gap was
/// reordered, if there are neither time stamps nor a handshake. Neither was retransmitted.
const OVERTAKEN_NS: u64 = 3_000_000;

/// State of a flow's receiver, reconstructed from a capture near it.
#[derive(Clone, Debug)]
pub(crate) struct CapturedReceiver {
    given: KnownFlowFacts,
    /// First byte of data. `None` until a segment of the flow was seen.
    start: Option<u64>,
    /// Next byte expected in order. `None` until a segment of the flow was seen.
    next: Option<u64>,
    high: u64,
    /// Data received out of order.
    beyond: Ranges,
    /// Data that was acknowledged, but not captured.
    unseen: Ranges,
    /// Header bytes of a data packet.
    header_bytes: u32,
    /// Time stamps of sent ACKs, newest last, and when each was first seen.
    stamps: VecDeque<(u32, u64)>,
    rtt_ns: u64,
    least: MinFullPacketRtt,
    /// End of the data, where the sequence number of the FIN is.
    fin: Option<u64>,
    acknowledged_end: bool,
    has_acks: bool,
    closed_window: bool,
    scale: Option<u8>,
    window_bytes: Option<u64>,
    burst_end: u64,
    seen: CaptureCounters,
    opening: HandshakeTimes,
}

impl CapturedReceiver {
    pub fn new(given: KnownFlowFacts) -> Self {
        Self {
            given,
            start: None,
            next: None,
            high: 0,
            beyond: Ranges::default(),
            unseen: Ranges::default(),
            header_bytes: jostle_units::HEADER_BYTES,
            stamps: VecDeque::new(),
            rtt_ns: 0,
            least: MinFullPacketRtt::default(),
            fin: None,
            acknowledged_end: false,
            has_acks: false,
            closed_window: false,
            scale: given.scale,
            window_bytes: None,
            burst_end: 0,
            seen: CaptureCounters {
                out_of_order: Some(0),
                spurious: Some(0),
                loss_bursts: Some(0),
                ..CaptureCounters::default()
            },
            opening: HandshakeTimes::default(),
        }
    }

    /// Processes a segment that arrives from the sender. `from` is the sender's state, if that end
    /// was captured. Returns the data packet, if the segment carries data.
    pub fn came(
        &mut self,
        now_ns: u64,
        packet: &Packet,
        segment: &Segment,
        from: Option<&mut CapturedSender>,
        to: &mut Recorder,
    ) -> Option<DataPacket> {
        self.opening.see(segment, now_ns, true);
        if segment.syn {
            self.begin(first(segment.sequence.wrapping_add(1)));
            return None;
        }
        count_options(&mut self.seen, segment);
        if self.next.is_none() && segment.payload_bytes > 0 {
            self.begin(first(segment.sequence));
        }
        let start = near(self.high, segment.sequence);
        let end = start + u64::from(segment.payload_bytes);
        if segment.fin {
            self.fin = Some(end);
        }
        if segment.payload_bytes == 0 {
            return None;
        }
        let next = self.next.unwrap_or(start);
        if start > self.high + WINDOW_MAX || end + WINDOW_MAX < self.high {
            return None;
        }
        if segment.payload_bytes == 1 && end <= next {
            return None;
        }
        let packets = segment.payload_bytes.div_ceil(self.given.mss_bytes);
        self.seen.capable += u64::from(packet.understands_marks) * u64::from(packets);
        self.seen.marked += u64::from(packet.is_marked) * u64::from(packets);
        let came = self.judge(now_ns, start, end, segment);
        self.count(came, start, end, packets);
        let (now, connection) = (Time::from_ns(now_ns), self.given.flow.into());
        self.header_bytes = packet.wire_bytes.saturating_sub(segment.payload_bytes).min(256);
        let wire_bytes = segment.payload_bytes + packets * self.header_bytes;
        if came == Kind::OutOfOrder && self.unseen.covers(start, end) {
            // It counted when it was acknowledged.
            self.unseen.remove(start, end);
        } else {
            to.received(now, connection, wire_bytes);
            self.take(now_ns, start, end, segment, to);
        }
        match from {
            Some(from) => {
                for key in segment.packet_keys(start, self.given.mss_bytes) {
                    from.transmissions.arrived(now_ns, key);
                }
                travelled(now_ns, segment, packets, from, connection, to);
            }
            None => {
                let again = matches!(came, Kind::Again | Kind::Twice);
                to.sent_payload(now, connection, (packets, u64::from(wire_bytes), 0), again);
                self.round_trip(now_ns, segment, to);
            }
        }
        Some(DataPacket { start, end, kind: came })
    }

    /// Returns the first byte of data.
    pub fn origin(&self) -> u64 {
        self.start.unwrap_or(0)
    }

    fn begin(&mut self, start: u64) {
        if self.next.is_none() {
            (self.start, self.next, self.high) = (Some(start), Some(start), start);
        }
    }

    fn judge(&self, now_ns: u64, start: u64, end: u64, segment: &Segment) -> Kind {
        let next = self.next.unwrap_or(start);
        // It was captured after its ACK.
        if let Some(gap) = self.unseen.after(start).filter(|gap| gap.start <= start)
            && end <= gap.end
            && (segment.stamps.is_none_or(|(stamp, _)| !is_after(stamp, gap.stamp))
                || now_ns.saturating_sub(gap.since_ns) < OVERTAKEN_NS)
        {
            return Kind::OutOfOrder;
        }
        if end <= next || self.beyond.covers(start.max(next), end) {
            return Kind::Twice;
        }
        // The range above the gap that the packet fills.
        let Some(behind) = self.beyond.after(start).filter(|_| start < self.high) else {
            return Kind::New;
        };
        let overtaken = match segment.stamps {
            Some((stamp, _)) => !is_after(stamp, behind.stamp),
            None => {
                let half = self.opening.took_ns.map_or(OVERTAKEN_NS, |took_ns| took_ns / 2);
                now_ns.saturating_sub(behind.since_ns) < half
            }
        };
        if overtaken { Kind::OutOfOrder } else { Kind::Again }
    }

    fn count(&mut self, came: Kind, start: u64, end: u64, packets: u32) {
        let packets = u64::from(packets);
        match came {
            Kind::New | Kind::Fast | Kind::Timeout | Kind::Probe => {}
            Kind::OutOfOrder => *self.seen.out_of_order.get_or_insert(0) += packets,
            Kind::Twice => *self.seen.spurious.get_or_insert(0) += packets,
            Kind::Again => {
                self.seen.lost_packets += packets;
                if start != self.burst_end {
                    *self.seen.loss_bursts.get_or_insert(0) += 1;
                }
                self.burst_end = end;
            }
        }
    }

    /// Adds the payload and reports the bytes that are now in order.
    fn take(&mut self, now_ns: u64, start: u64, end: u64, segment: &Segment, to: &mut Recorder) {
        let before = self.next.unwrap_or(start);
        let mut next = before;
        if start <= next {
            next = next.max(end);
            while let Some(further) = self.beyond.take_from(next) {
                next = next.max(further);
            }
        } else {
            let stamp = segment.stamps.map_or(0, |(value, _)| value);
            let range = Range { start, end, stamp, since_ns: now_ns, is_acked: false };
            if self.beyond.add(range, |_, _| {}).is_none() {
                // There are more gaps than any window allows: the capture is missing most packets.
                next = end;
                self.beyond = Ranges::default();
            }
        }
        self.high = self.high.max(end);
        self.next = Some(next);
        to.delivered(Time::from_ns(now_ns), self.given.flow.into(), next - before);
    }

    /// Samples the RTT between the capture point and the sender: from an ACK to the first packet
    /// that echoes its time stamp.
    fn round_trip(&mut self, now_ns: u64, segment: &Segment, to: &mut Recorder) {
        let Some((_, echo)) = segment.stamps else { return };
        while let Some(&(stamp, left_ns)) = self.stamps.front() {
            if is_after(stamp, echo) {
                return;
            }
            self.stamps.pop_front();
            if stamp == echo {
                let rtt_ns = now_ns.saturating_sub(left_ns);
                self.least.see(rtt_ns, segment.payload_bytes, self.given.mss_bytes);
                self.rtt_ns = if self.rtt_ns == 0 {
                    rtt_ns
                } else {
                    self.rtt_ns - self.rtt_ns / 8 + rtt_ns / 8
                };
                let row = AckEvent {
                    rtt: Some(Span::from_ns(rtt_ns)),
                    cwnd_bytes: 0,
                    in_flight_bytes: 0,
                    acked_bytes: 0,
                    lost_packets: 0,
                };
                to.acked(Time::from_ns(now_ns), self.given.flow.into(), &row);
                return;
            }
        }
    }

    /// Processes a segment that the receiver sends. Returns the ACK, once data was seen.
    pub fn on_ack_sent(
        &mut self,
        now_ns: u64,
        segment: &Segment,
        to: &mut Recorder,
    ) -> Option<AckPacket> {
        self.opening.see(segment, now_ns, false);
        if segment.syn || segment.rst || !segment.ack {
            return None;
        }
        self.has_acks = true;
        count_options(&mut self.seen, segment);
        self.seen.sack_acks += u64::from(!segment.blocks().is_empty());
        self.seen.echoes += u64::from(segment.ece);
        let is_closed = segment.window == 0;
        self.seen.zero_windows += u64::from(is_closed && !self.closed_window);
        self.closed_window = is_closed;
        self.window_bytes = self.scale.map(|scale| u64::from(segment.window) << scale.min(14));
        let number = self.next.map(|next| near(next, segment.acknowledgment));
        if let Some(number) = number {
            let end = self.fin.unwrap_or(u64::MAX);
            self.acknowledged_end |= number > end;
            self.take_unseen(now_ns, number.min(end), segment, to);
        }
        if let Some((stamp, _)) = segment.stamps {
            self.wait_for(stamp, now_ns);
        }
        let ack_packet =
            |number| AckPacket { number, origin: self.origin(), scale: self.given.scale };
        number.map(ack_packet)
    }

    /// Counts data that an ACK acknowledges near the sender while the receiver was not captured.
    pub fn take_acknowledged(
        &mut self,
        now_ns: u64,
        ack: &AckPacket,
        segment: &Segment,
        to: &mut Recorder,
    ) {
        self.begin(ack.origin);
        self.take_unseen(now_ns, ack.number, segment, to);
    }

    /// Counts data up to `number` as received: it was acknowledged, but the capture does not have it.
    fn take_unseen(&mut self, now_ns: u64, number: u64, segment: &Segment, to: &mut Recorder) {
        let Some(next) = self.next.filter(|next| number > *next && number <= *next + WINDOW_MAX)
        else {
            return;
        };
        let stamp = segment.stamps.map_or(0, |(_, echo)| echo);
        let mut bytes = number - next - self.beyond.overlap_bytes(next, number);
        bytes += u64::from(self.header_bytes) * bytes.div_ceil(u64::from(self.given.mss_bytes));
        let mut at = next;
        while at < number {
            let known = self.beyond.after(at).map(|range| (range.start.max(at), range.end));
            let (start, end) = known.unwrap_or((number, number));
            if at < start.min(number) {
                let gap = Range {
                    start: at,
                    end: start.min(number),
                    stamp,
                    is_acked: true,
                    since_ns: now_ns,
                };
                self.unseen.add(gap, |_, _| {});
            }
            at = end.max(start);
        }
        let now = Time::from_ns(now_ns);
        to.received(now, self.given.flow.into(), u32::try_from(bytes).unwrap_or(u32::MAX));
        let mut next = number;
        self.beyond.forget_before(number);
        while let Some(further) = self.beyond.take_from(next) {
            next = next.max(further);
        }
        self.high = self.high.max(next);
        self.unseen.forget_before(next.saturating_sub(WINDOW_MAX));
        to.delivered(now, self.given.flow.into(), next - self.next.unwrap_or(next));
        self.next = Some(next);
    }

    /// Remembers the time stamp of an ACK. Its echo will give an RTT sample.
    fn wait_for(&mut self, stamp: u32, now_ns: u64) {
        if self.stamps.back().is_none_or(|(newest, _)| is_after(stamp, *newest)) {
            if self.stamps.len() == STAMPS_MAX {
                self.stamps.pop_front();
            }
            self.stamps.push_back((stamp, now_ns));
        }
    }

    /// Returns whether the receiver has acknowledged all data and the FIN.
    pub fn is_complete(&self) -> bool {
        self.acknowledged_end
    }

    /// Returns the state of the flow at the end of an interval. The sender's fields are 0.
    pub fn state(&self) -> FlowState {
        FlowState {
            srtt: Span::from_ns(self.rtt_ns),
            cwnd_bytes: 0,
            ssthresh_bytes: None,
            in_flight_bytes: 0,
            pacing_rate: None,
            mode: "",
        }
    }

    /// Returns the last advertised receive window, if the window scale is known.
    pub fn receive_window_bytes(&self) -> Option<u64> {
        self.window_bytes
    }

    /// Returns the counters of the flow.
    pub fn finish(self) -> CaptureCounters {
        // Without ACKs, the capture may be near the sender: packets that pass twice were lost later.
        let only_here = |count: Option<u64>| count.filter(|_| self.has_acks);
        CaptureCounters {
            spurious: only_here(self.seen.spurious),
            loss_bursts: only_here(self.seen.loss_bursts),
            handshake_s: self.opening.took_ns.map(seconds),
            sender_side_s: self.opening.sender_side_ns.map(seconds),
            full_rtt_min_s: self.least.full_ns.map(seconds),
            ..self.seen
        }
    }
}

/// Reports the one-way delay of a packet to the recorder and to the state of its sender, which is matched with the sender's capture by time stamp
/// and sequence number.
fn travelled(
    now_ns: u64,
    segment: &Segment,
    packets: u32,
    from: &mut CapturedSender,
    connection: ConnectionId,
    to: &mut Recorder,
) {
    let Some(piece) = from.piece_of(segment.sequence) else { return };
    let sent_ns = match segment.stamps {
        Some((stamp, _)) if stamp == piece.last_stamp => piece.last_ns,
        Some((stamp, _)) if stamp == piece.first_stamp => piece.first_ns,
        None if piece.times == 1 => piece.last_ns,
        _ => return,
    };
    if let Some(delay_ns) = now_ns.checked_sub(sent_ns) {
        from.transmissions.took(delay_ns);
        for _ in 0..packets {
            to.packet_transit(
                Time::from_ns(now_ns),
                connection,
                Span::from_ns(delay_ns),
                Span::ZERO,
            );
        }
    }
}
