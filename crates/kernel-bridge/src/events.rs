//! Events and results as C structures. `jostle_bridge.h` has the same fields in the same
//! order. Each converts to the event of the interface `CongestionController`, which says what the
//! fields mean.

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnMarks, EstablishedEvent,
    FirstFlightLimits, LostPacket, RateSample, RawAckSample, SendEvent, TcpExtension, Timestamps,
};
use jostle_units::{Rate, Span, Time};

use crate::NO_SSTHRESH;
use crate::numbers::{ecn_feedback_number, recovery_state, signal};

/// Properties of a controller that do not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Properties {
    /// The controller sets cwnd on every ACK; otherwise PRR reduces it.
    pub controls_cwnd: u8,
    /// ECN feedback that it requires: none, classic, of DCTCP, counted (`EcnFeedback`).
    pub ecn_feedback: u8,
    /// `jk_on_ack_event` must be called.
    pub wants_ack_events: u8,
    /// Packets may exceed the receive window.
    pub ignores_receive_window: u8,
    /// Bits of the rate that the SYN requests (RFC 4782), 0 for none.
    pub quick_start_request: u8,
    /// `jk_on_open` and `jk_on_close` must be called.
    pub uses_peer_cache: u8,
}

impl Properties {
    /// Returns the properties of a controller.
    pub fn of(controller: &mut dyn CongestionController) -> Self {
        let tcp = controller.tcp_extension();
        Self {
            controls_cwnd: u8::from(controller.recovery_owner() == CwndReductionBy::Controller),
            ecn_feedback: ecn_feedback_number(controller.required_ecn_feedback()) as u8,
            wants_ack_events: u8::from(tcp.is_some_and(TcpExtension::wants_ack_events)),
            ignores_receive_window: u8::from(tcp.is_some_and(TcpExtension::ignores_receive_window)),
            quick_start_request: tcp.map_or(0, |tcp| tcp.quick_start_request().to_bits()),
            uses_peer_cache: u8::from(controller.host_extension().is_some()),
        }
    }
}

/// State of a controller after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ControllerState {
    /// Pacing rate in bit/s, 0 if the transport chooses.
    pub pacing_bps: u64,
    /// Time of the next wake-up, `u64::MAX` for none.
    pub wakeup_ns: u64,
    /// Time to the next packet, `u64::MAX` if the pacing rate determines it.
    pub packet_gap_ns: u64,
    /// Congestion window in packets.
    pub cwnd: u32,
    /// Slow-start threshold, [`NO_SSTHRESH`] for none.
    pub ssthresh: u32,
    /// Smallest burst in packets, 0 for no minimum.
    pub min_burst: u32,
    /// Largest burst in packets, 0 for no maximum.
    pub max_burst: u32,
    /// The flight is small on purpose.
    pub limits_flight: u32,
    /// After an ACK: the controller requests a reduction of cwnd.
    pub requests_cwr: u32,
}

impl ControllerState {
    /// Returns the result of a controller, without a request.
    pub fn of(controller: &dyn CongestionController) -> Self {
        Self {
            pacing_bps: controller.pacing_rate().map_or(0, Rate::as_bps),
            wakeup_ns: controller.next_wakeup().map_or(u64::MAX, Time::as_ns),
            packet_gap_ns: controller.next_packet_gap().map_or(u64::MAX, Span::as_ns),
            cwnd: controller.cwnd(),
            ssthresh: controller.ssthresh().unwrap_or(NO_SSTHRESH),
            min_burst: controller.min_burst_packets().unwrap_or(0),
            max_burst: controller.max_burst_packets().unwrap_or(0),
            limits_flight: u32::from(controller.limits_flight_on_purpose()),
            requests_cwr: 0,
        }
    }
}

fn time(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn span_if_known(ns: i64) -> Option<Span> {
    u64::try_from(ns).ok().map(Span::from_ns)
}

/// The end of a handshake ([`EstablishedEvent`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EstablishedCall {
    /// Time.
    pub now_ns: u64,
    /// RTT of the handshake, negative if unknown.
    pub rtt_ns: i64,
    /// Packets that the application has written, `u64::MAX` for an endless stream.
    pub backlog_packets: u64,
    /// Granted rate (RFC 4782) in bit/s, 0 for none.
    pub quick_start_bps: u64,
    /// Payload of a full-sized packet.
    pub mss_bytes: u32,
    /// Initial window.
    pub initial_window: u32,
    /// Receive window in packets.
    pub receive_window: u32,
    /// Unused.
    pub padding: u32,
}

impl From<&EstablishedCall> for EstablishedEvent {
    fn from(call: &EstablishedCall) -> Self {
        Self {
            now: time(call.now_ns),
            mss_bytes: call.mss_bytes,
            initial_window: call.initial_window,
            rtt: span_if_known(call.rtt_ns),
            prospect: FirstFlightLimits {
                send_backlog_packets: (call.backlog_packets != u64::MAX)
                    .then_some(call.backlog_packets),
                receive_window: call.receive_window,
                quick_start_rate: (call.quick_start_bps > 0)
                    .then(|| Rate::from_bps(call.quick_start_bps)),
            },
        }
    }
}

/// Sent packets ([`SendEvent`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SendCall {
    /// Time.
    pub now_ns: u64,
    /// Packets sent since the connection began.
    pub total_sent: u64,
    /// Next new packet.
    pub next_to_send: u64,
    /// Packets of the burst.
    pub packets: u32,
    /// Packets in flight before.
    pub prior_in_flight: u32,
    /// The application had no data.
    pub after_idle: u32,
    /// Unused.
    pub padding: u32,
}

impl From<&SendCall> for SendEvent {
    fn from(call: &SendCall) -> Self {
        Self {
            now: time(call.now_ns),
            packets: call.packets,
            total_sent: call.total_sent,
            next_to_send: call.next_to_send,
            prior_in_flight: call.prior_in_flight,
            after_idle: call.after_idle != 0,
        }
    }
}

/// An ACK before loss detection ([`RawAckSample`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawAckEvent {
    /// Time.
    pub now_ns: u64,
    /// RTT, negative if unknown.
    pub rtt_ns: i64,
    /// First packet that is not acknowledged.
    pub first_unacked: u64,
    /// Next new packet.
    pub next_to_send: u64,
    /// Pacing rate in bit/s, 0 if packets are not paced.
    pub pacing_bps: u64,
    /// Packets newly acknowledged cumulatively.
    pub packets: u32,
    /// Packets delivered since the newest of them was sent.
    pub delivered: u32,
    /// Packets that are selectively acknowledged.
    pub sacked: u32,
    /// Recovery state.
    pub state: u32,
    /// The timestamps option is in use.
    pub has_timestamps: u32,
    /// TSval in ms.
    pub timestamp_ms: u32,
    /// TSecr in ms.
    pub echo_ms: u32,
    /// The sender's own clock in ms.
    pub clock_ms: u32,
}

impl From<&RawAckEvent> for RawAckSample {
    fn from(call: &RawAckEvent) -> Self {
        Self {
            now: time(call.now_ns),
            rtt: span_if_known(call.rtt_ns),
            packets: call.packets,
            delivered: call.delivered,
            sacked: call.sacked,
            timestamps: (call.has_timestamps != 0).then_some(Timestamps {
                value_ms: call.timestamp_ms,
                echo_ms: call.echo_ms,
                now_ms: call.clock_ms,
            }),
            first_unacked: call.first_unacked,
            next_to_send: call.next_to_send,
            state: recovery_state(call.state),
            pacing_rate: (call.pacing_bps > 0).then(|| Rate::from_bps(call.pacing_bps)),
        }
    }
}

/// ECN marks of an ACK ([`EcnMarks`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MarksCall {
    /// Time.
    pub now_ns: u64,
    /// Packets delivered since the connection began.
    pub delivered: u64,
    /// Packets marked since the connection began.
    pub marked: u64,
    /// First packet that is not acknowledged.
    pub first_unacked: u64,
    /// Next new packet.
    pub next_to_send: u64,
}

impl From<&MarksCall> for EcnMarks {
    fn from(call: &MarksCall) -> Self {
        Self {
            now: time(call.now_ns),
            delivered: call.delivered,
            marked: call.marked,
            first_unacked: call.first_unacked,
            next_to_send: call.next_to_send,
        }
    }
}

/// A packet that was marked lost ([`LostPacket`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LostCall {
    /// Time.
    pub now_ns: u64,
    /// Number of the packet.
    pub number: u64,
    /// Packets delivered since the connection began.
    pub delivered: u64,
    /// Packets in flight after it was sent.
    pub in_flight_at_send: u32,
    /// Packets lost since.
    pub lost_since_send: u32,
    /// It was application-limited.
    pub app_limited: u32,
    /// Unused.
    pub padding: u32,
}

impl From<&LostCall> for LostPacket {
    fn from(call: &LostCall) -> Self {
        Self {
            now: time(call.now_ns),
            number: call.number,
            in_flight_at_send: call.in_flight_at_send,
            lost_since_send: call.lost_since_send,
            app_limited: call.app_limited != 0,
            delivered: call.delivered,
        }
    }
}

/// A congestion signal ([`CongestionEvent`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CongestionCall {
    /// Time.
    pub now_ns: u64,
    /// Next new packet.
    pub next_to_send: u64,
    /// Packets in flight.
    pub in_flight: u32,
    /// Loss, ECN, request, timeout.
    pub signal: u32,
}

impl From<&CongestionCall> for CongestionEvent {
    fn from(call: &CongestionCall) -> Self {
        Self {
            now: time(call.now_ns),
            signal: signal(call.signal),
            in_flight: call.in_flight,
            next_to_send: call.next_to_send,
        }
    }
}

/// An ACK ([`AckSample`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AckEvent {
    /// Time.
    pub now_ns: u64,
    /// RTT, negative if unknown.
    pub rtt_ns: i64,
    /// Smoothed RTT.
    pub srtt_ns: u64,
    /// Minimum RTT.
    pub min_rtt_ns: u64,
    /// Interval of the rate sample, 0 if there is none.
    pub rate_interval_ns: u64,
    /// Packets delivered when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// When it was sent.
    pub sent_at_ns: u64,
    /// Packets delivered since the connection began.
    pub delivered: u64,
    /// Packets lost since the connection began.
    pub total_lost: u64,
    /// Packets sent since the connection began.
    pub total_sent: u64,
    /// First packet that is not acknowledged.
    pub first_unacked: u64,
    /// Next new packet.
    pub next_to_send: u64,
    /// Earliest departure of the next packet.
    pub next_departure_ns: u64,
    /// Packets newly delivered.
    pub acked: u32,
    /// Packets newly marked lost.
    pub lost: u32,
    /// Packets of the rate sample.
    pub rate_delivered: u32,
    /// Packets in flight after the newest acknowledged packet was sent.
    pub in_flight_at_send: u32,
    /// Packets lost since.
    pub lost_since_send: u32,
    /// Packets in flight before the ACK.
    pub prior_in_flight: u32,
    /// Packets in flight after it.
    pub in_flight: u32,
    /// Packets newly reported as marked.
    pub ce_marked: u32,
    /// Recovery state.
    pub state: u32,
    /// The rate sample is application-limited.
    pub app_limited: u8,
    /// A timer may have delayed the ACK.
    pub ack_delayed: u8,
    /// The sender was cwnd-limited.
    pub cwnd_limited: u8,
    /// The sender waited for pacing.
    pub pacing_limited: u8,
    /// cwnd may grow.
    pub can_increase_cwnd: u8,
    /// An episode of recovery ended.
    pub recovery_ended: u8,
    /// Unused.
    pub padding: [u8; 6],
}

impl From<&AckEvent> for AckSample {
    fn from(call: &AckEvent) -> Self {
        Self {
            now: time(call.now_ns),
            acked: call.acked,
            lost: call.lost,
            rtt: span_if_known(call.rtt_ns),
            srtt: Span::from_ns(call.srtt_ns),
            min_rtt: Span::from_ns(call.min_rtt_ns),
            rate: (call.rate_interval_ns > 0).then(|| RateSample {
                delivered: call.rate_delivered,
                interval: Span::from_ns(call.rate_interval_ns),
            }),
            prior_delivered: call.prior_delivered,
            sent_at: time(call.sent_at_ns),
            in_flight_at_send: call.in_flight_at_send,
            lost_since_send: call.lost_since_send,
            app_limited: call.app_limited != 0,
            ack_delayed: call.ack_delayed != 0,
            delivered: call.delivered,
            total_lost: call.total_lost,
            total_sent: call.total_sent,
            prior_in_flight: call.prior_in_flight,
            in_flight: call.in_flight,
            first_unacked: call.first_unacked,
            next_to_send: call.next_to_send,
            next_departure: time(call.next_departure_ns),
            state: recovery_state(call.state),
            cwnd_limited: call.cwnd_limited != 0,
            pacing_limited: call.pacing_limited != 0,
            can_increase_cwnd: call.can_increase_cwnd != 0,
            recovery_ended: call.recovery_ended != 0,
            ce_marked: call.ce_marked,
        }
    }
}
