//! Minimum, maximum and latest RTT of a connection.

use jostle_units::Span;

/// RTTs in microseconds, plus one so that they are never zero.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttRange {
    /// Minimum and maximum; `None` before a sample.
    range_us: Option<(u64, u64)>,
    latest_us: u64,
}

impl RttRange {
    pub fn on_sample(&mut self, rtt: Span) {
        let rtt_us = rtt.as_us().saturating_add(1);
        let (least, greatest) = self.range_us.unwrap_or((rtt_us, rtt_us));
        self.range_us = Some((least.min(rtt_us), greatest.max(rtt_us)));
        self.latest_us = rtt_us;
    }

    /// Returns the minimum RTT; 0 before a sample.
    pub fn least_us(&self) -> u64 {
        self.range_us.map_or(0, |range| range.0)
    }

    /// Returns the maximum RTT; 0 before a sample.
    pub fn greatest_us(&self) -> u64 {
        self.range_us.map_or(0, |range| range.1)
    }

    /// Returns the latest RTT; 0 before a sample.
    pub fn latest_us(&self) -> u64 {
        self.latest_us
    }

    /// Returns the share of the latest RTT that is queueing delay.
    pub fn queueing_share(&self) -> f64 {
        (self.latest_us - self.least_us()) as f64 / self.latest_us.max(1) as f64
    }

    /// Returns the position of the latest RTT between the minimum, 0, and the maximum, 1.
    pub fn position(&self) -> f64 {
        let range_us = self.greatest_us() - self.least_us();
        (self.latest_us - self.least_us()) as f64 / range_us.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_positions_follow_the_samples() {
        let mut rtts = RttRange::default();
        assert_eq!((rtts.queueing_share(), rtts.position()), (0.0, 0.0));
        for us in [99_999, 299_999, 199_999] {
            rtts.on_sample(Span::from_us(us));
        }
        assert_eq!((rtts.least_us(), rtts.greatest_us()), (100_000, 300_000));
        assert_eq!((rtts.queueing_share(), rtts.position()), (0.5, 0.5));
    }
}
