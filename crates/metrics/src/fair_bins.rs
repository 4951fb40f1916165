//! Bins of time in which all competing flows had about the same throughput. The convergence time is
//! computed from them, so that it does not depend on the sampling interval.

use std::ops::Range;

use jostle_run_spec::PhaseSpec;
use jostle_units::{Span, Time};

/// Length of a bin.
pub(crate) const BIN: Span = Span::from_secs(1);
/// Throughputs are about the same if they are within this fraction of the mean.
const TOLERANCE: f64 = 0.25;
/// Rounding error of the position of a time, in bins.
const ROUNDING: f64 = 1e-6;

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

    /// Selects the bins that end after `from_s`.
    pub(crate) fn since(&self, from_s: f64) -> Self {
        let first = (from_s / self.bin_s) as u64;
        let clipped = |range: &Range<u64>| range.start.max(first)..range.end;
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

/// Returns the numbers of the bins that are completely in `from_s .. to_s`.
pub(crate) fn numbers_between(bin_s: f64, from_s: f64, to_s: f64) -> Range<u64> {
    let first = (from_s / bin_s - ROUNDING).ceil().max(0.0) as u64;
    let end = (to_s / bin_s + ROUNDING).floor().max(0.0) as u64;
    first..end
}

fn are_fair(bytes: impl Iterator<Item = f64> + Clone) -> bool {
    let (sum, count) = bytes.clone().fold((0.0, 0.0), |(sum, n), bytes| (sum + bytes, n + 1.0));
    let mean = sum / count;
    mean > 0.0 && bytes.clone().all(|bytes| (bytes - mean).abs() <= TOLERANCE * mean)
}

/// Finds the fair bins of each phase during a run.
#[derive(Clone, Debug)]
pub(crate) struct FairBinMeter {
    number: u64,
    end: Time,
    flows: Vec<CompetingFlow>,
    phases: Vec<PhaseBins>,
}

#[derive(Clone, Debug)]
struct CompetingFlow {
    /// Position of the flow.
    at: usize,
    /// Position of the meter that counts its data.
    meter: usize,
    /// Bytes counted in earlier bins.
    counted_bytes: u64,
    /// Bytes of the bin that ends.
    bytes: f64,
    /// Time from the start to the stop or completion; unknown times are [`Time::NEVER`].
    life: Range<Time>,
}

#[derive(Clone, Debug)]
struct PhaseBins {
    from: Time,
    to: Time,
    /// Bins of the phase.
    numbers: Range<u64>,
    fair: FairBins,
}

impl FairBinMeter {
    /// Creates a meter for competing flows: the position of each flow, and the position of the meter
    /// that counts its data.
    pub(crate) fn new(flows: impl Iterator<Item = (usize, usize)>, phases: &[PhaseSpec]) -> Self {
        let bin_s = BIN.as_secs_f64();
        let competing = |(at, meter)| CompetingFlow {
            at,
            meter,
            counted_bytes: 0,
            bytes: 0.0,
            life: Time::NEVER..Time::NEVER,
        };
        let phase_bins = |phase: &PhaseSpec| PhaseBins {
            from: Time::from_ns(phase.from_ns),
            to: Time::from_ns(phase.to_ns),
            numbers: phase.from_ns.div_ceil(BIN.as_ns())..phase.to_ns / BIN.as_ns(),
            fair: FairBins::new(bin_s),
        };
        Self {
            number: 0,
            end: Time::ZERO + BIN,
            flows: flows.map(competing).collect(),
            phases: phases.iter().map(phase_bins).collect(),
        }
    }

    /// Returns whether a bin ends until `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.end
    }

    /// Closes the bins that end until `now`. No data arrived in the second of them or later.
    /// `received_bytes` returns what a meter has counted, and `life` the time from the start of a
    /// flow to its stop or completion.
    #[cold]
    pub(crate) fn advance(
        &mut self,
        now: Time,
        received_bytes: impl Fn(usize) -> u64,
        life: impl Fn(usize) -> Range<Time>,
    ) {
        for flow in &mut self.flows {
            let counted_bytes = received_bytes(flow.meter);
            flow.bytes = (counted_bytes - flow.counted_bytes) as f64;
            flow.counted_bytes = counted_bytes;
            flow.life = life(flow.at);
        }
        for phase in self.phases.iter_mut().filter(|phase| phase.numbers.contains(&self.number)) {
            // A flow that is not open yet may wait for another one. See `of_phase`.
            let counts = |flow: &&CompetingFlow| {
                flow.life.start < self.end.min(phase.to) && flow.life.end > phase.from
            };
            phase.fair.push(self.number, self.flows.iter().filter(counts).map(|flow| flow.bytes));
        }
        self.number = now.as_ns() / BIN.as_ns();
        self.end = Time::from_ns((self.number + 1).saturating_mul(BIN.as_ns()));
    }

    /// Returns the fair bins of the phase at a position. `last_start` is the start of the last flow
    /// that counts in the phase: earlier bins are unfair, because it receives nothing in them.
    pub(crate) fn of_phase(&self, at: usize, last_start: Time) -> FairBins {
        self.phases[at].fair.since(last_start.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bin_s: f64, shares: &[[f64; 2]], (from_s, to_s): (f64, f64)) -> Option<f64> {
        let mut bins = FairBins::new(bin_s);
        let inside = numbers_between(bin_s, from_s, to_s);
        for (number, bytes) in (0..).zip(shares).filter(|(number, _)| inside.contains(number)) {
            bins.push(number, bytes.iter().copied());
        }
        bins.first_that_last(5.0)
    }

    #[test]
    fn flows_have_converged_when_they_stay_together_for_five_seconds() {
        let apart = [9.0, 1.0];
        let close = [5.0, 4.0];
        let shares = [apart, close, close, apart, close, close, close, close, close, apart];
        assert_eq!(first(1.0, &shares, (0.0, 1e9)), Some(4.0));
        assert_eq!(first(1.0, &shares, (3.4, 9.6)), Some(4.0));
        assert_eq!(first(1.0, &shares, (4.4, 9.6)), None);
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
    fn a_bin_is_completely_inside() {
        assert_eq!(numbers_between(1.0, 0.0, 2.0), 0..2);
        assert_eq!(numbers_between(1.0, 0.5, 2.5), 1..2);
        assert_eq!(numbers_between(0.1, 0.3, 0.6), 3..6);
        assert!(numbers_between(1.0, 0.5, 0.6).is_empty());
    }

    #[test]
    fn bins_before_the_last_start_do_not_count() {
        let mut bins = FairBins::new(1.0);
        (2..9).for_each(|number| bins.push(number, [4.0, 5.0].into_iter()));
        assert_eq!(bins.since(0.0).first_that_last(5.0), Some(2.0));
        assert_eq!(bins.since(3.7).first_that_last(5.0), Some(3.0));
        assert_eq!(bins.since(5.0).first_that_last(5.0), None);
    }
}
