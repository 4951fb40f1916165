//! What a simulator tells whoever records a run.

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

/// Records a run. A generic parameter of the simulator: recording nothing costs nothing.
///
/// Times never decrease for a flow. Those of a link never decrease for its queue (changes, drops
/// and marks by the discipline) nor for its wire (sending, losses), but a link works out its
/// departures when it is asked, and tells a loss when sending starts with the time at which it ends.
pub trait Sink {
    /// The application of a flow opens its connection.
    fn opened(&mut self, _now: Time, _flow: u32) {}
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
