//! Random delay with a given distribution, correlated in time.
//!
//! A Gaussian copula keeps the two apart: a stationary Gauss–Markov process `z(t)` (mean 0,
//! variance 1, correlation e^(−Δt/τ)) says how unusual the delay is just now, and the quantile table
//! says what that means: `delay = Q(Φ(z))`. Whatever τ is, the distribution of the delay at any
//! instant is exactly the table's.
//!
//! `z` is drawn on a grid of τ/16 and interpolated. Interpolation alone would shrink the variance
//! between grid points, so the result is divided by its standard deviation: `z` stays standard
//! normal at every instant. Between grid points the path is smooth (a true Gauss–Markov path is not,
//! at any scale), and its correlation exceeds e^(−Δt/τ) by 0.02 at most. As all grid points are drawn in
//! order, the delay is a function of time and seed that does not depend on the traffic.

use jostle_units::{Span, Stream, Time};

use super::{Delay, Quantiles, Steps};

/// Grid points per correlation time.
const GRID: u64 = 16;

/// Grid points that are drawn one by one after a time without packets. A longer one is jumped over:
/// it is 4096 correlation times, after which nothing is left of what was.
const LONGEST_WALK: u64 = 4096 * GRID;

/// A random delay on top of a base delay.
#[derive(Clone, Debug)]
pub struct Jitter {
    base: Steps,
    quantiles: Quantiles,
    /// Where in the table the last value was.
    hint: usize,
    latent: Option<Latent>,
    may_reorder: bool,
    random: Stream,
}

impl Jitter {
    /// Jitter distributed as `quantiles`, nearly independent of what it was after a time of
    /// `correlation` (0: every packet draws anew), on top of `base`.
    ///
    /// Unless `may_reorder`, the link holds packets back behind their predecessors. That raises
    /// the delays of packets that are closer together than the delay falls.
    pub fn new(
        base: Steps,
        quantiles: Quantiles,
        correlation: Span,
        may_reorder: bool,
        mut random: Stream,
    ) -> Self {
        let latent = (!correlation.is_zero()).then(|| Latent::new(correlation, &mut random));
        Self { base, quantiles, hint: 0, latent, may_reorder, random }
    }
}

impl Delay for Jitter {
    #[inline]
    fn delay(&mut self, now: Time) -> Span {
        let probability = match &mut self.latent {
            None => self.random.uniform(),
            Some(latent) => normal_distribution(latent.at(now, &mut self.random)),
        };
        self.base.delay(now) + self.quantiles.value_near(probability, &mut self.hint)
    }

    fn may_reorder(&self) -> bool {
        self.may_reorder
    }
}

/// Probability of a standard normal value up to `z`. (A table with cubic interpolation is a tenth
/// faster per packet: not worth having.)
fn normal_distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The process `z(t)`, between two grid points.
#[derive(Clone, Copy, Debug)]
struct Latent {
    cell: Span,
    per_ns: f64,
    /// Correlation of neighbouring grid points, and the standard deviation of what is new.
    kept: f64,
    new: f64,
    start: Time,
    end: Time,
    left: f64,
    right: f64,
}

impl Latent {
    fn new(correlation: Span, random: &mut Stream) -> Self {
        let cell = Span::from_ns((correlation.as_ns() / GRID).max(1));
        let kept = libm::exp(-(cell.as_ns() as f64) / correlation.as_ns() as f64);
        let mut latent = Self {
            cell,
            per_ns: 1.0 / cell.as_ns() as f64,
            kept,
            new: libm::sqrt(1.0 - kept * kept),
            start: Time::ZERO,
            end: Time::ZERO + cell,
            left: random.normal(),
            right: 0.0,
        };
        latent.right = latent.after(latent.left, random);
        latent
    }

    /// The grid point after one of value `z`.
    fn after(&self, z: f64, random: &mut Stream) -> f64 {
        self.kept * z + self.new * random.normal()
    }

    #[inline]
    fn at(&mut self, now: Time, random: &mut Stream) -> f64 {
        if now >= self.end {
            self.walk(now, random);
        }
        let share = now.since(self.start).as_ns() as f64 * self.per_ns;
        let variance = 1.0 - 2.0 * share * (1.0 - share) * (1.0 - self.kept);
        (self.left + share * (self.right - self.left)) / libm::sqrt(variance)
    }

    #[cold]
    fn walk(&mut self, now: Time, random: &mut Stream) {
        let cells = now.since(self.start).as_ns() / self.cell.as_ns();
        self.start += self.cell.mul_div(cells, 1);
        self.end = self.start + self.cell;
        for _ in 0..cells.min(LONGEST_WALK) {
            self.left = self.right;
            self.right = self.after(self.left, random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(points: &[(f64, u64)]) -> Quantiles {
        Quantiles::new(points.iter().map(|(p, us)| (*p, Span::from_us(*us))).collect()).unwrap()
    }

    fn jitter(quantiles: Quantiles, correlation: Span, seed: u64) -> Jitter {
        let base = Steps::new(vec![(Time::ZERO, Span::from_ms(20))]).unwrap();
        Jitter::new(base, quantiles, correlation, false, Stream::new(seed, "jitter"))
    }

    /// Values in seconds beyond the base delay, `gap` apart.
    fn values(mut jitter: Jitter, gap: Span, n: u64) -> Vec<f64> {
        (0..n)
            .map(|i| {
                let delay = jitter.delay(Time::ZERO + gap.mul_div(i, 1));
                (delay - Span::from_ms(20)).as_secs_f64()
            })
            .collect()
    }

    #[test]
    fn quantiles_are_those_of_the_table_whatever_the_correlation() {
        let points = [(0.0, 0), (0.25, 1_000), (0.5, 2_000), (0.9, 10_000), (1.0, 100_000)];
        // 20,000 correlation times; the odd gap meets every place between grid points.
        for (correlation, gap, tolerance) in [
            (Span::ZERO, Span::from_us(100), 0.003),
            (Span::from_ms(10), Span::from_us(1_003), 0.012),
            (Span::from_ms(10), Span::from_us(7), 0.1),
        ] {
            let seen = values(jitter(table(&points), correlation, 1), gap, 200_000);
            for (probability, us) in &points[1..4] {
                let below = seen.iter().filter(|s| **s <= *us as f64 * 1e-6).count();
                let share = below as f64 / seen.len() as f64;
                assert!((share - probability).abs() < tolerance, "{share} at {probability}");
            }
        }
    }

    #[test]
    fn the_distribution_is_the_same_at_grid_points_and_between_them() {
        // Many short processes: the share of z ≤ −1 is 0.158655 at any instant.
        for eighths in [0u64, 4, 8, 12, 20, 100] {
            let below = (0..40_000)
                .filter(|seed| {
                    let mut random = Stream::new(*seed, "z");
                    let mut latent = Latent::new(Span::from_ns(16_000), &mut random);
                    latent.at(Time::from_ns(eighths * 125), &mut random) <= -1.0
                })
                .count();
            let share = below as f64 / 40_000.0;
            assert!((share - 0.158_655).abs() < 0.006, "{share} at {eighths}/8 of a cell");
        }
    }

    #[test]
    fn the_correlation_decays_exponentially() {
        // A uniform table gives rank correlations: (6/π)·asin(ρ/2) for a normal pair of ρ.
        let correlation = Span::from_ms(10);
        let seen = values(
            jitter(table(&[(0.0, 0), (1.0, 1_000_000)]), correlation, 3),
            Span::from_us(625) + Span::from_us(1),
            1_600_000,
        );
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        let covariance = |lag: usize| {
            let pairs = seen.iter().zip(&seen[lag..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (seen.len() - lag) as f64
        };
        for lag in [1usize, 4, 16, 32, 80] {
            let rho = libm::exp(-(lag as f64) * 0.0626);
            let expected = 6.0 / std::f64::consts::PI * libm::asin(rho / 2.0);
            let measured = covariance(lag) / covariance(0);
            assert!((measured - expected).abs() < 0.03, "lag {lag}: {measured}, {expected}");
        }
    }

    #[test]
    fn it_is_a_function_of_time_that_does_not_depend_on_the_traffic() {
        let points = [(0.0, 0), (1.0, 1_000_000)];
        let (mut often, mut rarely) = (
            jitter(table(&points), Span::from_ms(3), 5),
            jitter(table(&points), Span::from_ms(3), 5),
        );
        for us in 0..400_000 {
            let now = Time::ZERO + Span::from_us(us);
            let delay = often.delay(now);
            if us % 7_919 == 0 {
                assert_eq!(rarely.delay(now), delay);
            }
        }
        // A very long time without packets costs no time of ours.
        rarely.delay(Time::from_ns(u64::MAX / 2));
    }
}
