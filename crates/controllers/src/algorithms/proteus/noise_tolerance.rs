//! Noise tolerance: which RTT statistics of an interval are significant.
//!
//! There are two tests. A slope within an interval below the residuals of its regression is noise.
//! However, it is significant if mean RTTs rise unusually over six intervals, or if the RTTs of an
//! interval deviate unusually. The values are the release's (`pcc_utility_manager.cpp`).

use crate::pcc::RttTrend;

/// Number of intervals in the history of mean RTTs (`kRttHistoryLen`).
const HISTORY: usize = 6;
/// Weight of the latest value in averages (`kAlpha`).
const WEIGHT: f64 = 0.1;
/// The averages restart at a slope smaller than the minimum so far by this factor (`kBeta`).
const ANEW: f64 = 100.0;
/// Tolerated deviations from the average slope (`kInflationToleranceGainHigh`, `…Low`).
const SLOPE_GAIN: f64 = 2.0;
/// Tolerated deviations from the average deviation.
const DEVIATION_GAIN: f64 = 4.0;
/// Deviation that is always tolerated, in seconds.
const LEAST_DEVIATION_S: f64 = 1e-3;
/// Share of intervals beyond the tolerance at which the average deviation restarts
/// (`kTrendingResetIntervalRatio`).
const TOO_MANY: f64 = 0.95;
/// Smaller values count as zero, in seconds: 10⁻⁶ of the release's microseconds.
const NOTHING_S: f64 = 1e-12;

/// Significance of an interval's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignificantTerms {
    pub(super) gradient: bool,
    pub(super) deviation: bool,
}

/// Average of the slopes of mean RTTs over intervals, in seconds per interval.
#[derive(Clone, Copy, Debug, Default)]
struct Slopes {
    average: f64,
    deviation: f64,
    least: f64,
    last: f64,
}

/// Average of the deviations of RTTs within intervals, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Deviations {
    average: f64,
    deviation: f64,
    /// Recent share of intervals beyond the tolerance.
    beyond: f64,
}

/// Averages of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NoiseTolerance {
    /// Mean RTTs of the latest intervals, in seconds, oldest first.
    means_s: [f64; HISTORY],
    known: usize,
    slopes: Slopes,
    deviations: Deviations,
}

impl NoiseTolerance {
    /// Tests an interval and adds it to the averages.
    pub(super) fn judge(&mut self, trend: &RttTrend) -> SignificantTerms {
        // DetermineToleranceGeneral. The release computes the residuals with a slope per
        // microsecond times packet numbers, which leaves the complete deviation; here they are the
        // residuals of the line.
        let significant = trend.gradient().abs() > trend.error();
        let mut counts = SignificantTerms { gradient: significant, deviation: significant };
        if trend.count() < 2 {
            return counts;
        }
        self.means_s.rotate_left(1);
        self.means_s[HISTORY - 1] = trend.mean_s();
        self.known = (self.known + 1).min(HISTORY);
        if self.known == HISTORY {
            let slope = slope(&self.means_s);
            if self.slopes.stands_out(slope) {
                counts.gradient |= slope > 0.0;
                counts.deviation = true;
            }
            counts.deviation |= self.deviations.stands_out(trend.deviation_s());
        }
        counts
    }
}

/// Returns the slope of equally spaced values: Σ (i − 2.5) yᵢ / 17.5 for six values.
fn slope(values: &[f64; HISTORY]) -> f64 {
    let middle = (HISTORY as f64 - 1.0) / 2.0;
    let (mut weights, mut sum) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let from_middle = i as f64 - middle;
        weights += from_middle * from_middle;
        sum += from_middle * value;
    }
    sum / weights
}

impl Slopes {
    /// `DetermineToleranceInflation`: returns whether `slope` is beyond the tolerance; otherwise
    /// adds it to the average.
    fn stands_out(&mut self, slope: f64) -> bool {
        let size = slope.abs();
        if self.least < NOTHING_S || size < self.least / ANEW {
            *self = Self { average: 0.0, deviation: size, least: size, last: slope };
            return false;
        }
        self.least = self.least.min(size);
        if (slope - self.average).abs() > SLOPE_GAIN * self.deviation {
            return true;
        }
        self.deviation += WEIGHT * ((slope - self.last).abs() - self.deviation);
        self.average += WEIGHT * (slope - self.average);
        self.last = slope;
        false
    }
}

impl Deviations {
    /// `DetermineToleranceDeviation`: the same for the deviation.
    fn stands_out(&mut self, deviation_s: f64) -> bool {
        self.beyond *= 1.0 - WEIGHT;
        if self.average < NOTHING_S {
            (self.average, self.deviation) = (deviation_s, 0.5 * deviation_s);
            return false;
        }
        let borne_s = self.average + DEVIATION_GAIN * self.deviation;
        if deviation_s <= borne_s.max(LEAST_DEVIATION_S) {
            self.deviation += WEIGHT * ((deviation_s - self.average).abs() - self.deviation);
            self.average += WEIGHT * (deviation_s - self.average);
            return false;
        }
        self.beyond += WEIGHT;
        if self.beyond > TOO_MANY {
            *self = Self::default();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e-3;

    /// An interval of RTTs of `mean_ms` ± `half_ms` in turn, which has no slope to speak of.
    fn scattered(mean_ms: f64, half_ms: f64) -> RttTrend {
        let mut trend = RttTrend::default();
        for (i, side) in [1.0, -1.0, -1.0, 1.0].into_iter().enumerate() {
            trend.add(i as f64 * 0.01, (mean_ms + side * half_ms) * MS);
        }
        trend
    }

    const NOISE: SignificantTerms = SignificantTerms { gradient: false, deviation: false };

    #[test]
    fn a_slope_beyond_its_residuals_counts() {
        let mut trend = RttTrend::default();
        for i in 0..10 {
            trend.add(f64::from(i) * 0.01, 0.04 + 0.001 * f64::from(i));
        }
        let counts = NoiseTolerance::default().judge(&trend);
        assert_eq!(counts, SignificantTerms { gradient: true, deviation: true });
        assert_eq!(NoiseTolerance::default().judge(&scattered(40.0, 2.0)), NOISE);
    }

    /// (−2.5·1 − 1.5·2 − 0.5·4 + 0.5·8 + 1.5·16 + 2.5·32) / 17.5 = 100.5/17.5.
    #[test]
    fn the_slope_is_that_of_least_squares() {
        assert!((slope(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) - 100.5 / 17.5).abs() < 1e-12);
    }

    /// Mean RTTs that wander by some 0.1 ms are usual; that they rise by 1 ms an interval is not, although
    /// within each nothing could be seen.
    #[test]
    fn a_slow_rise_over_intervals_counts() {
        let mut tolerance = NoiseTolerance::default();
        for i in 0..40 {
            let wander = if i % 3 == 0 { 0.1 } else { -0.05 };
            assert_eq!(tolerance.judge(&scattered(40.0 + wander, 0.3)), NOISE, "interval {i}");
        }
        let mut counted = Vec::new();
        for i in 1..=6 {
            counted.push(tolerance.judge(&scattered(40.0 + f64::from(i), 0.3)));
        }
        assert!(
            counted.contains(&SignificantTerms { gradient: true, deviation: true }),
            "{counted:?}"
        );
        // A fall as steep says nothing of a gradient to punish, but something happens.
        let mut falling = tolerance;
        for i in 0..6 {
            falling.judge(&scattered(46.0, 0.3 + 0.01 * f64::from(i)));
        }
        let mut counted = Vec::new();
        for i in 1..=4 {
            counted.push(falling.judge(&scattered(46.0 - 3.0 * f64::from(i), 0.3)));
        }
        assert!(
            counted.contains(&SignificantTerms { gradient: false, deviation: true }),
            "{counted:?}"
        );
    }

    /// Slopes 2, then 3: the average goes to 0.1·3, the deviation from 2 to 2 + 0.1·(1 − 2) = 1.9.
    #[test]
    fn usual_slopes_are_averaged() {
        let mut slopes = Slopes::default();
        assert!(!slopes.stands_out(2.0), "the first is as good as any");
        assert!(!slopes.stands_out(3.0));
        assert!((slopes.average - 0.3).abs() < 1e-12 && (slopes.deviation - 1.9).abs() < 1e-12);
        // 0.3 ± 2 · 1.9 is borne.
        assert!(slopes.stands_out(4.2) && slopes.stands_out(-3.6));
        assert!(!slopes.stands_out(4.0));
        // A hundredth of the least one: everything begins anew.
        assert!(!slopes.stands_out(-0.019));
        assert_eq!((slopes.average, slopes.deviation, slopes.least), (0.0, 0.019, 0.019));
    }

    /// Average 2 ms, deviation 1 ms: up to 6 ms are borne; below 1 ms everything is.
    #[test]
    fn deviations_that_are_not_usual_count() {
        let mut deviations = Deviations::default();
        assert!(!deviations.stands_out(2.0 * MS));
        assert!(deviations.stands_out(6.1 * MS) && !deviations.stands_out(5.0 * MS));
        assert!((deviations.average - 2.3 * MS).abs() < 1e-12);
        assert!((deviations.deviation - 1.2 * MS).abs() < 1e-12, "1 + 0.1 · (3 − 1) ms");
        let mut small = Deviations::default();
        small.stands_out(0.1 * MS);
        assert!(!small.stands_out(0.9 * MS));
    }

    /// 1 − 0.9ⁿ is above 0.95 from the 29th on: 0.9²⁸ = 0.0523, 0.9²⁹ = 0.0471.
    #[test]
    fn what_lasts_becomes_usual() {
        let mut deviations = Deviations::default();
        deviations.stands_out(1.0 * MS);
        let counted = (1..).find(|_| {
            deviations.stands_out(50.0 * MS);
            deviations.average == 0.0
        });
        assert_eq!(counted, Some(29));
        assert!(!deviations.stands_out(50.0 * MS));
        assert_eq!(deviations.average, 50.0 * MS);
    }
}
