//! Sent and delivered packets per time bin.

use jostle_units::{Span, Time};

/// Number of bins in the measured window (`SEARCH_BINS`).
pub(super) const WINDOW_BINS: u64 = 10;

/// Maximum number of bins in an RTT (`EXTRA_BINS`): SEARCH works until the RTT has grown fivefold.
const LOOK_BACK_BINS: u64 = 15;

const STORED_BINS: usize = (WINDOW_BINS + 1 + LOOK_BACK_BINS) as usize;

/// Number of bins that ended since the last ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinAdvance {
    /// No bin ended.
    None,
    /// At least one bin ended.
    Some,
    /// More bins than the caller accepts: nothing was recorded.
    TooMany,
}

/// Running totals of packets sent and delivered, at the end of each bin.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    bin: Span,
    initial_rtt: Span,
    end: Time,
    /// The last bin that ended, counted from the first ACK.
    last: u64,
    sent: [u64; STORED_BINS],
    delivered: [u64; STORED_BINS],
}

impl Bins {
    /// Creates bins for a window of `window_s` seconds, with the packets delivered and sent before
    /// the first bin.
    pub(super) fn new(
        now: Time,
        initial_rtt: Span,
        window_s: f64,
        delivered: u64,
        sent: u64,
    ) -> Self {
        // In whole microseconds like the authors' code, at least one.
        let bin = Span::from_us((window_s * 1e6) as u64 / WINDOW_BINS).max(Span::from_us(1));
        let mut bins = Self {
            bin,
            initial_rtt,
            end: now + bin,
            last: 0,
            sent: [0; STORED_BINS],
            delivered: [0; STORED_BINS],
        };
        bins.record(delivered, sent);
        bins
    }

    fn record(&mut self, delivered: u64, sent: u64) {
        let at = (self.last % STORED_BINS as u64) as usize;
        (self.delivered[at], self.sent[at]) = (delivered, sent);
    }

    /// Ends the bins before `now`, unless they are more than `most`.
    pub(super) fn advance(
        &mut self,
        now: Time,
        delivered: u64,
        sent: u64,
        most: u64,
    ) -> BinAdvance {
        if now < self.end {
            return BinAdvance::None;
        }
        let passed = now.since(self.end).as_ns() / self.bin.as_ns() + 1;
        if passed > most {
            return BinAdvance::TooMany;
        }
        let before = (self.last % STORED_BINS as u64) as usize;
        let (old_delivered, old_sent) = (self.delivered[before], self.sent[before]);
        // Nothing was acknowledged during all bins except the last.
        for _ in 1..passed {
            self.last += 1;
            self.record(old_delivered, old_sent);
        }
        self.last += 1;
        self.record(delivered, sent);
        self.end += self.bin.mul_div(passed, 1);
        BinAdvance::Some
    }

    /// Returns the packets delivered during the last `bins`, at most as many as are stored.
    pub(super) fn delivered(&self, bins: u64) -> Option<u64> {
        let from = self.last.checked_sub(bins.min(STORED_BINS as u64 - 1))?;
        Some(self.total(&self.delivered, self.last) - self.total(&self.delivered, from))
    }

    /// Returns the packets sent during a window that ended `rtt` ago.
    pub(super) fn sent_before(&self, rtt: Span) -> Option<f64> {
        self.before(&self.sent, rtt)
    }

    /// Returns the packets delivered during a window that ended `rtt` ago.
    pub(super) fn delivered_before(&self, rtt: Span) -> Option<f64> {
        self.before(&self.delivered, rtt)
    }

    /// Returns `ceil(initial RTT / bin)`, as in version 4.0 of the authors' code.
    pub(super) fn spanning_the_initial_rtt(&self) -> u64 {
        self.initial_rtt.as_ns().div_ceil(self.bin.as_ns())
    }

    /// Returns `2 * initial RTT / bin`, rounded down as in version 3.1 of the authors' code.
    pub(super) fn spanning_twice_the_initial_rtt(&self) -> u64 {
        2 * self.initial_rtt.as_ns() / self.bin.as_ns()
    }

    fn total(&self, totals: &[u64; STORED_BINS], bin: u64) -> u64 {
        totals[(bin % STORED_BINS as u64) as usize]
    }

    /// Returns the increase of `totals` during a window that ended `rtt` ago. The end of the window
    /// is between the ends of two bins and is interpolated, where the older bin has the weight of
    /// the fraction. (Draft 09 gives this weight to the younger bin, which the authors' code and
    /// other implementers consider a mistake.)
    fn before(&self, totals: &[u64; STORED_BINS], rtt: Span) -> Option<f64> {
        let back = rtt.as_ns() / self.bin.as_ns();
        let fraction = (rtt.as_ns() % self.bin.as_ns()) as f64 / self.bin.as_ns() as f64;
        let to = self.last.checked_sub(back)?;
        // The interpolation needs one bin before the window.
        if back >= LOOK_BACK_BINS || to <= WINDOW_BINS {
            return None;
        }
        let increase =
            |to: u64| (self.total(totals, to) - self.total(totals, to - WINDOW_BINS)) as f64;
        Some(increase(to - 1) * fraction + increase(to) * (1.0 - fraction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIN: Span = Span::from_ms(35);

    /// Bins of 35 ms, in each of which so much is sent, and as much delivered as in the one before.
    fn bins(per_bin: impl Fn(u64) -> u64, count: u64) -> Bins {
        let mut bins = Bins::new(Time::ZERO, Span::from_ms(100), 0.35, 0, per_bin(0));
        let mut sent = per_bin(0);
        for i in 1..=count {
            let delivered = sent;
            sent += per_bin(i);
            let now = Time::ZERO + BIN.mul_div(i, 1);
            assert_eq!(bins.advance(now, delivered, sent, 1), BinAdvance::Some);
        }
        bins
    }

    #[test]
    fn the_initial_rtt_is_three_bins_or_a_little_less() {
        let bins = bins(|_| 1, 0);
        assert_eq!(bins.bin, BIN);
        assert_eq!(bins.spanning_the_initial_rtt(), 3);
        assert_eq!(bins.spanning_twice_the_initial_rtt(), 5);
    }

    /// With n² packets sent by the end of bin n, a window that ended x bins ago has
    /// (n − x)² − (n − x − 10)² = 20 (n − x) − 100: linear, so that interpolation is exact.
    #[test]
    fn a_time_between_two_bins_is_interpolated_towards_the_past() {
        let bins = bins(|i| if i == 0 { 0 } else { 2 * i - 1 }, 20);
        for ms in [0, 35, 70, 84, 100, 140] {
            let x = f64::from(ms) / 35.0;
            let found = bins.sent_before(Span::from_ms(ms as u64)).unwrap();
            assert!((found - (20.0 * (20.0 - x) - 100.0)).abs() < 1e-9, "{found} at {ms} ms");
        }
        // 20 − x − 1 − 10 < 0, and more than the look-back.
        assert_eq!(bins.sent_before(Span::from_ms(350)), None);
        assert_eq!(bins.sent_before(Span::from_ms(35 * 15)), None);
        // One bin behind what was sent.
        assert_eq!(bins.delivered(10), Some(19 * 19 - 9 * 9));
    }

    #[test]
    fn bins_without_an_ack_repeat_the_last_total() {
        let mut bins = bins(|_| 10, 12);
        let before = bins.total(&bins.sent, 12);
        let late = bins.end + BIN.mul_div(3, 1);
        assert_eq!(bins.clone().advance(late, 500, 600, 3), BinAdvance::TooMany);
        assert_eq!(bins.advance(late, 500, 600, 4), BinAdvance::Some);
        assert_eq!(bins.last, 16);
        assert_eq!(bins.total(&bins.sent, 15), before);
        assert_eq!(bins.total(&bins.sent, 16), 600);
        assert_eq!(bins.advance(late, 500, 600, 4), BinAdvance::None);
    }
}
