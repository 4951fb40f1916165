//! Random delay with a given distribution, correlated in time.
//!
//! A Gaussian copula keeps the two apart: a stationary Gauss–Markov process `z(t)` (mean 0,
//! variance 1, correlation e^(−Δt/τ)) says how unusual the delay is just now, and the quantile table
//! says what that means: `delay = Q(Φ(z))`. Whatever τ is, the distribution of that delay at any
//! instant is exactly the table's.
//!
//! On a link that keeps packets in order none arrives before what was there earlier would have. So
//! that this, too, is a matter of time and not of the traffic, the delay at `t` is what the latest
//! arrival of all earlier instants leaves of it: max(Q(Φ(z(t))), max over s < t of s + Q(Φ(z(s))) − t).
//!
//! `z` is drawn on a grid of τ/16 and interpolated. Interpolation alone would shrink the variance
//! between grid points, so the result is divided by its standard deviation: `z` stays standard
//! normal at every instant. Between grid points the path is smooth (a true Gauss–Markov path is not,
//! at any scale), and its correlation exceeds e^(−Δt/τ) by 0.02 at most. As all grid points are drawn in
//! order, the delay is a function of time and seed that does not depend on the traffic.

use jostle_catalogue::{Entry, Kind, Parameter};
use jostle_units::{Span, Stream, Time};

use super::{Delay, Quantiles, Steps};
use crate::parameters::LONGEST_NS;

/// The row of the registry.
pub const ENTRY: Entry = Entry {
    name: "jitter",
    summary: "Random delay on top from a quantile table, correlated in time",
    class: "stochastic",
    based_on: &["steps"],
    source: "a Gaussian copula over a stationary Gauss-Markov process",
    parameters: &[
        Parameter {
            name: "correlation",
            summary: "time after which the delay is nearly independent of what it was",
            kind: Kind::Span { default_ns: 0, min_ns: 0, max_ns: LONGEST_NS },
        },
        Parameter {
            name: "reorder",
            summary: "whether packets may overtake each other; if not, late times hold back \
                      what comes after them, and delays are longer than the table's",
            kind: Kind::Bool { default: false },
        },
    ],
};

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
    /// Before it nothing arrives, but for the base delay, if packets stay in order.
    held_until: Time,
    calm: Calm,
    may_reorder: bool,
    random: Stream,
}

/// What spares looking up most values of a time without packets: `z` up to this one mean no more
/// than `delay`, and none means more than `most`.
#[derive(Clone, Copy, Debug)]
struct Calm {
    z: f64,
    delay: Span,
    most: Span,
}

impl Calm {
    /// A value of `z` that is exceeded in a hundredth of the time.
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
    /// Jitter distributed as `quantiles`, nearly independent of what it was after a time of
    /// `correlation` (0: every packet draws anew), on top of `base`.
    ///
    /// Unless `may_reorder`, a delay ends no earlier than any before it, whether a packet had that
    /// one or not (with a `correlation` of 0: if one had it). That raises the delays where they fall
    /// faster than time passes: the table says less than what packets see.
    pub fn new(
        base: Steps,
        quantiles: Quantiles,
        correlation: Span,
        may_reorder: bool,
        mut random: Stream,
    ) -> Self {
        let latent = (!correlation.is_zero()).then(|| Latent::new(correlation, &mut random));
        let (hint, held_until, calm) = (0, Time::ZERO, Calm::of(&quantiles));
        Self { base, quantiles, hint, latent, held_until, calm, may_reorder, random }
    }

    /// The delay beyond the base delay.
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

    /// The value at `now`, which lies between the two grid points.
    #[inline]
    fn at(&self, now: Time) -> f64 {
        let share = now.since(self.start).as_ns() as f64 * self.per_ns;
        let variance = 1.0 - 2.0 * share * (1.0 - share) * (1.0 - self.kept);
        (self.left + share * (self.right - self.left)) / libm::sqrt(variance)
    }

    /// Goes on to the cell of `now`; `pass` is told of every grid point on the way.
    #[cold]
    fn walk(&mut self, now: Time, random: &mut Stream, mut pass: impl FnMut(Time, f64)) {
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
        Jitter::new(base, quantiles, correlation, true, Stream::new(seed, "jitter"))
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
                    let mut random = Stream::new(*seed, "z");
                    let mut latent = Latent::new(Span::from_ns(16_000), &mut random);
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
