//! Bins of time in which all competing flows had about the same throughput. The convergence time is
//! computed from them, so that it does not depend on the sampling interval.

use std::ops::Range;

use jostle_units::{Span, Time};

/// Length of a bin.
pub(crate) const BIN: Span = Span::from_secs(1);
/// Throughputs are about the same if they are within this fraction of the mean.
const TOLERANCE: f64 = 0.25;

/// Bins in which the competing flows had about the same throughput.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FairBins {
    bin_s: f64,
    /// Bins with consecutive numbers. Bin `n` begins at `n` bin lengths.
    ranges: Vec<Range<u64>>,
}

impl FairBins {
    pub(crate) fn new(bin_s: f64) -> Self {
        Self { bin_s, ranges: Vec::new() }
    }

    /// Adds bin `number`, which is after all others, if the bytes that arrived in it are fair.
    pub(crate) fn push(&mut self, number: u64, bytes: impl Iterator<Item = f64> + Clone) {
        if !are_fair(bytes) {
            return;
        }
        match self.ranges.last_mut() {
            Some(range) if range.end == number => range.end += 1,
            _ => self.ranges.push(number..number + 1),
        }
    }

    /// Selects the bins whose midpoint is in `from_s .. to_s`.
    pub(crate) fn between(&self, from_s: f64, to_s: f64) -> Self {
        let selected = numbers_between(self.bin_s, from_s, to_s);
        let clipped =
            |range: &Range<u64>| range.start.max(selected.start)..range.end.min(selected.end);
        let ranges = self.ranges.iter().map(clipped).filter(|range| !range.is_empty()).collect();
        Self { bin_s: self.bin_s, ranges }
    }

    /// Returns the start of the first bins that last for `hold_s`.
    pub(crate) fn first_that_last(&self, hold_s: f64) -> Option<f64> {
        let needed = ((hold_s / self.bin_s).round() as u64).max(1);
        let first = self.ranges.iter().find(|range| range.end - range.start >= needed)?;
        Some(first.start as f64 * self.bin_s)
    }
}

/// Returns the numbers of the bins whose midpoint is in `from_s .. to_s`.
pub(crate) fn numbers_between(bin_s: f64, from_s: f64, to_s: f64) -> Range<u64> {
    let first = |time_s: f64| (time_s / bin_s - 0.5).ceil().max(0.0) as u64;
    first(from_s)..first(to_s)
}

fn are_fair(bytes: impl Iterator<Item = f64> + Clone) -> bool {
    let (sum, count) = bytes.clone().fold((0.0, 0.0), |(sum, n), bytes| (sum + bytes, n + 1.0));
    let mean = sum / count;
    mean > 0.0 && bytes.clone().all(|bytes| (bytes - mean).abs() <= TOLERANCE * mean)
}

/// Finds the fair bins during a run.
#[derive(Clone, Debug)]
pub(crate) struct FairBinMeter {
    number: u64,
    end: Time,
    /// Positions of the competing flows' meters, and the bytes that they counted in earlier bins.
    counted_bytes: Vec<(usize, u64)>,
    bins: FairBins,
}

impl FairBinMeter {
    /// Creates a meter for the competing flows whose data the meters at `positions` count.
    pub(crate) fn new(positions: impl Iterator<Item = usize>) -> Self {
        Self {
            number: 0,
            end: Time::ZERO + BIN,
            counted_bytes: positions.map(|at| (at, 0)).collect(),
            bins: FairBins::new(BIN.as_secs_f64()),
        }
    }

    /// Returns whether a bin ends until `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.end
    }

    /// Closes the bins that end until `now`. No data arrived in the second of them or later.
    /// `received_bytes` returns what a meter has counted.
    #[cold]
    pub(crate) fn advance(&mut self, now: Time, received_bytes: impl Fn(usize) -> u64) {
        let received =
            |(at, counted_bytes): &(usize, u64)| (received_bytes(*at) - counted_bytes) as f64;
        self.bins.push(self.number, self.counted_bytes.iter().map(received));
        for (at, counted_bytes) in &mut self.counted_bytes {
            *counted_bytes = received_bytes(*at);
        }
        self.number = now.as_ns() / BIN.as_ns();
        self.end = Time::from_ns((self.number + 1).saturating_mul(BIN.as_ns()));
    }

    pub(crate) fn bins(&self) -> &FairBins {
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bin_s: f64, shares: &[[f64; 2]], (from_s, to_s): (f64, f64)) -> Option<f64> {
        let mut bins = FairBins::new(bin_s);
        for (number, bytes) in (0..).zip(shares) {
            bins.push(number, bytes.iter().copied());
        }
        bins.between(from_s, to_s).first_that_last(5.0)
    }

    #[test]
    fn flows_have_converged_when_they_stay_together_for_five_seconds() {
        let apart = [9.0, 1.0];
        let close = [5.0, 4.0];
        let shares = [apart, close, close, apart, close, close, close, close, close, apart];
        assert_eq!(first(1.0, &shares, (0.0, 1e9)), Some(4.0));
        assert_eq!(first(1.0, &shares, (4.4, 8.6)), Some(4.0));
        assert_eq!(first(1.0, &shares, (5.0, 1e9)), None);
        assert_eq!(first(1.0, &shares, (0.0, 8.0)), None);
        assert_eq!(first(1.0, &[[0.0; 2]; 10], (0.0, 1e9)), None);
        assert_eq!(first(1.0, &[close], (0.0, 1e9)), None);
        // 25 % off the mean is still fair.
        assert_eq!(first(1.0, &[[5.0, 3.0]; 6], (0.0, 1e9)), Some(0.0));
        assert_eq!(first(1.0, &[[5.0, 2.9]; 6], (0.0, 1e9)), None);
        assert_eq!(first(2.0, &[apart, close, close, close], (0.0, 1e9)), Some(2.0));
    }

    #[test]
    fn a_bin_is_inside_with_its_midpoint() {
        assert_eq!(numbers_between(1.0, 0.5, 2.5), 0..2);
        assert_eq!(numbers_between(1.0, 0.6, 2.6), 1..3);
        assert_eq!(numbers_between(0.5, 0.0, 1.0), 0..2);
    }
}
