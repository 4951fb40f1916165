//! The structures of [`events`](crate::events) from the events of the interface
//! `CongestionController`, for a transport that calls the C functions.

use jostle_congestion::{
    AckSample, CongestionEvent, EcnMarks, EstablishedEvent, LostPacket, RawAckSample, SendEvent,
};
use jostle_units::{Rate, Span};

use crate::events::{
    AckEvent, CongestionCall, EstablishedCall, LostCall, MarksCall, RawAckEvent, SendCall,
};
use crate::numbers::{recovery_state_number, signal_number};

fn ns_or_negative(span: Option<Span>) -> i64 {
    span.map_or(-1, |span| span.as_ns() as i64)
}

fn bps(rate: Option<Rate>) -> u64 {
    rate.map_or(0, Rate::as_bps)
}

impl From<&EstablishedEvent> for EstablishedCall {
    fn from(event: &EstablishedEvent) -> Self {
        Self {
            now_ns: event.now.as_ns(),
            rtt_ns: ns_or_negative(event.rtt),
            backlog_packets: event.prospect.send_backlog_packets.unwrap_or(u64::MAX),
            quick_start_bps: bps(event.prospect.quick_start_rate),
            mss_bytes: event.mss_bytes,
            initial_window: event.initial_window,
            receive_window: event.prospect.receive_window,
            padding: 0,
        }
    }
}

impl From<&SendEvent> for SendCall {
    fn from(event: &SendEvent) -> Self {
        Self {
            now_ns: event.now.as_ns(),
            total_sent: event.total_sent,
            next_to_send: event.next_to_send,
            packets: event.packets,
            prior_in_flight: event.prior_in_flight,
            after_idle: event.after_idle.into(),
            padding: 0,
        }
    }
}

impl From<&RawAckSample> for RawAckEvent {
    fn from(sample: &RawAckSample) -> Self {
        Self {
            now_ns: sample.now.as_ns(),
            rtt_ns: ns_or_negative(sample.rtt),
            first_unacked: sample.first_unacked,
            next_to_send: sample.next_to_send,
            pacing_bps: bps(sample.pacing_rate),
            packets: sample.packets,
            delivered: sample.delivered,
            sacked: sample.sacked,
            state: recovery_state_number(sample.state),
            has_timestamps: sample.timestamps.is_some().into(),
            timestamp_ms: sample.timestamps.map_or(0, |it| it.value_ms),
            echo_ms: sample.timestamps.map_or(0, |it| it.echo_ms),
            clock_ms: sample.timestamps.map_or(0, |it| it.now_ms),
        }
    }
}

impl From<&EcnMarks> for MarksCall {
    fn from(marks: &EcnMarks) -> Self {
        Self {
            now_ns: marks.now.as_ns(),
            delivered: marks.delivered,
            marked: marks.marked,
            first_unacked: marks.first_unacked,
            next_to_send: marks.next_to_send,
        }
    }
}

impl From<&LostPacket> for LostCall {
    fn from(lost: &LostPacket) -> Self {
        Self {
            now_ns: lost.now.as_ns(),
            number: lost.number,
            delivered: lost.delivered,
            in_flight_at_send: lost.in_flight_at_send,
            lost_since_send: lost.lost_since_send,
            app_limited: lost.app_limited.into(),
            padding: 0,
        }
    }
}

impl From<&CongestionEvent> for CongestionCall {
    fn from(event: &CongestionEvent) -> Self {
        Self {
            now_ns: event.now.as_ns(),
            next_to_send: event.next_to_send,
            in_flight: event.in_flight,
            signal: signal_number(event.signal),
        }
    }
}

impl From<&AckSample> for AckEvent {
    fn from(ack: &AckSample) -> Self {
        Self {
            now_ns: ack.now.as_ns(),
            rtt_ns: ns_or_negative(ack.rtt),
            srtt_ns: ack.srtt.as_ns(),
            min_rtt_ns: ack.min_rtt.as_ns(),
            rate_interval_ns: ack.rate.map_or(0, |rate| rate.interval.as_ns()),
            prior_delivered: ack.prior_delivered,
            sent_at_ns: ack.sent_at.as_ns(),
            delivered: ack.delivered,
            total_lost: ack.total_lost,
            total_sent: ack.total_sent,
            first_unacked: ack.first_unacked,
            next_to_send: ack.next_to_send,
            next_departure_ns: ack.next_departure.as_ns(),
            acked: ack.acked,
            lost: ack.lost,
            rate_delivered: ack.rate.map_or(0, |rate| rate.delivered),
            in_flight_at_send: ack.in_flight_at_send,
            lost_since_send: ack.lost_since_send,
            prior_in_flight: ack.prior_in_flight,
            in_flight: ack.in_flight,
            ce_marked: ack.ce_marked,
            state: recovery_state_number(ack.state),
            app_limited: ack.app_limited.into(),
            ack_delayed: ack.ack_delayed.into(),
            cwnd_limited: ack.cwnd_limited.into(),
            pacing_limited: ack.pacing_limited.into(),
            can_increase_cwnd: ack.can_increase_cwnd.into(),
            recovery_ended: ack.recovery_ended.into(),
            padding: [0; 6],
        }
    }
}
