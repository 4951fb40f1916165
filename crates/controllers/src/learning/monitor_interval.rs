//! Monitor intervals: counters and the resulting statistics.

use alloc::vec::Vec;

use jostle_units::{Span, Time};

use crate::pcc::RttTrend;
use jostle_congestion::{AckSample, StateObserver};

/// Defines [`IntervalObservation`] with the names of its values.
macro_rules! observed {
    ($($(#[$about:meta])* $name:ident),+ $(,)?) => {
        /// Statistics of a monitor interval.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct IntervalObservation {
            $($(#[$about])* pub $name: f64),+
        }

        impl IntervalObservation {
            /// Names of the values, in order.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// Appends every value, in the order of their names.
            pub fn append_to(&self, values: &mut Vec<f64>) {
                values.extend([$(self.$name),+]);
            }

            /// Reports each value to `observer`, in the order of their names.
            pub fn report_to(&self, observer: &mut dyn StateObserver) {
                $(observer.record_value(stringify!($name), self.$name);)+
            }
        }

        impl StateObserver for ObservationBuilder {
            fn record_value(&mut self, name: &'static str, value: f64) {
                match name {
                    $(stringify!($name) => self.0.$name = value,)+
                    _ => {}
                }
            }
        }
    };
}

/// Rebuilds an observation from the values of [`IntervalObservation::report_to`]. Ignores other
/// names.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservationBuilder(pub IntervalObservation);

observed! {
    /// Length of the interval.
    duration_s,
    /// Packets sent, retransmissions included.
    sent_packets,
    /// Packets delivered.
    acked_packets,
    /// Packets marked lost.
    lost_packets,
    /// Packets reported as marked with congestion experienced.
    ce_packets,
    /// Number of RTT samples.
    rtt_samples,
    /// Mean RTT; the smoothed RTT without samples.
    rtt_mean_s,
    /// Minimum RTT; the smoothed RTT without samples.
    rtt_min_s,
    /// Slope of the RTT over the time at which the packets were sent, in seconds per second.
    rtt_gradient,
    /// Smoothed RTT at the end.
    srtt_s,
    /// Minimum RTT of the connection, as known to the transport.
    least_rtt_s,
    /// Minimum of the mean RTTs of all intervals of the connection, including this one.
    least_mean_rtt_s,
    /// Packets in flight at the end.
    in_flight_packets,
    /// Congestion window at the end.
    cwnd_packets,
    /// Pacing rate required by the controller; 0 if none.
    pacing_bps,
    /// Payload of a packet.
    packet_bytes,
    /// Rate at which payload was sent.
    sending_bps,
    /// Rate at which payload was delivered.
    delivery_bps,
    /// Maximum of the delivery rates of all intervals of the connection, including this one.
    most_delivery_bps,
}

/// Counters of the current interval and the state kept between intervals.
#[derive(Clone, Debug)]
pub(super) struct IntervalCounters {
    start: Time,
    packet_bytes: u32,
    sent: u64,
    acked: u64,
    lost: u64,
    marked: u64,
    rtts: u64,
    rtt_sum_s: f64,
    rtt_min_s: f64,
    trend: RttTrend,
    in_flight: u32,
    srtt_s: f64,
    least_rtt_s: f64,
    least_mean_rtt_s: f64,
    most_delivery_bps: f64,
}

impl IntervalCounters {
    /// Creates the first interval of a connection.
    pub fn first(start: Time, rtt: Span, packet_bytes: u32) -> Self {
        let rtt_s = rtt.as_secs_f64();
        Self {
            start,
            packet_bytes,
            sent: 0,
            acked: 0,
            lost: 0,
            marked: 0,
            rtts: 0,
            rtt_sum_s: 0.0,
            rtt_min_s: f64::INFINITY,
            trend: RttTrend::default(),
            in_flight: 0,
            srtt_s: rtt_s,
            least_rtt_s: rtt_s,
            least_mean_rtt_s: f64::INFINITY,
            most_delivery_bps: 0.0,
        }
    }

    pub fn on_send(&mut self, packets: u32, prior_in_flight: u32) {
        self.sent += u64::from(packets);
        self.in_flight = prior_in_flight.saturating_add(packets);
    }

    pub fn on_packet_lost(&mut self) {
        self.lost += 1;
    }

    pub fn on_ack(&mut self, ack: &AckSample) {
        self.acked += u64::from(ack.acked);
        self.marked += u64::from(ack.ce_marked);
        self.in_flight = ack.in_flight;
        if !ack.srtt.is_zero() {
            self.srtt_s = ack.srtt.as_secs_f64();
            self.least_rtt_s = ack.min_rtt.as_secs_f64();
        }
        if let Some(rtt) = ack.rtt {
            let rtt_s = rtt.as_secs_f64();
            self.rtts += 1;
            self.rtt_sum_s += rtt_s;
            self.rtt_min_s = self.rtt_min_s.min(rtt_s);
            // Packets acknowledged in this interval may have been sent before it.
            let since_s = ack.sent_at.as_ns() as f64 / 1e9 - self.start.as_ns() as f64 / 1e9;
            self.trend.add(since_s, rtt_s);
        }
    }

    pub fn resize(&mut self, packet_bytes: u32) {
        self.packet_bytes = packet_bytes;
    }

    /// Returns the statistics of an interval that ends at `end`, with the window and pacing rate at
    /// that time.
    pub fn observed(&self, end: Time, cwnd: u32, pacing_bps: f64) -> IntervalObservation {
        let duration_s = end.since(self.start).as_secs_f64();
        let bps = |packets: u64| {
            let bits = packets as f64 * 8.0 * f64::from(self.packet_bytes);
            if duration_s > 0.0 { bits / duration_s } else { 0.0 }
        };
        let measured = self.rtts > 0;
        let rtt_mean_s = if measured { self.rtt_sum_s / self.rtts as f64 } else { self.srtt_s };
        let delivery_bps = bps(self.acked);
        IntervalObservation {
            duration_s,
            sent_packets: self.sent as f64,
            acked_packets: self.acked as f64,
            lost_packets: self.lost as f64,
            ce_packets: self.marked as f64,
            rtt_samples: self.rtts as f64,
            rtt_mean_s,
            rtt_min_s: if measured { self.rtt_min_s } else { self.srtt_s },
            rtt_gradient: self.trend.gradient(),
            srtt_s: self.srtt_s,
            least_rtt_s: self.least_rtt_s,
            least_mean_rtt_s: self.least_mean_rtt_s.min(rtt_mean_s),
            in_flight_packets: f64::from(self.in_flight),
            cwnd_packets: f64::from(cwnd),
            pacing_bps,
            packet_bytes: f64::from(self.packet_bytes),
            sending_bps: bps(self.sent),
            delivery_bps,
            most_delivery_bps: self.most_delivery_bps.max(delivery_bps),
        }
    }

    /// Starts the next interval after one ended at `end` with the statistics `observed`.
    pub fn begin_next(&mut self, end: Time, observed: &IntervalObservation) {
        *self = Self {
            in_flight: self.in_flight,
            srtt_s: self.srtt_s,
            least_rtt_s: self.least_rtt_s,
            least_mean_rtt_s: observed.least_mean_rtt_s,
            most_delivery_bps: observed.most_delivery_bps,
            ..Self::first(end, Span::ZERO, self.packet_bytes)
        };
    }
}
