//! What a capture near a receiver shows: every packet as it comes, every ACK as it leaves.

use std::collections::VecDeque;

use jostle_record::{AckRow, Captured, FlowState, Recorder, Sink};
use jostle_units::{Span, Time};

use crate::diagram::{Answer, Kind, Seen};
use crate::packet::{Packet, Segment};
use crate::ranges::{Range, Ranges};
use crate::sending::{Given, LeastRtt, Opening, Sending, seconds};
use crate::sequence::{WINDOW_MAX, first, is_after, near};

/// Time stamps whose echo is waited for.
const STAMPS_KEPT: usize = 1 << 12;
/// Without time stamps and handshake: what comes so soon was overtaken, not sent again.
const OVERTAKEN_NS: u64 = 3_000_000;

/// A receiver as its capture shows it.
#[derive(Clone, Debug)]
pub(crate) struct Receiving {
    given: Given,
    /// First byte of data; none before anything is known.
    start: Option<u64>,
    /// What comes next in order; none before anything is known.
    next: Option<u64>,
    high: u64,
    /// What came beyond holes.
    beyond: Ranges,
    /// Time stamps of ACKs that left, newest last, and when each was first seen.
    stamps: VecDeque<(u32, u64)>,
    rtt_ns: u64,
    least: LeastRtt,
    finished: bool,
    acknowledged_end: bool,
    closed_window: bool,
    scale: Option<u8>,
    window_bytes: Option<u64>,
    received_packets: u64,
    burst_end: u64,
    seen: Captured,
    opening: Opening,
    first_data_ns: Option<u64>,
    last_data_ns: u64,
}

impl Receiving {
    pub fn new(given: Given) -> Self {
        Self {
            given,
            start: None,
            next: None,
            high: 0,
            beyond: Ranges::default(),
            stamps: VecDeque::new(),
            rtt_ns: 0,
            least: LeastRtt::default(),
            finished: false,
            acknowledged_end: false,
            closed_window: false,
            scale: given.scale,
            window_bytes: None,
            received_packets: 0,
            burst_end: 0,
            seen: Captured {
                out_of_order: Some(0),
                spurious: Some(0),
                loss_bursts: Some(0),
                ..Captured::default()
            },
            opening: Opening::default(),
            first_data_ns: None,
            last_data_ns: 0,
        }
    }

    /// A segment of the sender comes; `from` is what the capture at its end has of it. Returns what it is,
    /// if it carries data.
    pub fn came(
        &mut self,
        now_ns: u64,
        packet: &Packet,
        segment: &Segment,
        from: Option<&Sending>,
        to: &mut Recorder,
    ) -> Option<Seen> {
        self.opening.see(segment, now_ns);
        if segment.syn {
            self.begin(first(segment.sequence.wrapping_add(1)));
            return None;
        }
        self.finished |= segment.fin;
        if segment.payload_bytes == 0 {
            return None;
        }
        if self.next.is_none() {
            self.begin(first(segment.sequence));
        }
        let start = near(self.high, segment.sequence);
        let end = start + u64::from(segment.payload_bytes);
        let next = self.next.unwrap_or(start);
        if start > self.high + WINDOW_MAX || end + WINDOW_MAX < self.high {
            return None;
        }
        if segment.payload_bytes == 1 && end <= next {
            return None;
        }
        self.first_data_ns.get_or_insert(now_ns);
        self.last_data_ns = now_ns;
        let packets = segment.payload_bytes.div_ceil(self.given.mss_bytes);
        self.received_packets += u64::from(packets);
        self.seen.capable += u64::from(packet.understands_marks) * u64::from(packets);
        self.seen.marked += u64::from(packet.is_marked) * u64::from(packets);
        let came = self.judge(now_ns, start, end, segment);
        self.count(came, start, end, packets);
        let (now, flow) = (Time::from_ns(now_ns), self.given.flow);
        let headers = packet.wire_bytes.saturating_sub(segment.payload_bytes).min(256);
        let wire_bytes = segment.payload_bytes + packets * headers;
        to.received(now, flow, wire_bytes);
        self.take(now_ns, start, end, segment, to);
        match from {
            Some(from) => travelled(now_ns, segment, packets, from, flow, to),
            None => {
                let again = matches!(came, Kind::Again | Kind::Twice);
                to.sent_payload(now, flow, (packets, u64::from(wire_bytes), 0), again);
                self.round_trip(now_ns, segment, to);
            }
        }
        Some(Seen { start, end, kind: came })
    }

    /// The first byte of data.
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
        if end <= next || self.beyond.covers(start.max(next), end) {
            return Kind::Twice;
        }
        // Beyond the hole that it fills.
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

    /// Puts the payload where it belongs, and tells what is in order now.
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
            let range = Range { start, end, stamp, since_ns: now_ns };
            if self.beyond.add(range, |_, _| {}).is_none() {
                // More holes than any window has: whoever captured lost most of it.
                next = end;
                self.beyond = Ranges::default();
            }
        }
        self.high = self.high.max(end);
        self.next = Some(next);
        to.delivered(Time::from_ns(now_ns), self.given.flow, next - before);
    }

    /// A round trip from here to the sender and back: from an ACK until the first packet that echoes
    /// its time stamp.
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
                let row = AckRow {
                    rtt: Some(Span::from_ns(rtt_ns)),
                    cwnd_bytes: 0,
                    in_flight_bytes: 0,
                    acked_bytes: 0,
                    lost_packets: 0,
                };
                to.acked(Time::from_ns(now_ns), self.given.flow, &row);
                return;
            }
        }
    }

    /// A segment of the receiver leaves. Returns what it acknowledges, once there is something.
    pub fn left(&mut self, now_ns: u64, segment: &Segment) -> Option<Answer> {
        self.opening.see(segment, now_ns);
        if segment.syn || segment.rst || !segment.ack {
            return None;
        }
        self.seen.echoes += u64::from(segment.ece);
        let is_closed = segment.window == 0;
        self.seen.zero_windows += u64::from(is_closed && !self.closed_window);
        self.closed_window = is_closed;
        self.window_bytes = self.scale.map(|scale| u64::from(segment.window) << scale.min(14));
        let number = self.next.map(|next| near(next, segment.acknowledgment));
        if let (Some(next), Some(number)) = (self.next, number) {
            self.acknowledged_end |= self.finished && number > next;
        }
        if let Some((stamp, _)) = segment.stamps {
            self.wait_for(stamp, now_ns);
        }
        let answer = |number| Answer { number, origin: self.origin(), scale: self.given.scale };
        number.map(answer)
    }

    /// The echo of a time stamp that leaves will tell of a round trip.
    fn wait_for(&mut self, stamp: u32, now_ns: u64) {
        if self.stamps.back().is_none_or(|(newest, _)| is_after(stamp, *newest)) {
            if self.stamps.len() == STAMPS_KEPT {
                self.stamps.pop_front();
            }
            self.stamps.push_back((stamp, now_ns));
        }
    }

    /// Everything up to the sender's end has come and was acknowledged.
    pub fn is_complete(&self) -> bool {
        self.acknowledged_end
    }

    /// Its state at the end of an interval; nothing of the sender is known.
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

    /// Room that the receiver offers, if its scale is known.
    pub fn receive_window_bytes(&self) -> Option<u64> {
        self.window_bytes
    }

    /// Packets of data that came.
    pub fn received_packets(&self) -> u64 {
        self.received_packets
    }

    /// What was seen of it beside the series.
    pub fn finish(self) -> Captured {
        let lived_ns = self.last_data_ns - self.first_data_ns.unwrap_or(self.last_data_ns);
        Captured {
            handshake_s: self.opening.took_ns.map(seconds),
            full_rtt_min_s: self.least.full_ns.map(seconds),
            lived_s: seconds(lived_ns),
            ..self.seen
        }
    }
}

/// Tells how long a packet was on its way, which its time stamp and number find at the other end.
fn travelled(
    now_ns: u64,
    segment: &Segment,
    packets: u32,
    from: &Sending,
    flow: u32,
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
        for _ in 0..packets {
            to.travelled(Time::from_ns(now_ns), flow, Span::from_ns(delay_ns), Span::ZERO);
        }
    }
}
