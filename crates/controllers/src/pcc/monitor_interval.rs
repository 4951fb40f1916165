//! Monitor intervals: packets sent at one rate and their delivery results.

use jostle_units::{Span, Time};

/// Regression of the RTT on the time of sending, in one pass (Welford's updates).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttTrend {
    samples: f64,
    mean_at: f64,
    mean_rtt: f64,
    sum_at_at: f64,
    sum_at_rtt: f64,
    sum_rtt_rtt: f64,
}

impl RttTrend {
    /// Adds an RTT of `rtt_s` for a packet sent `at_s` into the interval.
    pub(crate) fn add(&mut self, at_s: f64, rtt_s: f64) {
        self.samples += 1.0;
        let (from_at, from_rtt) = (at_s - self.mean_at, rtt_s - self.mean_rtt);
        self.mean_at += from_at / self.samples;
        self.mean_rtt += from_rtt / self.samples;
        self.sum_at_at += from_at * (at_s - self.mean_at);
        self.sum_at_rtt += from_at * (rtt_s - self.mean_rtt);
        self.sum_rtt_rtt += from_rtt * (rtt_s - self.mean_rtt);
    }

    /// Returns the number of samples.
    pub(crate) fn count(&self) -> u32 {
        self.samples as u32
    }

    /// Mean of the RTTs, in seconds; 0 without any.
    pub(crate) fn mean_s(&self) -> f64 {
        self.mean_rtt
    }

    /// Standard deviation of the RTTs, in seconds; 0 without any.
    pub(crate) fn deviation_s(&self) -> f64 {
        if self.samples > 0.0 { libm::sqrt(self.sum_rtt_rtt / self.samples) } else { 0.0 }
    }

    /// dRTT/dT, in seconds per second; 0 without two samples at different times.
    pub(crate) fn gradient(&self) -> f64 {
        if self.sum_at_at > 0.0 { self.sum_at_rtt / self.sum_at_at } else { 0.0 }
    }

    /// Relative residual of the regression: root mean square of the residuals divided by the mean
    /// RTT (`rtt_gradient_error` of PCC's QUIC release).
    pub(crate) fn error(&self) -> f64 {
        if self.mean_rtt <= 0.0 {
            return 0.0;
        }
        let residual = (self.sum_rtt_rtt - self.gradient() * self.sum_at_rtt).max(0.0);
        libm::sqrt(residual / self.samples) / self.mean_rtt
    }

    /// Returns the gradient, or 0 if it is noise: below `tolerance`, or below `noise_gain` times
    /// the relative residual.
    pub(crate) fn filtered(&self, tolerance: f64, noise_gain: f64) -> f64 {
        let gradient = self.gradient();
        let floor = tolerance.max(noise_gain * self.error());
        if gradient.abs() < floor { 0.0 } else { gradient }
    }
}

/// A monitor interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MonitorInterval {
    /// Sending rate, in bit/s of payload.
    pub(crate) rate_bps: f64,
    pub(crate) start: Time,
    /// Time at which sending ended; `None` while it continues.
    pub(crate) end: Option<Time>,
    /// Number of packets of the connection sent before the interval.
    pub(crate) first: u64,
    /// Number of packets of the connection sent until its end.
    pub(crate) last: u64,
    /// Delivered and lost packets of the interval. ACKs that cover two intervals are divided
    /// between them, which gives fractions.
    pub(crate) delivered: f64,
    pub(crate) lost: f64,
    pub(crate) trend: RttTrend,
    /// Number of RTTs of the interval's packets, including those excluded from `trend`, if the
    /// controller counts them.
    pub(crate) heard: u32,
    /// Whether the interval was extended, which happens at most once.
    pub(crate) extended: bool,
}

impl MonitorInterval {
    pub(crate) fn new(start: Time, first: u64, rate_bps: f64) -> Self {
        Self {
            rate_bps,
            start,
            end: None,
            first,
            last: u64::MAX,
            delivered: 0.0,
            lost: 0.0,
            trend: RttTrend::default(),
            heard: 0,
            extended: false,
        }
    }

    pub(crate) fn close(&mut self, now: Time, total_sent: u64) {
        self.end = Some(now);
        self.last = total_sent;
    }

    /// Returns whether a packet sent at `at` belongs to the interval.
    pub(crate) fn covers(&self, at: Time) -> bool {
        self.start <= at && self.end.is_none_or(|end| at < end)
    }

    /// Packets `from` to `until` of the connection were delivered or lost: adds the interval's part
    /// of `acked` and `lost`.
    pub(crate) fn account(&mut self, from: u64, until: u64, acked: u32, lost: u64) {
        let part = until.min(self.last).saturating_sub(from.max(self.first));
        if part > 0 {
            let share = part as f64 / (until - from) as f64;
            self.delivered += f64::from(acked) * share;
            self.lost += lost as f64 * share;
        }
    }

    /// Returns the share of lost packets.
    pub(crate) fn loss(&self) -> f64 {
        let known = self.delivered + self.lost;
        if known > 0.0 { self.lost / known } else { 0.0 }
    }

    /// Returns the actual sending rate in bit/s: the planned rate, unless the application or cwnd
    /// limited it. Packets are sent in bursts, so that one missing burst is tolerated, but no more
    /// than was sent: otherwise the result of an application-limited interval would rise with the
    /// planned rate, and the rate with the result.
    pub(crate) fn sent_bps(&self, packet_bits: f64) -> f64 {
        let duration_s = self.end.unwrap_or(self.start).since(self.start).as_secs_f64();
        if duration_s <= 0.0 {
            return self.rate_bps;
        }
        let burst = (self.rate_bps * BURST.as_secs_f64() / packet_bits).max(2.0);
        let sent = self.last.saturating_sub(self.first) as f64;
        ((sent + burst.min(sent)) * packet_bits / duration_s).min(self.rate_bps)
    }
}

/// Length of a burst in Linux: one millisecond of the pacing rate (`sk_pacing_shift`).
const BURST: Span = Span::from_ms(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_slope_of_the_rtt() {
        for slope in [-0.2, 0.0, 0.05] {
            let mut trend = RttTrend::default();
            for i in 0..100 {
                let at = f64::from(i) * 1e-3;
                trend.add(at, 0.6 + slope * at);
            }
            assert!((trend.gradient() - slope).abs() < 1e-9);
            assert!(trend.error() < 1e-6);
            assert!((trend.filtered(0.03, 1.0) - slope).abs() < 1e-9);
        }
    }

    #[test]
    fn small_gradients_and_scattered_ones_are_noise() {
        let mut small = RttTrend::default();
        let mut scattered = RttTrend::default();
        for i in 0..100 {
            let at = f64::from(i) * 1e-3;
            small.add(at, 0.04 + 0.02 * at);
            scattered.add(at, 0.04 + 0.05 * at + if i % 2 == 0 { 0.01 } else { -0.01 });
        }
        assert_eq!(small.filtered(0.03, 1.0), 0.0);
        assert!((small.filtered(0.01, 1.0) - 0.02).abs() < 1e-9);
        assert!(scattered.gradient() > 0.03 && (scattered.error() - 0.2355).abs() < 0.01);
        assert_eq!(scattered.filtered(0.03, 1.0), 0.0);
        assert!(scattered.filtered(0.03, 0.0) > 0.0);
    }

    /// 40, 42, 44 and 46 ms: variance (9 + 1 + 1 + 9)/4 = 5 ms².
    #[test]
    fn the_deviation_is_that_of_the_rtts() {
        let mut trend = RttTrend::default();
        assert_eq!((trend.count(), trend.mean_s(), trend.deviation_s()), (0, 0.0, 0.0));
        for i in 0..4 {
            trend.add(f64::from(i), 0.04 + 0.002 * f64::from(i));
        }
        assert_eq!(trend.count(), 4);
        assert!((trend.mean_s() - 0.043).abs() < 1e-12);
        assert!((trend.deviation_s() - 5e-6_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_sample_has_no_slope() {
        let mut trend = RttTrend::default();
        assert_eq!(trend.filtered(0.0, 1.0), 0.0);
        trend.add(0.0, 0.04);
        assert_eq!(trend.filtered(0.0, 1.0), 0.0);
    }

    #[test]
    fn an_interval_counts_what_was_sent_in_it() {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut interval = MonitorInterval::new(at(100), 1000, 8e6);
        assert!(!interval.covers(at(99)) && interval.covers(at(100)) && interval.covers(at(500)));
        interval.close(at(200), 1050);
        assert!(interval.covers(at(199)) && !interval.covers(at(200)));
        (interval.delivered, interval.lost) = (45.0, 5.0);
        assert_eq!(interval.loss(), 0.1);
        // 50 packets of 8000 bits in 100 ms are 4 Mbit/s, half of what was asked for.
        assert!((interval.sent_bps(8000.0) - 4.16e6).abs() < 1.0);
        interval.last = 1098;
        assert_eq!(interval.sent_bps(8000.0), 8e6);
        // A higher plan does not change what four packets of an application are.
        interval.last = 1004;
        for rate_bps in [8e6, 8e9, 1e12] {
            interval.rate_bps = rate_bps;
            assert!(interval.sent_bps(8000.0) <= 640_000.0);
        }
    }

    #[test]
    fn an_ack_across_the_border_is_shared_out() {
        let mut interval = MonitorInterval::new(Time::ZERO, 1000, 8e6);
        interval.close(Time::from_ns(1), 1050);
        interval.account(990, 1010, 16, 4);
        assert_eq!((interval.delivered, interval.lost), (8.0, 2.0));
        interval.account(1010, 1045, 35, 0);
        interval.account(1045, 1055, 10, 0);
        interval.account(1055, 1060, 0, 5);
        assert_eq!((interval.delivered, interval.lost), (48.0, 2.0));
    }
}
