//! Constructors and ACKs for tests of controllers.

pub(crate) mod bbr;
pub(crate) mod pcc;

use alloc::collections::BTreeMap;

use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, Span, Time};

use crate::registry_rows::{ControllerEntry, ControllerInputs};
use crate::slow_start::Standard;
use jostle_congestion::{
    AckSample, CongestionEvent, CongestionSignal, RawAckSample, RecoveryState,
};

pub(crate) const RTT: Span = Span::from_ms(40);

/// Returns the inputs of a controller of `row` with the parameters `given`.
pub(crate) fn controller_inputs(
    row: &ControllerEntry,
    seed: u64,
    given: &[(&str, ParameterValue)],
) -> ControllerInputs {
    let given: BTreeMap<_, _> = given.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    ControllerInputs {
        values: row.entry.resolve(&given).unwrap(),
        slow_start: Box::new(Standard),
        random: RandomStream::new(seed, row.entry.name),
    }
}

/// Returns an ACK of one packet with default values.
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
        pacing_limited: false,
        can_increase_cwnd: true,
        recovery_ended: false,
        ce_marked: 0,
    }
}

/// Returns the signal that starts fast recovery.
pub(crate) fn loss() -> CongestionEvent {
    CongestionEvent {
        now: Time::ZERO,
        signal: CongestionSignal::Loss,
        in_flight: 10,
        next_to_send: 10,
    }
}

/// Returns a measurement in state `Open`.
pub(crate) fn measured(now: Time, packets: u32, rtt: Option<Span>) -> RawAckSample {
    RawAckSample { now, rtt, packets, ..RawAckSample::default() }
}

/// Returns an ACK of one packet with RTT `rtt`.
pub(crate) fn measurement(rtt: Span) -> RawAckSample {
    RawAckSample { rtt: Some(rtt), packets: 1, delivered: 1, ..RawAckSample::default() }
}
