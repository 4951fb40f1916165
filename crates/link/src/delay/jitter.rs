//! Random delay with a given distribution and correlation in time.
//!
//! A Gaussian copula separates distribution and correlation. A stationary Gauss–Markov process
//! `z(t)` (mean 0, variance 1, correlation e^(−Δt/τ)) determines the rank of the delay at a time,
//! and the quantile table converts the rank to a delay: `delay = Q(Φ(z))`. For any τ, the delay at
//! any time has exactly the distribution of the table.
//!
//! On a link that keeps packets in order, a packet does not arrive before an earlier packet would
//! have arrived. To keep the delay independent of the traffic, it depends on the latest arrival for
//! all earlier times, whether a packet was sent then or not: max(Q(Φ(z(t))), max over s < t of s +
//! Q(Φ(z(s))) − t).
//!
//! `z` is drawn on a grid of τ/16 and interpolated. Interpolation alone would reduce the variance
//! between grid points, so the result is divided by its standard deviation. `z` is therefore
//! standard normal at any time. Between grid points the path is smooth (a true Gauss–Markov path is
//! not, at any scale), and its correlation exceeds e^(−Δt/τ) by at most 0.02. All grid points are
//! drawn in order, so the delay is a function of time and seed, independent of the traffic.

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{RandomStream, Span, Time};

use super::{Delay, Quantiles, Steps};
use crate::parameters::LONGEST;

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "jitter",
    summary: "random additional delay from a quantile table, correlated in time",
    class: "stochastic",
    based_on: &["steps"],
    source: "a Gaussian copula over a stationary Gauss-Markov process",
    parameters: &[
        Parameter::span("correlation", Span::ZERO, Span::ZERO..=LONGEST)
            .summary("time after which the delay is nearly independent of its earlier value"),
        Parameter::bool("reorder", false).summary(
            "whether packets may overtake each other; if not, a late packet delays later ones, and \
             delays are larger than in the table",
        ),
    ],
};

/// Grid points per correlation time.
const GRID: u64 = 16;

/// Maximum number of grid points that are drawn one by one after a time without packets. A longer
/// time is skipped: after 4096 correlation times nothing depends on the earlier value.
const LONGEST_WALK: u64 = 4096 * GRID;

/// A random delay in addition to a base delay.
#[derive(Clone, Debug)]
pub struct Jitter {
    base: Steps,
    quantiles: Quantiles,
    /// Index of the last value in the table.
    hint: usize,
    latent: Option<GaussianProcess>,
    /// Earliest arrival, without the base delay, if packets stay in order.
    held_until: Time,
    calm: JitterBound,
    may_reorder: bool,
    random: RandomStream,
}

/// Bound that avoids most table lookups for a time without packets: values up to `z` have at most
/// the delay `delay`, and no value has more than `most`.
#[derive(Clone, Copy, Debug)]
struct JitterBound {
    z: f64,
    delay: Span,
    most: Span,
}

impl JitterBound {
    /// Value of `z` that is exceeded 1 % of the time.
    const Z: f64 = 2.326;

    fn of(quantiles: &Quantiles) -> Self {
        let delay = quantiles.value(normal_distribution(Self::Z));
        Self { z: Self::Z, delay, most: quantiles.value(1.0) }
    }

    fn most(self, z: f64) -> Span {
        if z <= self.z { self.delay } else { self.most }
    }
}

impl Jitter {
    /// Creates jitter with the distribution `quantiles` in addition to `base`. Its values are
    /// nearly independent after the time `correlation`. With a correlation of 0 every packet draws
    /// a new value.
    ///
    /// Unless `may_reorder` is set, jitter never reorders packets. If the delay drops faster than
    /// 1 s per s, later packets are held back, and their delays are larger than in the table. This
    /// also applies to delays that no packet had, except with a `correlation` of 0.
    pub fn new(
        base: Steps,
        quantiles: Quantiles,
        correlation: Span,
        may_reorder: bool,
        mut random: RandomStream,
    ) -> Self {
        let latent =
            (!correlation.is_zero()).then(|| GaussianProcess::new(correlation, &mut random));
        let (hint, held_until, calm) = (0, Time::ZERO, JitterBound::of(&quantiles));
        Self { base, quantiles, hint, latent, held_until, calm, may_reorder, random }
    }

    /// Returns the delay above the base delay.
    #[inline]
    fn beyond(&mut self, now: Time) -> Span {
        let Some(latent) = &mut self.latent else {
            return self.quantiles.value_near(self.random.uniform(), &mut self.hint);
        };
        if now >= latent.end {
            let (quantiles, hint, calm) = (&self.quantiles, &mut self.hint, self.calm);
            let mut held_until = self.held_until;
            latent.walk(now, &mut self.random, |at, z| {
                if at + calm.most(z) > held_until.max(now) {
                    let delay = quantiles.value_near(normal_distribution(z), hint);
                    held_until = held_until.max(at + delay);
                }
            });
            self.held_until = held_until;
        }
        let delay = self.quantiles.value_near(normal_distribution(latent.at(now)), &mut self.hint);
        if self.may_reorder { delay } else { delay.max(self.held_until.since(now)) }
    }
}

impl Delay for Jitter {
    #[inline]
    fn delay(&mut self, now: Time) -> Span {
        self.base.delay(now) + self.beyond(now)
    }

    fn may_reorder(&self) -> bool {
        self.may_reorder
    }
}

/// Returns the probability of a standard normal value up to `z`. (A table with cubic interpolation
/// would make a packet only a tenth faster.)
fn normal_distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The process `z(t)` between two grid points.
#[derive(Clone, Copy, Debug)]
struct GaussianProcess {
    cell: Span,
    per_ns: f64,
    /// Correlation of adjacent grid points, and standard deviation of the innovation.
    kept: f64,
    new: f64,
    start: Time,
    end: Time,
    left: f64,
    right: f64,
}

impl GaussianProcess {
    fn new(correlation: Span, random: &mut RandomStream) -> Self {
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

    /// Draws the grid point after one with the value `z`.
    fn after(&self, z: f64, random: &mut RandomStream) -> f64 {
        self.kept * z + self.new * random.normal()
    }

    /// Returns the value at `now`, which must be between the two grid points.
    #[inline]
    fn at(&self, now: Time) -> f64 {
        let share = now.since(self.start).as_ns() as f64 * self.per_ns;
        let variance = 1.0 - 2.0 * share * (1.0 - share) * (1.0 - self.kept);
        (self.left + share * (self.right - self.left)) / libm::sqrt(variance)
    }

    /// Advances to the cell that contains `now`, and calls `pass` with every grid point on the way.
    #[cold]
    fn walk(&mut self, now: Time, random: &mut RandomStream, mut pass: impl FnMut(Time, f64)) {
        let cells = now.since(self.start).as_ns() / self.cell.as_ns();
        self.start += self.cell.mul_div(cells, 1);
        self.end = self.start + self.cell;
        for ahead in (0..cells.min(LONGEST_WALK)).rev() {
            self.left = self.right;
            self.right = self.after(self.left, random);
            pass(self.start - self.cell.mul_div(ahead, 1), self.left);
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
        Jitter::new(base, quantiles, correlation, true, RandomStream::new(seed, "jitter"))
    }

    fn in_order(jitter: Jitter) -> Jitter {
        Jitter { may_reorder: false, ..jitter }
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
                    let mut random = RandomStream::new(*seed, "z");
                    let mut latent = GaussianProcess::new(Span::from_ns(16_000), &mut random);
                    let now = Time::from_ns(eighths * 125);
                    if now >= latent.end {
                        latent.walk(now, &mut random, |_, _| ());
                    }
                    latent.at(now) <= -1.0
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
        // A spike in a hundred correlation times; what is calm is mostly not looked up.
        let points = [(0.0, 0), (0.99, 5_000), (1.0, 1_000_000)];
        for kind in [std::convert::identity, in_order] {
            let [mut often, mut rarely] =
                [(); 2].map(|()| kind(jitter(table(&points), Span::from_ms(3), 5)));
            for us in 0..4_000_000 {
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

    /// A packet every 100 us and one every 50 ms see spikes equally often, and in order.
    #[test]
    fn in_order_a_spike_delays_whatever_comes_while_it_lasts() {
        let points = table(&[(0.0, 0), (0.999, 1_000), (0.999, 200_000), (1.0, 200_000)]);
        let seen = |gap, n| values(in_order(jitter(points.clone(), Span::from_ms(10), 2)), gap, n);
        let late = |values: &[f64]| {
            values.iter().filter(|s| **s > 0.001).count() as f64 / values.len() as f64
        };
        let dense = seen(Span::from_us(100), 6_000_000);
        let sparse = seen(Span::from_ms(50), 12_000);
        let shares = (late(&dense), late(&sparse));
        assert!(shares.0 > 0.05 && (shares.0 - shares.1).abs() < 0.01, "{shares:?}");
        // But for what falls between two grid points.
        let falls = dense.windows(2).filter(|pair| pair[1] < pair[0] - 0.000_101).count();
        assert!(falls < 6_000_000 / 1_000, "{falls} overtake");
    }
}
