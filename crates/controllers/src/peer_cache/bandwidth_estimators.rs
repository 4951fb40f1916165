//! Bandwidth estimators that a layer can use.

use jostle_registry::ParameterValues;
use jostle_units::{Rate, Span, Time};

use super::gap_compensated_bandwidth::GapCompensatedBandwidth;
use crate::estimators::WindowedMax;
use jostle_congestion::AckSample;

/// Names of the estimators in parameters.
pub(super) const CHOICES: &[&str] = &["gcbe", "westwood", "bbr"];

/// An estimator of the bandwidth available for payload.
#[derive(Clone, Copy, Debug)]
pub(super) enum Estimator {
    Gcbe(GapCompensatedBandwidth),
    Westwood(Westwood),
    DeliveryRate(DeliveryRate),
}

impl Estimator {
    pub fn new(values: &ParameterValues, mss_bytes: u32) -> Self {
        match values.choice("estimator") {
            "westwood" => Self::Westwood(Westwood { mss_bytes, ..Westwood::default() }),
            "bbr" => Self::DeliveryRate(DeliveryRate { mss_bytes, ..DeliveryRate::default() }),
            _ => Self::Gcbe(GapCompensatedBandwidth::new(mss_bytes)),
        }
    }

    /// Changes the payload of a packet.
    pub fn on_mss_change(&mut self, mss_bytes: u32) {
        match self {
            Self::Gcbe(it) => it.on_mss_change(mss_bytes),
            Self::Westwood(it) => {
                (it.mss_bytes, it.window_start, it.packets) = (mss_bytes, None, 0);
            }
            Self::DeliveryRate(it) => it.mss_bytes = mss_bytes,
        }
    }

    #[inline]
    pub fn on_ack(&mut self, ack: &AckSample) {
        match self {
            Self::Gcbe(it) => it.on_ack(ack),
            Self::Westwood(it) => it.on_ack(ack),
            Self::DeliveryRate(it) => it.on_ack(ack),
        }
    }

    pub fn bandwidth(&self) -> Option<Rate> {
        let bandwidth = match self {
            Self::Gcbe(it) => return it.bandwidth(),
            Self::Westwood(it) => it.smoothed,
            Self::DeliveryRate(it) => it.bandwidth(),
        };
        (bandwidth > Rate::ZERO).then_some(bandwidth)
    }
}

/// Westwood+'s filter (`tcp_westwood.c::westwood_update_window`, `tcp_westwood.c::westwood_filter`
/// in Linux 6.1): bytes acknowledged per RTT, at least 50 ms, filtered by two low-pass filters of
/// 7/8.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Westwood {
    mss_bytes: u32,
    window_start: Option<Time>,
    packets: u64,
    first: Option<Rate>,
    smoothed: Rate,
}

impl Westwood {
    /// `TCP_WESTWOOD_RTT_MIN`.
    const WINDOW_MIN: Span = Span::from_ms(50);

    fn on_ack(&mut self, ack: &AckSample) {
        self.packets += u64::from(ack.acked);
        let start = *self.window_start.get_or_insert(ack.sent_at);
        let elapsed = ack.now.since(start);
        if elapsed <= ack.rtt.unwrap_or(ack.srtt).max(Self::WINDOW_MIN) {
            return;
        }
        let sample = Rate::of(self.packets * u64::from(self.mss_bytes), elapsed);
        let filter = |old: Rate, new: Rate| Rate::from_bps((7 * old.as_bps() + new.as_bps()) / 8);
        (self.first, self.smoothed) = match self.first {
            None => (Some(sample), sample),
            Some(first) => {
                let first = filter(first, sample);
                (Some(first), filter(self.smoothed, first))
            }
        };
        (self.window_start, self.packets) = (Some(ack.now), 0);
    }
}

/// BBR's filter: the maximum delivery rate of the last ten round trips. Application-limited samples
/// count only if they exceed the estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryRate {
    mss_bytes: u32,
    maximum: WindowedMax,
    rounds: u64,
    round_end: u64,
}

impl DeliveryRate {
    const ROUNDS: u64 = 10;

    fn on_ack(&mut self, ack: &AckSample) {
        let Some(sample) = ack.rate else { return };
        if ack.prior_delivered >= self.round_end {
            self.rounds += 1;
            self.round_end = ack.delivered;
        }
        let bytes = u64::from(sample.delivered) * u64::from(self.mss_bytes);
        let bps = Rate::of(bytes, sample.interval).as_bps();
        if !ack.app_limited || bps >= self.maximum.get() {
            self.maximum.update(Self::ROUNDS, self.rounds, bps);
        }
    }

    fn bandwidth(&self) -> Rate {
        Rate::from_bps(self.maximum.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;
    use jostle_congestion::RateSample;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// 100 packets in 100 ms are 11.584 Mbit/s; then twice as many move it by 1/8 of 1/8.
    #[test]
    fn westwood_filters_twice() {
        let mut westwood = Westwood { mss_bytes: 1448, ..Westwood::default() };
        let rtt = Some(Span::from_ms(99));
        for (ms, acked) in [(50, 50), (100, 50), (150, 100), (200, 100)] {
            let sample = AckSample { now: at(ms), sent_at: at(0), acked, rtt, ..ack(1) };
            westwood.on_ack(&sample);
        }
        let first: f64 = 11_584_000.0;
        let expected = first * (7.0 + (7.0 + 2.0) / 8.0) / 8.0;
        let found = westwood.smoothed.as_bps() as f64;
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} instead of {expected}");
    }

    #[test]
    fn bbr_takes_the_maximum_of_ten_rounds() {
        let mut bbr = DeliveryRate { mss_bytes: 1448, ..DeliveryRate::default() };
        let mut sample = |delivered: u64, packets, app_limited| {
            let rate = Some(RateSample { delivered: packets, interval: Span::from_ms(100) });
            bbr.on_ack(&AckSample {
                rate,
                prior_delivered: delivered.saturating_sub(10),
                app_limited,
                ..ack(delivered)
            });
            bbr.bandwidth().as_bps() / 115_840
        };
        assert_eq!(sample(10, 100, false), 100);
        assert_eq!(sample(20, 50, true), 100, "limited by the application");
        assert_eq!(sample(30, 120, true), 120);
        for round in 4..14 {
            sample(10 * round, 60, false);
        }
        assert_eq!(sample(140, 60, false), 60);
    }
}
