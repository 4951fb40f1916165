//! Randomised controlled trials: a higher and a lower rate in pairs, each in random order.

/// A rate in bit/s and the utility it had.
pub(crate) type Tried = (f64, f64);

/// Trials around a rate, of `PAIRS` pairs at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trials<const PAIRS: usize> {
    pairs: usize,
    /// In each pair, whether the lower rate comes first, a bit each.
    orders: u64,
    begun: usize,
    /// Results of the pairs, of which the first `known` trials have theirs.
    pub(crate) results: [[Tried; 2]; PAIRS],
    known: usize,
}

impl<const PAIRS: usize> Trials<PAIRS> {
    /// None has begun. The lowest bits of `orders` are random.
    pub(crate) fn new(pairs: usize, orders: u64) -> Self {
        debug_assert!(pairs <= PAIRS, "{pairs} of {PAIRS} pairs");
        Self { pairs, orders, begun: 0, results: [[(0.0, 0.0); 2]; PAIRS], known: 0 }
    }

    /// Begins the next trial: what the rate is multiplied with in it, 1 ± `epsilon`; none if all have
    /// begun.
    pub(crate) fn begin(&mut self, epsilon: f64) -> Option<f64> {
        if self.begun == 2 * self.pairs {
            return None;
        }
        let higher = (self.orders >> (self.begun / 2) & 1 == 0) == self.begun.is_multiple_of(2);
        self.begun += 1;
        Some(if higher { 1.0 + epsilon } else { 1.0 - epsilon })
    }

    /// The oldest trial without a result has this one. Returns all once the last one is known.
    pub(crate) fn take(&mut self, tried: Tried) -> Option<Self> {
        debug_assert!(self.known < self.begun, "a result of no trial");
        self.results[self.known / 2][self.known % 2] = tried;
        self.known += 1;
        (self.known == 2 * self.pairs).then_some(*self)
    }

    /// Results of as many pairs as are tried.
    pub(crate) fn pairs(&self) -> &[[Tried; 2]] {
        &self.results[..self.pairs]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_says_which_rate_of_a_pair_comes_first() {
        let mut trials = Trials::<3>::new(3, 0b010);
        let factors: Vec<_> = std::iter::from_fn(|| trials.begin(0.25)).collect();
        assert_eq!(factors, [1.25, 0.75, 0.75, 1.25, 1.25, 0.75]);
    }

    #[test]
    fn results_are_told_when_the_last_one_is_known() {
        let mut trials = Trials::<3>::new(2, 0);
        while trials.begin(0.5).is_some() {}
        for rate in [1.0, 2.0, 3.0] {
            assert!(trials.take((rate, 0.0)).is_none());
        }
        let all = trials.take((4.0, 0.0)).unwrap();
        assert_eq!(all.pairs(), [[(1.0, 0.0), (2.0, 0.0)], [(3.0, 0.0), (4.0, 0.0)]]);
    }
}
