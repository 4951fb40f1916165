//! Means over seeds, and verdicts on them.

use std::f64::consts::FRAC_2_PI;
use std::fmt;

/// Probability that an interval contains the mean.
const COVERAGE: f64 = 0.95;

/// Result of a comparison of a mean with a bound, as in jostle's suites and studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The mean is in the accepted range, and so is its interval.
    Holds,
    /// The mean is outside, and so is its interval.
    Fails,
    /// The interval allows both: take more seeds.
    Open,
}

/// Mean of the values of several seeds, with its 95 % interval of Student's t.
///
/// ```
/// use jostle_testkit::{Estimate, Verdict};
///
/// let rates_mbps = Estimate::of([9.1, 9.6, 10.4, 8.8]);
/// assert_eq!(rates_mbps.at_least(8.0), Verdict::Holds, "{rates_mbps}");
/// assert_eq!(rates_mbps.at_least(9.0), Verdict::Open, "{rates_mbps}");
/// assert_eq!(rates_mbps.to_string(), "9.475 (8.362 to 10.59, n = 4)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Lower end of the interval. A single value has no interval: both ends are the value.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of values.
    pub n: usize,
}

impl Estimate {
    /// Estimates the mean.
    ///
    /// # Panics
    /// If there are no values, or one is not finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        assert!(
            !values.is_empty() && values.iter().all(|value| value.is_finite()),
            "a mean needs finite values: {values:?}"
        );
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half = match values.len() - 1 {
            0 => 0.0,
            freedom => t_quantile(freedom) * (squares / (n - 1.0) / n).sqrt(),
        };
        Self { mean, low: mean - half, high: mean + half, n: values.len() }
    }

    /// Judges whether the mean is `bound` or more.
    #[must_use]
    pub fn at_least(&self, bound: f64) -> Verdict {
        self.judge(bound, |value| value >= bound)
    }

    /// Judges whether the mean is `bound` or less.
    #[must_use]
    pub fn at_most(&self, bound: f64) -> Verdict {
        self.judge(bound, |value| value <= bound)
    }

    /// Judges whether the mean differs from `target` by at most `margin`.
    #[must_use]
    pub fn about(&self, target: f64, margin: f64) -> Verdict {
        self.judge(target, |value| (value - target).abs() <= margin)
    }

    /// Applies the rule of `jostle.stats.expectation`.
    fn judge(&self, target: f64, is_accepted: impl Fn(f64) -> bool) -> Verdict {
        let holds = is_accepted(self.mean);
        let is_around = self.low < target && target < self.high;
        let is_certain = is_accepted(self.low) == holds
            && is_accepted(self.high) == holds
            // An interval that contains the range leaves a miss open, although its ends are outside.
            && (holds || !is_around);
        match (is_certain, holds) {
            (false, _) => Verdict::Open,
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::Fails,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [mean, low, high] = [self.mean, self.low, self.high].map(four_digits);
        write!(text, "{mean} ({low} to {high}, n = {})", self.n)
    }
}

/// Formats a number with four significant digits.
fn four_digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0.0 } else { libm::log10(value.abs()).floor() };
    let decimals = (3.0 - magnitude).clamp(0.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

/// Returns the half-width of an interval with [`COVERAGE`] in standard errors, by bisection.
fn t_quantile(freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_coverage(high, freedom) < COVERAGE {
        high *= 2.0;
    }
    while high - low > 1e-12 * high {
        let middle = f64::midpoint(low, high);
        if t_coverage(middle, freedom) < COVERAGE {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns the probability of a value from `-t` to `t` (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn t_coverage(t: f64, freedom: usize) -> f64 {
    let angle = libm::atan(t / (freedom as f64).sqrt());
    let square = libm::cos(angle).powi(2);
    let is_odd = freedom % 2 == 1;
    // The product of (k − 1) / k, with k in steps of 2, times the powers of the cosine.
    let mut term = if is_odd { libm::cos(angle) } else { 1.0 };
    let (mut sum, mut k) = (0.0, if is_odd { 3 } else { 2 });
    while k <= freedom {
        sum += term;
        term *= square * (k - 1) as f64 / k as f64;
        k += 2;
    }
    if !is_odd {
        return libm::sin(angle) * sum;
    }
    FRAC_2_PI * (angle + libm::sin(angle) * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (freedom, expected) in [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (3, 3.182_446_305),
            (4, 2.776_445_105),
            (9, 2.262_157_163),
            (30, 2.042_272_456),
            (1_000, 1.962_339_081),
        ] {
            let found = t_quantile(freedom);
            assert!((found - expected).abs() < 1e-8, "{freedom}: {found}");
        }
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        // As `jostle.stats.estimate` returns them.
        let (low, high) = (8.362091352834632, 10.58790864716537);
        let found = Estimate::of([9.1, 9.6, 10.4, 8.8]);
        assert!((found.low - low).abs() < 1e-9 && (found.high - high).abs() < 1e-9, "{found:?}");
        assert_eq!(found.at_least(8.3), Verdict::Holds);
        assert_eq!(found.at_least(9.0), Verdict::Open);
        assert_eq!(found.at_least(10.0), Verdict::Open);
        assert_eq!(found.at_least(11.0), Verdict::Fails);
        assert_eq!(found.at_most(11.0), Verdict::Holds);
        assert_eq!(found.at_most(8.0), Verdict::Fails);
        assert_eq!(found.about(9.5, 1.2), Verdict::Holds);
        assert_eq!(found.about(9.5, 0.5), Verdict::Open);
        // The range is within the interval, and the mean is not within the range.
        assert_eq!(found.about(9.6, 0.1), Verdict::Open);
        assert_eq!(found.about(20.0, 1.0), Verdict::Fails);
    }

    #[test]
    fn a_single_value_decides() {
        let found = Estimate::of([9.0]);
        assert_eq!((found.low, found.high), (9.0, 9.0));
        assert_eq!(found.at_least(9.0), Verdict::Holds);
        assert_eq!(found.at_least(9.1), Verdict::Fails);
        assert_eq!(Estimate::of([0.0]).to_string(), "0.000 (0.000 to 0.000, n = 1)");
    }

    #[test]
    #[should_panic(expected = "a mean needs finite values: [NaN]")]
    fn values_are_finite() {
        let _ = Estimate::of([f64::NAN]);
    }
}
