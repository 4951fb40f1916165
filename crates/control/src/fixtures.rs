//! What tests of controllers begin with, and ACKs for them.

pub(crate) mod bbr;
pub(crate) mod pcc;

use std::collections::BTreeMap;

use jostle_catalogue::Value;
use jostle_units::{Span, Stream, Time};

use crate::controller::{AckSample, Congestion, Measurement, RecoveryState, Signal};
use crate::row::{ControllerRow, Parts};
use crate::slow_start::Standard;

pub(crate) const RTT: Span = Span::from_ms(40);

/// What a controller of `row` with the parameters `given` is built from.
pub(crate) fn parts(row: &ControllerRow, seed: u64, given: &[(&str, Value)]) -> Parts {
    let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    Parts {
        values: row.entry.resolve(&given).unwrap(),
        slow_start: Box::new(Standard),
        random: Stream::new(seed, row.entry.name),
    }
}

/// An ACK of one packet that says nothing else.
pub(crate) fn ack(delivered: u64) -> AckSample {
    AckSample {
        now: Time::ZERO,
        acked: 1,
        lost: 0,
        rtt: None,
        srtt: RTT,
        min_rtt: RTT,
        rate: None,
        prior_delivered: 0,
        sent_at: Time::ZERO,
        in_flight_at_send: 10,
        lost_since_send: 0,
        app_limited: false,
        ack_delayed: false,
        delivered,
        total_lost: 0,
        total_sent: delivered,
        prior_in_flight: 10,
        in_flight: 9,
        first_unacked: delivered,
        next_to_send: delivered,
        next_departure: Time::ZERO,
        state: RecoveryState::Open,
        cwnd_limited: true,
        may_grow: true,
        left_recovery: false,
        ce_marked: 0,
    }
}

/// Fast recovery begins.
pub(crate) fn loss() -> Congestion {
    Congestion { now: Time::ZERO, signal: Signal::Loss, in_flight: 10, next_to_send: 10 }
}

/// A measurement in state `Open`.
pub(crate) fn measured(now: Time, packets: u32, rtt: Option<Span>) -> Measurement {
    Measurement { now, rtt, packets, ..Measurement::default() }
}

/// An ACK of one packet that measured `rtt`.
pub(crate) fn measurement(rtt: Span) -> Measurement {
    Measurement { rtt: Some(rtt), packets: 1, delivered: 1, ..Measurement::default() }
}
