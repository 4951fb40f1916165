//! Events passed to controllers written in Python, and conversion of their attributes.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use jostle_congestion::{AckSample, EcnMarks, LostPacket, RawAckSample, SendEvent};
use jostle_registry::ParameterValue;
use jostle_units::{Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::conversion::{seconds, signal_name, span_s, state_name};

/// Maximum number of names of modes and quantities per process.
const MOST_NAMES: usize = 4_096;

/// Event at the end of the handshake.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct EstablishedEvent {
    /// Time of the first ACK.
    now_s: f64,
    /// Payload of a full-sized packet, in bytes.
    mss_bytes: u32,
    /// Initial window in packets.
    initial_window: u32,
    /// RTT of the handshake; None if it was not measured.
    rtt_s: Option<f64>,
    /// Packets written by the application so far; None if unlimited.
    backlog: Option<u64>,
    /// Receive window, in packets.
    receive_window: u32,
}

impl EstablishedEvent {
    pub fn of(it: &jostle_congestion::EstablishedEvent) -> Self {
        Self {
            now_s: seconds(it.now),
            mss_bytes: it.mss_bytes,
            initial_window: it.initial_window,
            rtt_s: it.rtt.map(span_s),
            backlog: it.prospect.send_backlog_packets,
            receive_window: it.prospect.receive_window,
        }
    }
}

/// Event after packets were sent.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct SentEvent {
    /// Time of sending.
    now_s: f64,
    /// Packets in the burst, retransmissions included.
    packets: u32,
    /// Packets sent since the connection began.
    total_sent: u64,
    /// Packets in flight before the burst.
    prior_in_flight: u32,
    /// Whether the connection was idle before.
    after_idle: bool,
}

impl SentEvent {
    pub fn of(it: &SendEvent) -> Self {
        Self {
            now_s: seconds(it.now),
            packets: it.packets,
            total_sent: it.total_sent,
            prior_in_flight: it.prior_in_flight,
            after_idle: it.after_idle,
        }
    }
}

/// Measurements of an ACK, before loss detection.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct MeasurementEvent {
    /// Time at which the ACK arrived.
    now_s: f64,
    /// RTT of the most recently sent packet among the newly acknowledged; None if there is none.
    rtt_s: Option<f64>,
    /// Packets newly acknowledged cumulatively.
    packets: u32,
    /// Packets delivered since the most recently sent of the newly delivered packets was sent.
    delivered: u32,
    /// Selectively acknowledged packets above `first_unacked`.
    sacked: u32,
    /// Receiver's clock when it sent the ACK, in ms (TSval); None without timestamps.
    timestamp_value_ms: Option<u32>,
    /// Sender's clock when it sent the echoed packet, in ms (TSecr).
    timestamp_echo_ms: Option<u32>,
    /// Sender's clock now, in ms.
    timestamp_now_ms: Option<u32>,
    /// First packet that is not acknowledged.
    first_unacked: u64,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
    /// State of recovery before the ACK.
    state: &'static str,
    /// Current pacing rate in bit/s; None if packets are not paced.
    pacing_rate: Option<u64>,
}

impl MeasurementEvent {
    pub fn of(it: &RawAckSample) -> Self {
        Self {
            now_s: seconds(it.now),
            rtt_s: it.rtt.map(span_s),
            packets: it.packets,
            delivered: it.delivered,
            sacked: it.sacked,
            timestamp_value_ms: it.timestamps.map(|stamps| stamps.value_ms),
            timestamp_echo_ms: it.timestamps.map(|stamps| stamps.echo_ms),
            timestamp_now_ms: it.timestamps.map(|stamps| stamps.now_ms),
            first_unacked: it.first_unacked,
            next_to_send: it.next_to_send,
            state: state_name(it.state),
            pacing_rate: it.pacing_rate.map(|rate| rate.as_bps()),
        }
    }
}

/// ECN marks reported by an ACK.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct MarksEvent {
    /// Time at which the ACK arrived.
    now_s: f64,
    /// Packets delivered since the connection began, including the packets of this ACK.
    delivered: u64,
    /// Packets that the receiver reported as marked since the connection began.
    marked: u64,
    /// First packet that is not acknowledged.
    first_unacked: u64,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
}

impl MarksEvent {
    pub fn of(it: &EcnMarks) -> Self {
        Self {
            now_s: seconds(it.now),
            delivered: it.delivered,
            marked: it.marked,
            first_unacked: it.first_unacked,
            next_to_send: it.next_to_send,
        }
    }
}

/// Event for a packet that was marked as lost.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct LostEvent {
    /// Time at which it was marked.
    now_s: f64,
    /// Number of the packet.
    number: u64,
    /// Packets in flight after it was sent, including it.
    in_flight_at_send: u32,
    /// Packets marked lost since it was sent, including it.
    lost_since_send: u32,
    /// Whether the sender was application-limited when it was sent.
    app_limited: bool,
    /// Packets delivered since the connection began.
    delivered: u64,
}

impl LostEvent {
    pub fn of(it: &LostPacket) -> Self {
        Self {
            now_s: seconds(it.now),
            number: it.number,
            in_flight_at_send: it.in_flight_at_send,
            lost_since_send: it.lost_since_send,
            app_limited: it.app_limited,
            delivered: it.delivered,
        }
    }
}

/// Measurements and connection state of an ACK.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct AckEvent {
    /// Time at which the ACK arrived.
    now_s: f64,
    /// Packets newly delivered.
    acked: u32,
    /// Packets newly marked lost.
    lost: u32,
    /// RTT of the most recently sent packet among the newly acknowledged; None if there is none.
    rtt_s: Option<f64>,
    /// Smoothed RTT.
    srtt_s: f64,
    /// Minimum RTT of the last 300 s.
    min_rtt_s: f64,
    /// Packets of the delivery-rate sample; None without a sample.
    rate_packets: Option<u32>,
    /// Interval of the delivery-rate sample.
    rate_interval_s: Option<f64>,
    /// Whether the delivery-rate sample was application-limited.
    app_limited: bool,
    /// Whether the ACK acknowledges a single packet, so that it may have been delayed.
    ack_delayed: bool,
    /// Send time of the most recently sent packet among the newly acknowledged.
    sent_at_s: f64,
    /// `delivered` when that packet was sent.
    prior_delivered: u64,
    /// Packets in flight after that packet was sent, including it.
    in_flight_at_send: u32,
    /// Packets marked lost since that packet was sent.
    lost_since_send: u32,
    /// Packets delivered since the connection began.
    delivered: u64,
    /// Packets marked lost since the connection began.
    total_lost: u64,
    /// Packets sent since the connection began, retransmissions included.
    total_sent: u64,
    /// Packets in flight before the ACK.
    prior_in_flight: u32,
    /// Packets in flight after the ACK.
    in_flight: u32,
    /// First packet that is not acknowledged.
    first_unacked: u64,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
    /// Earliest departure time of the next packet under pacing.
    next_departure_s: f64,
    /// State of recovery.
    state: &'static str,
    /// Whether the sender was cwnd-limited.
    cwnd_limited: bool,
    /// Whether the controller may increase cwnd, because the transport is not reducing it.
    may_grow: bool,
    /// Whether the ACK ended recovery.
    left_recovery: bool,
    /// Packets newly reported as marked.
    ce_marked: u32,
}

impl AckEvent {
    pub fn of(it: &AckSample) -> Self {
        Self {
            now_s: seconds(it.now),
            acked: it.acked,
            lost: it.lost,
            rtt_s: it.rtt.map(span_s),
            srtt_s: span_s(it.srtt),
            min_rtt_s: span_s(it.min_rtt),
            rate_packets: it.rate.map(|rate| rate.delivered),
            rate_interval_s: it.rate.map(|rate| span_s(rate.interval)),
            app_limited: it.app_limited,
            ack_delayed: it.ack_delayed,
            sent_at_s: seconds(it.sent_at),
            prior_delivered: it.prior_delivered,
            in_flight_at_send: it.in_flight_at_send,
            lost_since_send: it.lost_since_send,
            delivered: it.delivered,
            total_lost: it.total_lost,
            total_sent: it.total_sent,
            prior_in_flight: it.prior_in_flight,
            in_flight: it.in_flight,
            first_unacked: it.first_unacked,
            next_to_send: it.next_to_send,
            next_departure_s: seconds(it.next_departure),
            state: state_name(it.state),
            cwnd_limited: it.cwnd_limited,
            may_grow: it.can_increase_cwnd,
            left_recovery: it.recovery_ended,
            ce_marked: it.ce_marked,
        }
    }
}

/// A congestion signal: at most one per window of data.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct CongestionEvent {
    /// Time of the signal.
    now_s: f64,
    /// "loss", "ecn", "request", or "timeout".
    signal: &'static str,
    /// Packets in flight.
    in_flight: u32,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
}

impl CongestionEvent {
    pub fn of(it: &jostle_congestion::CongestionEvent) -> Self {
        Self {
            now_s: seconds(it.now),
            signal: signal_name(it.signal),
            in_flight: it.in_flight,
            next_to_send: it.next_to_send,
        }
    }
}

/// Adds a parameter of a scenario to the keyword arguments.
pub fn set_parameter(into: &Bound<'_, PyDict>, name: &str, value: &ParameterValue) -> PyResult<()> {
    match value {
        ParameterValue::Bool(it) => into.set_item(name, it),
        ParameterValue::Integer(it) => into.set_item(name, it),
        ParameterValue::Number(it) => into.set_item(name, it),
        ParameterValue::Text(it) => into.set_item(name, it),
        ParameterValue::Limit(_) => {
            Err(PyTypeError::new_err(format!("{name} is {value}, which only queues take")))
        }
    }
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| {
        let kind = value.get_type().name().map_or_else(|_| "no number".into(), |it| it.to_string());
        PyTypeError::new_err(format!("{name} is of type {kind}, not a number"))
    })
}

/// Converts to an integer number of packets, rounded down. The minimum is `least`.
pub fn packets(name: &str, least: f64, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let packets = number(name, value)?;
    if packets.is_nan() || packets < least {
        let text = format!("{name} is {packets}: it must be {least} packets at least");
        return Err(PyValueError::new_err(text));
    }
    Ok(packets as u32)
}

/// Converts to a pacing rate in bit/s.
pub fn rate(value: &Bound<'_, PyAny>) -> PyResult<Rate> {
    let bps = number("pacing_rate", value)?;
    if bps.is_nan() || bps < 1.0 {
        let text = format!("pacing_rate is {bps}: it must be 1 bit/s at least, or None");
        return Err(PyValueError::new_err(text));
    }
    Ok(Rate::from_bps(bps as u64))
}

/// Converts from a time in seconds.
pub fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Time> {
    let at_s = number(name, value)?;
    if at_s.is_nan() || at_s < 0.0 {
        return Err(PyValueError::new_err(format!("{name} is {at_s}: no time of the run")));
    }
    Ok(Time::from_ns((at_s * 1e9 + 0.5) as u64))
}

/// Returns a name with static lifetime, as the engine's columns require.
pub fn permanent(name: &str) -> PyResult<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if name.is_empty() || names.len() >= MOST_NAMES {
        let text = format!("{name:?}: a name is not empty, and there are {MOST_NAMES} at most");
        return Err(PyValueError::new_err(text));
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}
