//! Randomised controlled trials: a higher and a lower rate in pairs, each in random order.

/// A rate in bit/s and its utility.
pub(crate) type RateUtility = (f64, f64);

/// Trials around a rate, with at most `PAIRS` pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateTrials<const PAIRS: usize> {
    pairs: usize,
    /// One bit per pair: whether the lower rate comes first.
    orders: u64,
    begun: usize,
    /// Results of the pairs. The first `known` trials have results.
    pub(crate) results: [[RateUtility; 2]; PAIRS],
    known: usize,
}

impl<const PAIRS: usize> RateTrials<PAIRS> {
    /// Creates trials without results. The lowest bits of `orders` are random.
    pub(crate) fn new(pairs: usize, orders: u64) -> Self {
        debug_assert!(pairs <= PAIRS, "{pairs} of {PAIRS} pairs");
        Self { pairs, orders, begun: 0, results: [[(0.0, 0.0); 2]; PAIRS], known: 0 }
    }

    /// Starts the next trial. Returns the factor of the rate, 1 ± `epsilon`, or `None` if all
    /// trials have started.
    pub(crate) fn begin(&mut self, epsilon: f64) -> Option<f64> {
        if self.begun == 2 * self.pairs {
            return None;
        }
        let higher = (self.orders >> (self.begun / 2) & 1 == 0) == self.begun.is_multiple_of(2);
        self.begun += 1;
        Some(if higher { 1.0 + epsilon } else { 1.0 - epsilon })
    }

    /// Sets the result of the oldest trial without one. Returns all trials when the last result is
    /// known.
    pub(crate) fn record_result(&mut self, tried: RateUtility) -> Option<Self> {
        debug_assert!(self.known < self.begun, "a result of no trial");
        self.results[self.known / 2][self.known % 2] = tried;
        self.known += 1;
        (self.known == 2 * self.pairs).then_some(*self)
    }

    /// Returns the results of the pairs in use.
    pub(crate) fn pairs(&self) -> &[[RateUtility; 2]] {
        &self.results[..self.pairs]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_says_which_rate_of_a_pair_comes_first() {
        let mut trials = RateTrials::<3>::new(3, 0b010);
        let factors: Vec<_> = core::iter::from_fn(|| trials.begin(0.25)).collect();
        assert_eq!(factors, [1.25, 0.75, 0.75, 1.25, 1.25, 0.75]);
    }

    #[test]
    fn results_are_told_when_the_last_one_is_known() {
        let mut trials = RateTrials::<3>::new(2, 0);
        while trials.begin(0.5).is_some() {}
        for rate in [1.0, 2.0, 3.0] {
            assert!(trials.record_result((rate, 0.0)).is_none());
        }
        let all = trials.record_result((4.0, 0.0)).unwrap();
        assert_eq!(all.pairs(), [[(1.0, 0.0), (2.0, 0.0)], [(3.0, 0.0), (4.0, 0.0)]]);
    }
}
