//! What a simulator tells whoever records a run.

use jostle_path::Ecn;
use jostle_units::{Rate, Span, Time};

/// An instant of a flow, taken at the end of every interval.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, if there is one.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Pacing rate, if packets are paced.
    pub pacing_rate: Option<Rate>,
    /// Name of the controller's mode.
    pub mode: &'static str,
}

/// An ACK as the sender saw it.
#[derive(Clone, Copy, Debug)]
pub struct AckRow {
    /// RTT sample, if the ACK gave one.
    pub rtt: Option<Span>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: u64,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: u64,
    /// Payload bytes acknowledged since the connection began, cumulatively.
    pub acked_bytes: u64,
    /// Packets marked lost by this ACK.
    pub lost_packets: u32,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where data come from.
    Sender,
    /// Where they go to.
    Receiver,
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// Opens the connection, from the sender.
    Syn,
    /// Answers it.
    SynAck,
    /// Data, from the sender.
    Data,
    /// An ACK, from the receiver.
    Ack,
}

/// What the headers of a segment say. Sequence numbers count segments.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// What it is for.
    pub kind: HeaderKind,
    /// Data: its number. ACK: the first segment that has not arrived.
    pub number: u32,
    /// Payload that travels with it.
    pub payload_bytes: u16,
    /// ECN field of its IP header.
    pub ecn: Ecn,
    /// Data: CWR (RFC 3168). ACK: ECE. SYN and SYN-ACK: ECN is understood.
    pub ecn_flag: bool,
    /// Time stamp, in milliseconds.
    pub tsval_ms: u32,
    /// Time stamp that it echoes.
    pub tsecr_ms: u32,
    /// ACK and SYN-ACK: segments that the receiver can take beyond `number`.
    pub window_packets: u32,
    /// Selective acknowledgements, ends excluded; `block_count` of them.
    pub blocks: [(u32, u32); 3],
    /// How many there are.
    pub block_count: u8,
}

impl Header {
    /// The selective acknowledgements.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }
}

/// Records a run. A generic parameter of the simulator: recording nothing costs nothing.
///
/// Times never decrease for a flow. Those of a link never decrease for its queue (changes, drops
/// and marks by the discipline) nor for its wire (sending, losses), but a link works out its
/// departures when it is asked, and tells a loss when sending starts with the time at which it ends.
pub trait Sink {
    /// The application of a flow opens its connection.
    fn opened(&mut self, _now: Time, _flow: u32) {}
    /// Whether [`segment`](Self::segment) is to be called.
    fn wants_segments(&self) -> bool {
        false
    }
    /// A TCP segment left one end of its flow, or reached the other. Times never decrease.
    fn segment(&mut self, _now: Time, _flow: u32, _end: End, _header: &Header) {}
    /// A sender put `packets` packets of together `wire_bytes` on its way at once.
    fn sent(
        &mut self,
        _now: Time,
        _flow: u32,
        _packets: u32,
        _wire_bytes: u64,
        _retransmission: bool,
    ) {
    }
    /// A data packet reached the receiver.
    fn received(&mut self, _now: Time, _flow: u32, _wire_bytes: u32) {}
    /// Payload reached the application in order.
    fn delivered(&mut self, _now: Time, _flow: u32, _payload_bytes: u64) {}
    /// An ACK was processed by the sender.
    fn acked(&mut self, _now: Time, _flow: u32, _row: &AckRow) {}
    /// A ping is back, `rtt` after it was sent.
    fn echoed(&mut self, _now: Time, _flow: u32, _rtt: Span) {}
    /// The ping `number`, counted from 0, was not back in time. They are told in their order.
    fn unanswered(&mut self, _now: Time, _flow: u32, _number: u32) {}
    /// All data of a fixed-size flow were acknowledged, `after` its start.
    fn completed(&mut self, _now: Time, _flow: u32, _after: Span) {}
    /// A queue changed.
    fn queue_changed(&mut self, _now: Time, _link: u32, _bytes: u64, _packets: u64) {}
    /// A link put a packet on the wire.
    fn link_sent(&mut self, _now: Time, _link: u32, _wire_bytes: u32) {}
    /// A packet of `flow` was dropped at a link; `reason` is the position in `path::Reason::ALL`.
    fn dropped(&mut self, _now: Time, _link: u32, _flow: u32, _reason: u8) {}
    /// A packet of `flow` was marked at a link.
    fn marked(&mut self, _now: Time, _link: u32, _flow: u32, _reason: u8) {}

    /// The end of an interval: one call per flow, in order, …
    fn flow_state(&mut self, _now: Time, _flow: u32, _state: &FlowState) {}
    /// … with the controller's internal values, …
    fn internal(&mut self, _now: Time, _flow: u32, _quantity: &'static str, _value: f64) {}
    /// … then one call per link, with the bytes that its capacity could have carried so far.
    fn link_state(&mut self, _now: Time, _link: u32, _queue_bytes: u64, _offered_bytes: f64) {}
    /// A phase begins or ends at `now`: called for every boundary, in order, after everything that
    /// happened before it. `offered_bytes` of each link, as in `link_state`.
    fn boundary(&mut self, _now: Time, _offered_bytes: &[f64]) {}
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Sink for Nothing {}

/// Both record.
impl<A: Sink, B: Sink> Sink for (A, B) {
    #[inline]
    fn wants_segments(&self) -> bool {
        self.0.wants_segments() || self.1.wants_segments()
    }

    fn segment(&mut self, now: Time, flow: u32, end: End, header: &Header) {
        self.0.segment(now, flow, end, header);
        self.1.segment(now, flow, end, header);
    }

    #[inline]
    fn sent(&mut self, now: Time, flow: u32, packets: u32, wire_bytes: u64, again: bool) {
        self.0.sent(now, flow, packets, wire_bytes, again);
        self.1.sent(now, flow, packets, wire_bytes, again);
    }

    #[inline]
    fn received(&mut self, now: Time, flow: u32, wire_bytes: u32) {
        self.0.received(now, flow, wire_bytes);
        self.1.received(now, flow, wire_bytes);
    }

    #[inline]
    fn delivered(&mut self, now: Time, flow: u32, payload_bytes: u64) {
        self.0.delivered(now, flow, payload_bytes);
        self.1.delivered(now, flow, payload_bytes);
    }

    #[inline]
    fn acked(&mut self, now: Time, flow: u32, row: &AckRow) {
        self.0.acked(now, flow, row);
        self.1.acked(now, flow, row);
    }

    fn echoed(&mut self, now: Time, flow: u32, rtt: Span) {
        self.0.echoed(now, flow, rtt);
        self.1.echoed(now, flow, rtt);
    }

    fn unanswered(&mut self, now: Time, flow: u32, number: u32) {
        self.0.unanswered(now, flow, number);
        self.1.unanswered(now, flow, number);
    }

    fn completed(&mut self, now: Time, flow: u32, after: Span) {
        self.0.completed(now, flow, after);
        self.1.completed(now, flow, after);
    }

    #[inline]
    fn queue_changed(&mut self, now: Time, link: u32, bytes: u64, packets: u64) {
        self.0.queue_changed(now, link, bytes, packets);
        self.1.queue_changed(now, link, bytes, packets);
    }

    #[inline]
    fn link_sent(&mut self, now: Time, link: u32, wire_bytes: u32) {
        self.0.link_sent(now, link, wire_bytes);
        self.1.link_sent(now, link, wire_bytes);
    }

    fn dropped(&mut self, now: Time, link: u32, flow: u32, reason: u8) {
        self.0.dropped(now, link, flow, reason);
        self.1.dropped(now, link, flow, reason);
    }

    fn marked(&mut self, now: Time, link: u32, flow: u32, reason: u8) {
        self.0.marked(now, link, flow, reason);
        self.1.marked(now, link, flow, reason);
    }

    fn flow_state(&mut self, now: Time, flow: u32, state: &FlowState) {
        self.0.flow_state(now, flow, state);
        self.1.flow_state(now, flow, state);
    }

    fn internal(&mut self, now: Time, flow: u32, quantity: &'static str, value: f64) {
        self.0.internal(now, flow, quantity, value);
        self.1.internal(now, flow, quantity, value);
    }

    fn link_state(&mut self, now: Time, link: u32, queue_bytes: u64, offered_bytes: f64) {
        self.0.link_state(now, link, queue_bytes, offered_bytes);
        self.1.link_state(now, link, queue_bytes, offered_bytes);
    }

    fn boundary(&mut self, now: Time, offered_bytes: &[f64]) {
        self.0.boundary(now, offered_bytes);
        self.1.boundary(now, offered_bytes);
    }
}
