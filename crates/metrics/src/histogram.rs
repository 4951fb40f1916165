//! Histogram with logarithmic buckets, which stores a distribution in little memory.

/// Buckets per doubling of the value, as a power of two.
const SUB_BITS: u32 = 6;
const SUB_BUCKETS: u64 = 1 << SUB_BITS;
/// Number of adjacent buckets that are allocated together.
const CHUNK: usize = 16;

/// Weights of integer values in log-linear buckets, 64 per octave.
///
/// Values below 128 have one bucket each. The bucket of a larger value is at most 1⁄64 of the value
/// wide. An interpolated quantile is therefore less than 1⁄64 (1.6 %) off, and usually much less,
/// because the error comes only from the uneven distribution of samples within a bucket. Memory is
/// used only for the range between the smallest and the largest value.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Bucket of `weights[0]`.
    first: usize,
    weights: Vec<u64>,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { first: 0, weights: Vec::new(), min: u64::MAX, max: 0 }
    }
}

/// Returns the bucket of `value`.
#[inline]
const fn bucket(value: u64) -> usize {
    let shift = (value | SUB_BUCKETS).ilog2() - SUB_BITS;
    // The leading bit of `value >> shift` increases the index by one octave.
    ((shift as u64) << SUB_BITS) as usize + (value >> shift) as usize
}

/// Returns the smallest value of a bucket and the number of values in it.
const fn bounds(bucket: usize) -> (u64, u64) {
    let octave = bucket as u64 >> SUB_BITS;
    if octave == 0 {
        return (bucket as u64, 1);
    }
    let mantissa = (bucket as u64 & (SUB_BUCKETS - 1)) | SUB_BUCKETS;
    (mantissa << (octave - 1), 1 << (octave - 1))
}

impl Histogram {
    /// Adds `weight` to `value`. A weight of zero has no effect.
    #[inline]
    pub fn record(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        // The conditions are rarely true, and a comparison is cheaper than a write.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
        let bucket = bucket(value);
        match self.weights.get_mut(bucket.wrapping_sub(self.first)) {
            Some(of) => *of += weight,
            None => self.add_beyond(bucket, weight),
        }
    }

    /// Allocates a bucket and adds `weight` to it. Does the complete work, so that `record` needs
    /// no registers after the call.
    #[cold]
    #[inline(never)]
    fn add_beyond(&mut self, bucket: usize, weight: u64) {
        self.reach(bucket);
        self.weights[bucket - self.first] += weight;
    }

    /// Allocates a bucket if it does not exist.
    fn reach(&mut self, bucket: usize) {
        if bucket.wrapping_sub(self.first) >= self.weights.len() {
            self.allocate_buckets(bucket);
        }
    }

    /// Allocates a bucket and a quarter of the present number of buckets on the same side. A
    /// histogram that grows step by step is therefore moved only a few times.
    #[cold]
    fn allocate_buckets(&mut self, bucket: usize) {
        let from = bucket / CHUNK * CHUNK;
        let spare = self.weights.len() / 4 / CHUNK * CHUNK;
        if self.weights.is_empty() {
            self.first = from;
        } else if from < self.first {
            let from = from.saturating_sub(spare);
            self.weights.splice(0..0, std::iter::repeat_n(0, self.first - from));
            self.first = from;
        }
        let needed = from + CHUNK - self.first;
        if needed > self.weights.len() {
            let needed = needed + spare;
            self.weights.reserve_exact(needed - self.weights.len());
            self.weights.resize(needed, 0);
        }
    }

    /// Adds all weights of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.weights.is_empty() {
            self.clone_from(other);
            return;
        }
        // Allocate all buckets in one step.
        if !other.weights.is_empty() {
            self.reach(other.first);
            self.reach(other.first + other.weights.len() - 1);
            let ours = &mut self.weights[other.first - self.first..];
            for (our, weight) in ours.iter_mut().zip(&other.weights) {
                *our += weight;
            }
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the smallest value, or `None` if the histogram is empty.
    pub fn min(&self) -> Option<u64> {
        (self.min <= self.max).then_some(self.min)
    }

    /// Returns the largest value, or `None` if the histogram is empty.
    pub fn max(&self) -> Option<u64> {
        (self.min <= self.max).then_some(self.max)
    }

    /// Returns the quantile `p`, or `None` if the histogram is empty.
    ///
    /// A weight counts as that many samples. The result is interpolated linearly between the two
    /// samples next to rank p·(n − 1), like the default of NumPy.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let n: u64 = self.weights.iter().sum();
        if n == 0 {
            return None;
        }
        let rank = p * (n - 1) as f64;
        let below = (rank as u64).min(n - 1);
        let mut samples = Samples { histogram: self, index: 0, before: 0 };
        let low = samples.at(below);
        let high = samples.at((below + 1).min(n - 1));
        let value = low + (high - low) * (rank - below as f64);
        Some(value.clamp(self.min as f64, self.max as f64))
    }

    /// Returns the largest value of every non-empty bucket in increasing order, with the total
    /// weight up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0);
        filled.scan(0, |below, (i, weight)| {
            *below += weight;
            let (from, width) = bounds(self.first + i);
            Some(((from + (width - 1)).clamp(self.min, self.max), *below))
        })
    }
}

/// Samples of a histogram in increasing order.
struct Samples<'a> {
    histogram: &'a Histogram,
    /// Index of the bucket that was used last.
    index: usize,
    /// Weight of the buckets before `index`.
    before: u64,
}

impl Samples<'_> {
    /// Returns the sample at `rank`, counted from 0. Samples are assumed to be evenly spread over
    /// their bucket. Ranks must not decrease between calls.
    fn at(&mut self, rank: u64) -> f64 {
        let Histogram { first, weights, max, .. } = self.histogram;
        for &weight in &weights[self.index..] {
            if rank < self.before + weight {
                let (from, width) = bounds(first + self.index);
                if width == 1 {
                    return from as f64;
                }
                let share = ((rank - self.before) as f64 + 0.5) / weight as f64;
                return from as f64 + width as f64 * share;
            }
            self.before += weight;
            self.index += 1;
        }
        *max as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for &value in values {
            histogram.record(value, 1);
        }
        histogram
    }

    /// NumPy's default: linear between the samples next to rank p·(n − 1).
    fn exact_quantile(values: &[u64], p: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = p * (sorted.len() - 1) as f64;
        let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
        sorted[low] as f64 + (sorted[high] as f64 - sorted[low] as f64) * (rank - low as f64)
    }

    #[test]
    fn buckets_tile_the_integers() {
        let mut next = 0;
        for i in 0..3_000 {
            let (from, width) = bounds(i);
            assert_eq!(from, next, "bucket {i}");
            assert_eq!((bucket(from), bucket(from + width - 1)), (i, i));
            assert!(width == 1 || width * SUB_BUCKETS <= from);
            next = from + width;
        }
        assert_eq!(bounds(bucket(u64::MAX)).0, u64::MAX << 57);
    }

    #[test]
    fn nothing_recorded_means_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().min(), None);
        assert_eq!(Histogram::default().max(), None);
        let mut histogram = Histogram::default();
        histogram.record(7, 0);
        assert_eq!(histogram.quantile(0.5), None);
    }

    #[test]
    fn small_values_and_lone_values_are_exact() {
        assert_eq!(of(&[0, 0, 0, 9]).quantile(0.5), Some(0.0));
        assert_eq!(of(&[600_000_123]).quantile(0.95), Some(600_000_123.0));
        assert_eq!(of(&[10, 20]).quantile(0.5), Some(15.0));
    }

    #[test]
    fn weights_add_up_from_bucket_to_bucket() {
        let found: Vec<_> = of(&[5, 5, 9, 1_000, 1_001]).cumulative().collect();
        assert_eq!(found, [(5, 2), (9, 3), (1_001, 5)]);
        assert_eq!(Histogram::default().cumulative().count(), 0);
    }

    #[test]
    fn weights_count_as_samples() {
        let mut weighted = Histogram::default();
        weighted.record(100, 90);
        weighted.record(50, 10);
        assert_eq!(weighted.quantile(0.05), Some(50.0));
        assert_eq!(weighted.quantile(0.5), Some(100.0));
    }

    #[test]
    fn memory_follows_the_range_that_occurs() {
        let steady = of(&[600_000_000, 601_000_000, 605_000_000]);
        assert_eq!(steady.weights.len(), CHUNK);
        // An octave of round-trip times is 64 buckets, and one chunk where it does not fit; and a
        // quarter is spare.
        let octave: Vec<u64> = (40..80).map(|ms| ms * 1_000_000).collect();
        assert!(of(&octave).weights.len() <= (64 + CHUNK) * 5 / 4);
    }

    #[test]
    fn a_range_that_grows_step_by_step_is_moved_a_few_times() {
        for rising in [true, false] {
            let mut histogram = Histogram::default();
            let mut moves = 0;
            for i in 0..2_000 {
                let before = histogram.weights.len();
                histogram.record(bounds(if rising { i } else { 2_000 - i }).0, 1);
                moves += u32::from(histogram.weights.len() != before);
            }
            assert!(moves <= 24, "{moves}, {rising}");
        }
    }

    fn round_trips() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0u64..300, 1_000u64..4_000_000_000], 1..200)
    }

    proptest! {
        #[test]
        fn quantiles_are_as_precise_as_documented(values in round_trips(), p in 0.0f64..=1.0) {
            let exact = exact_quantile(&values, p);
            let found = of(&values).quantile(p).unwrap();
            prop_assert!((found - exact).abs() <= exact / 64.0, "{found} instead of {exact}");
        }

        #[test]
        fn order_and_grouping_do_not_matter(values in round_trips(), cut in 0usize..200) {
            let whole = of(&values);
            let (head, tail) = values.split_at(cut.min(values.len()));
            let mut merged = of(tail);
            merged.merge(&of(head));
            for p in [0.0, 0.05, 0.5, 0.95, 1.0] {
                prop_assert_eq!(merged.quantile(p), whole.quantile(p));
            }
            prop_assert_eq!(merged.min(), values.iter().min().copied());
            prop_assert_eq!(merged.max(), values.iter().max().copied());
        }
    }
}
