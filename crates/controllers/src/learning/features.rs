//! Features of an interval: values with a known range, most of them dimensionless, so that a policy
//! learned on one path applies to others.

use super::monitor_interval::IntervalObservation;

/// A feature of an interval.
pub struct Feature {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Minimum value; smaller values are raised to it.
    pub low: f64,
    /// Maximum value.
    pub high: f64,
    /// Value for the intervals before the first.
    pub rest: f64,
    value: fn(&IntervalObservation) -> f64,
}

impl Feature {
    /// Returns the value, limited to the range.
    pub fn of(&self, observed: &IntervalObservation) -> f64 {
        let value = (self.value)(observed);
        if value.is_nan() { self.rest } else { value.clamp(self.low, self.high) }
    }
}

/// Returns `over / under`, or `rest` if `under` is zero.
fn ratio(over: f64, under: f64, rest: f64) -> f64 {
    if under > 0.0 { over / under } else { rest }
}

/// Returns the window as a rate.
fn window_bps(it: &IntervalObservation) -> f64 {
    ratio(it.cwnd_packets * it.packet_bytes * 8.0, it.srtt_s, 0.0)
}

/// Orca: RTTs up to a quarter above the minimum count as the minimum (`delay_margin_coef`).
const DELAY_MARGIN: f64 = 1.25;

/// All features in the order of listings.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "rtt_gradient",
        about: "slope of the RTT, s/s (Aurora: latency gradient)",
        low: -1.0,
        high: 10.0,
        rest: 0.0,
        value: |it| it.rtt_gradient,
    },
    Feature {
        name: "rtt_ratio",
        about: "mean RTT over the least mean RTT of the connection (Aurora: latency ratio)",
        low: 1.0,
        high: 10_000.0,
        rest: 1.0,
        value: |it| ratio(it.rtt_mean_s, it.least_mean_rtt_s, 1.0),
    },
    Feature {
        name: "send_ratio",
        about: "packets sent over packets delivered; 1 if none was (Aurora: sending ratio)",
        low: 0.0,
        high: 1_000.0,
        rest: 1.0,
        value: |it| ratio(it.sent_packets, it.acked_packets, 1.0),
    },
    Feature {
        name: "loss_ratio",
        about: "packets lost over packets lost or delivered",
        low: 0.0,
        high: 1.0,
        rest: 0.0,
        value: |it| ratio(it.lost_packets, it.lost_packets + it.acked_packets, 0.0),
    },
    Feature {
        name: "ce_ratio",
        about: "packets marked over packets delivered",
        low: 0.0,
        high: 1.0,
        rest: 0.0,
        value: |it| ratio(it.ce_packets, it.acked_packets, 0.0),
    },
    Feature {
        name: "delivery_to_most",
        about: "delivery rate over the highest of the connection (Orca)",
        low: 0.0,
        high: 1.0,
        rest: 0.0,
        value: |it| ratio(it.delivery_bps, it.most_delivery_bps, 0.0),
    },
    Feature {
        name: "pacing_to_most",
        about: "pacing rate, or window over smoothed RTT, over the highest delivery rate (Orca)",
        low: 0.0,
        high: 10.0,
        rest: 0.0,
        value: |it| {
            let bps = if it.pacing_bps > 0.0 { it.pacing_bps } else { window_bps(it) };
            ratio(bps, it.most_delivery_bps, 0.0)
        },
    },
    Feature {
        name: "loss_to_most",
        about: "five times the rate of losses over the highest delivery rate (Orca)",
        low: 0.0,
        high: 10.0,
        rest: 0.0,
        value: |it| {
            let lost_bps = ratio(it.lost_packets * it.packet_bytes * 8.0, it.duration_s, 0.0);
            ratio(5.0 * lost_bps, it.most_delivery_bps, 0.0)
        },
    },
    Feature {
        name: "acked_to_cwnd",
        about: "packets delivered over the window (Orca)",
        low: 0.0,
        high: 100.0,
        rest: 0.0,
        value: |it| ratio(it.acked_packets, it.cwnd_packets, 0.0),
    },
    Feature {
        name: "interval_s",
        about: "length of the interval, s (Orca)",
        low: 0.0,
        high: 10.0,
        rest: 0.0,
        value: |it| it.duration_s,
    },
    Feature {
        name: "least_rtt_to_srtt",
        about: "least RTT over the smoothed one (Orca)",
        low: 0.0,
        high: 1.0,
        rest: 1.0,
        value: |it| ratio(it.least_rtt_s, it.srtt_s, 1.0),
    },
    Feature {
        name: "delay_metric",
        about: "1.25 times the least RTT over the smoothed one, at most 1 (Orca)",
        low: 0.0,
        high: 1.0,
        rest: 1.0,
        value: |it| ratio(DELAY_MARGIN * it.least_rtt_s, it.srtt_s, 1.0),
    },
    Feature {
        name: "in_flight_to_cwnd",
        about: "packets in flight over the window",
        low: 0.0,
        high: 10.0,
        rest: 0.0,
        value: |it| ratio(it.in_flight_packets, it.cwnd_packets, 0.0),
    },
    Feature {
        name: "log_cwnd",
        about: "binary logarithm of the window in packets",
        low: 0.0,
        high: 30.0,
        rest: 0.0,
        value: |it| libm::log2(it.cwnd_packets.max(1.0)),
    },
    Feature {
        name: "log_delivery",
        about: "decimal logarithm of the delivery rate in Mbit/s, from 1 kbit/s",
        low: -3.0,
        high: 7.0,
        rest: -3.0,
        value: |it| libm::log10(it.delivery_bps.max(1e3) / 1e6),
    },
    Feature {
        name: "srtt_s",
        about: "smoothed RTT, s",
        low: 0.0,
        high: 10.0,
        rest: 0.0,
        value: |it| it.srtt_s,
    },
];

/// Returns the feature called `name`.
pub(super) fn feature(name: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|feature| feature.name == name)
}
