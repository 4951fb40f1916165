//! What a controller written in Python is told, and what it answers.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use jostle_catalogue::Value;
use jostle_control::{AckSample, Congestion, Established, LostPacket, Marks, Measurement, Sent};
use jostle_units::{Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::words::{seconds, signal_name, span_s, state_name};

/// Names of modes and quantities that a process may use.
const MOST_NAMES: usize = 4_096;

/// The handshake is complete.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct EstablishedEvent {
    /// Time of the first ACK.
    now_s: f64,
    /// Payload of a full-sized packet.
    mss_bytes: u32,
    /// Initial window in packets.
    initial_window: u32,
    /// RTT of the handshake; None if it could not be measured.
    rtt_s: Option<f64>,
    /// Packets that the application has written so far; None if there is no end to them.
    backlog: Option<u64>,
    /// Packets that the receiver has offered to take.
    receive_window: u32,
}

impl EstablishedEvent {
    pub fn of(it: &Established) -> Self {
        Self {
            now_s: seconds(it.now),
            mss_bytes: it.mss_bytes,
            initial_window: it.initial_window,
            rtt_s: it.rtt.map(span_s),
            backlog: it.prospect.backlog,
            receive_window: it.prospect.receive_window,
        }
    }
}

/// Packets were sent.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct SentEvent {
    /// Time of sending.
    now_s: f64,
    /// Packets in the burst, retransmissions included.
    packets: u32,
    /// Packets sent since the connection began.
    total_sent: u64,
    /// Packets that were in flight before the burst.
    prior_in_flight: u32,
    /// The connection had gone idle.
    after_idle: bool,
}

impl SentEvent {
    pub fn of(it: &Sent) -> Self {
        Self {
            now_s: seconds(it.now),
            packets: it.packets,
            total_sent: it.total_sent,
            prior_in_flight: it.prior_in_flight,
            after_idle: it.after_idle,
        }
    }
}

/// What an ACK measured, before loss detection acts on it.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct MeasurementEvent {
    /// Time at which the ACK arrived.
    now_s: f64,
    /// RTT of the packet sent last among those newly acknowledged; None if there is none.
    rtt_s: Option<f64>,
    /// Packets newly acknowledged cumulatively.
    packets: u32,
    /// Packets delivered since the one was sent that was sent last among those newly delivered.
    delivered: u32,
    /// Packets beyond `first_unacked` that are selectively acknowledged.
    sacked: u32,
    /// The receiver's clock at the ACK, in ms (TSval); None without timestamps.
    timestamp_value_ms: Option<u32>,
    /// The sender's clock at the packet that is echoed, in ms (TSecr).
    timestamp_echo_ms: Option<u32>,
    /// The sender's clock now, in ms.
    timestamp_now_ms: Option<u32>,
    /// First packet that is not acknowledged.
    first_unacked: u64,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
    /// Where recovery stood.
    state: &'static str,
    /// Pacing rate in force, in bit/s; None if packets are not paced.
    pacing_rate: Option<u64>,
}

impl MeasurementEvent {
    pub fn of(it: &Measurement) -> Self {
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

/// What an ACK says of marks.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct MarksEvent {
    /// Time at which the ACK arrived.
    now_s: f64,
    /// Packets delivered since the connection began, those of this ACK included.
    delivered: u64,
    /// Packets that the receiver reported as marked since the connection began.
    marked: u64,
    /// First packet that is not acknowledged.
    first_unacked: u64,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
}

impl MarksEvent {
    pub fn of(it: &Marks) -> Self {
        Self {
            now_s: seconds(it.now),
            delivered: it.delivered,
            marked: it.marked,
            first_unacked: it.first_unacked,
            next_to_send: it.next_to_send,
        }
    }
}

/// A packet was marked lost.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct LostEvent {
    /// Time at which it was marked.
    now_s: f64,
    /// Its number.
    number: u64,
    /// Packets in flight when it had been sent, itself included.
    in_flight_at_send: u32,
    /// Packets marked lost since it was sent, itself included.
    lost_since_send: u32,
    /// The application had left the network idle when it was sent.
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

/// Everything an ACK tells.
#[pyclass(frozen, get_all, module = "jostle._core")]
pub struct AckEvent {
    /// Time at which the ACK arrived.
    now_s: f64,
    /// Packets newly known to be delivered.
    acked: u32,
    /// Packets newly marked lost.
    lost: u32,
    /// RTT of the packet sent last among those newly acknowledged; None if there is none.
    rtt_s: Option<f64>,
    /// Smoothed RTT.
    srtt_s: f64,
    /// Least RTT of the last 300 s.
    min_rtt_s: f64,
    /// Packets that the delivery-rate sample counts; None if none could be taken.
    rate_packets: Option<u32>,
    /// Time that it covers.
    rate_interval_s: Option<f64>,
    /// The sample was limited by the application.
    app_limited: bool,
    /// The ACK is of a single packet, so that it may have been delayed.
    ack_delayed: bool,
    /// Time at which the packet was sent that was sent last among those newly acknowledged.
    sent_at_s: f64,
    /// `delivered` when that packet was sent.
    prior_delivered: u64,
    /// Packets in flight when it had been sent, itself included.
    in_flight_at_send: u32,
    /// Packets marked lost since it was sent.
    lost_since_send: u32,
    /// Packets delivered since the connection began.
    delivered: u64,
    /// Packets marked lost since the connection began.
    total_lost: u64,
    /// Packets sent since the connection began, retransmissions included.
    total_sent: u64,
    /// Packets in flight before the ACK.
    prior_in_flight: u32,
    /// Packets in flight after it.
    in_flight: u32,
    /// First packet that is not acknowledged.
    first_unacked: u64,
    /// Next packet to be sent for the first time.
    next_to_send: u64,
    /// Earliest time at which pacing lets the next packet leave.
    next_departure_s: f64,
    /// Where recovery stands.
    state: &'static str,
    /// The window was the limit of what was sent.
    cwnd_limited: bool,
    /// The transport is not reducing the window.
    may_grow: bool,
    /// The ACK ended an episode of recovery.
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
            may_grow: it.may_grow,
            left_recovery: it.left_recovery,
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
    pub fn of(it: &Congestion) -> Self {
        Self {
            now_s: seconds(it.now),
            signal: signal_name(it.signal),
            in_flight: it.in_flight,
            next_to_send: it.next_to_send,
        }
    }
}

/// Puts a parameter of a scenario where keyword arguments are taken from.
pub fn set_parameter(into: &Bound<'_, PyDict>, name: &str, value: &Value) -> PyResult<()> {
    match value {
        Value::Bool(it) => into.set_item(name, it),
        Value::Integer(it) => into.set_item(name, it),
        Value::Number(it) => into.set_item(name, it),
        Value::Text(it) => into.set_item(name, it),
        Value::Limit(_) => {
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

/// Whole packets, rounded down, `least` or more.
pub fn packets(name: &str, least: f64, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let packets = number(name, value)?;
    if packets.is_nan() || packets < least {
        let text = format!("{name} is {packets}: it must be {least} packets at least");
        return Err(PyValueError::new_err(text));
    }
    Ok(packets as u32)
}

/// A pacing rate in bit/s.
pub fn rate(value: &Bound<'_, PyAny>) -> PyResult<Rate> {
    let bps = number("pacing_rate", value)?;
    if bps.is_nan() || bps < 1.0 {
        let text = format!("pacing_rate is {bps}: it must be 1 bit/s at least, or None");
        return Err(PyValueError::new_err(text));
    }
    Ok(Rate::from_bps(bps as u64))
}

/// A time in seconds.
pub fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Time> {
    let at_s = number(name, value)?;
    if at_s.is_nan() || at_s < 0.0 {
        return Err(PyValueError::new_err(format!("{name} is {at_s}: no time of the run")));
    }
    Ok(Time::from_ns((at_s * 1e9 + 0.5) as u64))
}

/// A name that lives as long as the process: the engine's columns hold it.
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
