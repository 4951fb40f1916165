//! Distributions: means, quantiles, draws.
//!
//! A draw converts one uniform random number by the quantile function. The n-th draw of two
//! distributions therefore uses the same number, so that conditions that differ only in a
//! distribution use common random numbers.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::sync::Arc;

use jostle_link::registry;
use jostle_units::{RandomStream, Span};

use crate::{CdfPoint, Distribution, DistributionKind, FlowRandomStreams, Quantity};

/// Maximum of a draw, for distributions with heavy tails: 2⁵³, and the maximum duration.
const MOST_COUNTED: u64 = 1 << 53;
const LONGEST_NS: u64 = registry::LONGEST.as_ns();

/// Sampler of a quantity. Clones share the distribution, so that each of many connections can have
/// a sampler.
#[derive(Clone, Debug)]
pub struct QuantitySampler(Prepared);

#[derive(Clone, Debug)]
enum Prepared {
    Constant(u64),
    Drawn {
        law: Arc<DistributionKind>,
        /// Probabilities of the distribution between the bounds.
        within: (f64, f64),
    },
}

impl QuantitySampler {
    /// Creates the sampler of `quantity`.
    pub fn new(quantity: Quantity) -> Self {
        Self(match quantity {
            Quantity::Constant(value) => Prepared::Constant(value),
            Quantity::Drawn(distribution) => {
                Prepared::Drawn { within: distribution.within(), law: Arc::new(distribution.law) }
            }
        })
    }

    /// Draws a value without rounding. A constant consumes no random number.
    pub fn real(&self, random: &mut RandomStream) -> f64 {
        match &self.0 {
            Prepared::Constant(value) => *value as f64,
            Prepared::Drawn { law, within: (low, high) } => {
                law.quantile(low + (high - low) * random.uniform())
            }
        }
    }

    /// Draws a value as an integer, at least one.
    pub fn count(&self, random: &mut RandomStream) -> u64 {
        match self.0 {
            Prepared::Constant(value) => value,
            Prepared::Drawn { .. } => (self.real(random).round() as u64).clamp(1, MOST_COUNTED),
        }
    }

    /// Draws a value as a duration.
    pub fn span(&self, random: &mut RandomStream) -> Span {
        match self.0 {
            Prepared::Constant(ns) => Span::from_ns(ns),
            Prepared::Drawn { .. } => {
                Span::from_ns((self.real(random).round() as u64).min(LONGEST_NS))
            }
        }
    }
}

/// Sizes of successive writes of a flow's application, in bytes, at least one.
#[derive(Clone, Debug)]
pub struct Sizes {
    sampler: QuantitySampler,
    random: RandomStream,
}

impl Sizes {
    /// Creates the sizes of a flow in a run with `seed`. They have a separate random stream, so
    /// that the n-th size does not depend on other draws of the application.
    pub fn new(bytes: &Quantity, seed: u64, flow: &str) -> Self {
        Self::of(QuantitySampler::new(bytes.clone()), FlowRandomStreams::of(seed, flow))
    }

    /// Creates the sizes of a flow or connection with these `streams`.
    pub fn of(sampler: QuantitySampler, streams: FlowRandomStreams) -> Self {
        Self { sampler, random: streams.stream("sizes") }
    }

    /// Returns the size, if all are equal.
    pub const fn constant(&self) -> Option<u64> {
        match self.sampler.0 {
            Prepared::Constant(bytes) => Some(bytes),
            Prepared::Drawn { .. } => None,
        }
    }

    /// Returns the next size.
    pub fn draw(&mut self) -> u64 {
        self.sampler.count(&mut self.random)
    }
}

/// Draws the number of responses that a flow's application requests, at least one.
pub fn responses(count: &QuantitySampler, streams: FlowRandomStreams) -> u64 {
    count.count(&mut streams.stream("count"))
}

impl Quantity {
    /// Returns the mean, or `None` if it is infinite.
    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::Constant(value) => Some(*value as f64),
            Self::Drawn(distribution) => distribution.mean(),
        }
    }

    /// Returns the quantile `p`.
    pub fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Constant(value) => *value as f64,
            Self::Drawn(distribution) => distribution.quantile(p),
        }
    }
}

impl Distribution {
    /// Creates a distribution without bounds.
    pub const fn of(law: DistributionKind) -> Self {
        Self { law, min: None, max: None }
    }

    /// Returns the probabilities of the distribution function at the bounds.
    pub fn within(&self) -> (f64, f64) {
        (
            self.min.map_or(0.0, |min| self.law.cdf(min)),
            self.max.map_or(1.0, |max| self.law.cdf(max)),
        )
    }

    /// Returns the quantile `p`.
    pub fn quantile(&self, p: f64) -> f64 {
        let (low, high) = self.within();
        self.law.quantile(low + (high - low) * p)
    }

    /// Returns the mean, or `None` if it is infinite.
    pub fn mean(&self) -> Option<f64> {
        let (low, high) = self.within();
        let up_to =
            |bound: Option<f64>| bound.map_or(self.law.mean(), |x| Some(self.law.partial_mean(x)));
        let from = self.min.map_or(0.0, |min| self.law.partial_mean(min));
        Some((up_to(self.max)? - from) / (high - low))
    }
}

impl DistributionKind {
    /// Returns the distribution function at `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        match *self {
            Self::Exponential { mean } => -libm::expm1(-x.max(0.0) / mean),
            Self::Lognormal { median, sigma } if x > 0.0 => {
                normal_cdf(libm::log(x / median) / sigma)
            }
            Self::Pareto { scale, shape } if x > scale => 1.0 - libm::pow(scale / x, shape),
            Self::Weibull { scale, shape } => -libm::expm1(-libm::pow(x.max(0.0) / scale, shape)),
            Self::Lognormal { .. } | Self::Pareto { .. } => 0.0,
            Self::Empirical { ref points } => empirical_cdf(points, x),
        }
    }

    /// Returns the quantile `p`.
    pub fn quantile(&self, p: f64) -> f64 {
        match *self {
            Self::Exponential { mean } => -mean * libm::log(1.0 - p),
            Self::Lognormal { median, sigma } => median * libm::exp(sigma * normal_quantile(p)),
            Self::Pareto { scale, shape } => scale * libm::pow(1.0 - p, -1.0 / shape),
            Self::Weibull { scale, shape } => scale * libm::pow(-libm::log(1.0 - p), 1.0 / shape),
            Self::Empirical { ref points } => empirical_quantile(points, p),
        }
    }

    /// Returns the mean, or `None` if it is infinite.
    pub fn mean(&self) -> Option<f64> {
        match *self {
            Self::Exponential { mean } => Some(mean),
            Self::Lognormal { median, sigma } => Some(median * libm::exp(sigma * sigma / 2.0)),
            Self::Pareto { scale, shape } => (shape > 1.0).then(|| shape * scale / (shape - 1.0)),
            Self::Weibull { scale, shape } => Some(scale * libm::tgamma(1.0 + 1.0 / shape)),
            Self::Empirical { ref points } => Some(empirical_mean(points, f64::INFINITY)),
        }
    }

    /// Returns ∫ x dF over values up to `bound`, their contribution to the mean.
    fn partial_mean(&self, bound: f64) -> f64 {
        match *self {
            Self::Exponential { mean } => mean * gamma_p(2.0, bound.max(0.0) / mean),
            Self::Lognormal { median, sigma } if bound > 0.0 => {
                let at = libm::log(bound / median) / sigma - sigma;
                median * libm::exp(sigma * sigma / 2.0) * normal_cdf(at)
            }
            Self::Pareto { scale, shape } if bound > scale => {
                // ∫ shape scale^shape x^(−shape) dx; at shape 1 the power is a logarithm.
                if (shape - 1.0).abs() < 1e-9 {
                    scale * libm::log(bound / scale)
                } else {
                    let left = libm::pow(scale / bound, shape - 1.0);
                    shape * scale / (shape - 1.0) * (1.0 - left)
                }
            }
            Self::Weibull { scale, shape } => {
                let order = 1.0 + 1.0 / shape;
                let upper = libm::pow(bound.max(0.0) / scale, shape);
                scale * libm::tgamma(order) * gamma_p(order, upper)
            }
            Self::Lognormal { .. } | Self::Pareto { .. } => 0.0,
            Self::Empirical { ref points } => empirical_mean(points, bound),
        }
    }
}

fn empirical_cdf(points: &[CdfPoint], x: f64) -> f64 {
    let after = points.partition_point(|point| point.value <= x);
    let Some(right) = points.get(after) else { return 1.0 };
    let Some(left) = after.checked_sub(1).map(|before| points[before]) else { return 0.0 };
    let share = (x - left.value) / (right.value - left.value);
    left.probability + share * (right.probability - left.probability)
}

fn empirical_quantile(points: &[CdfPoint], p: f64) -> f64 {
    let after = points.partition_point(|point| point.probability <= p);
    let before = points[after.saturating_sub(1)];
    let Some(right) = points.get(after) else { return before.value };
    let share = (p - before.probability) / (right.probability - before.probability);
    before.value + share * (right.value - before.value)
}

/// Returns the contribution to the mean of values up to `bound`. Values are uniform between two
/// points.
fn empirical_mean(points: &[CdfPoint], bound: f64) -> f64 {
    let parts = points.windows(2).map(|pair| {
        let (left, right) = (pair[0], pair[1]);
        let share = right.probability - left.probability;
        if right.value <= bound {
            share * (left.value + right.value) / 2.0
        } else if left.value < bound {
            let part = share * (bound - left.value) / (right.value - left.value);
            part * (left.value + bound) / 2.0
        } else {
            0.0
        }
    });
    parts.sum()
}

fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// Returns the inverse of [`normal_cdf`]: an initial approximation (Abramowitz and Stegun 26.2.23,
/// error below 4.5e-4), then Halley's steps, each of which triples the number of correct digits.
fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p);
    if tail <= 0.0 {
        return if p < 0.5 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let t = libm::sqrt(-2.0 * libm::log(tail));
    let guess = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    // Computes in the lower tail, where probabilities keep their precision.
    let mut z = -guess;
    for _ in 0..3 {
        let density = libm::exp(-z * z / 2.0) / (SQRT_2 * libm::sqrt(std::f64::consts::PI));
        let step = (normal_cdf(z) - tail) / density;
        z -= step / (1.0 + z * step / 2.0);
    }
    if p < 0.5 { z } else { -z }
}

/// Returns the regularised lower incomplete gamma function P(a, x): its series where that converges
/// fast, otherwise 1 minus the continued fraction of the upper function (DLMF 8.7.1, 8.9.2, by
/// Lentz's method).
fn gamma_p(a: f64, x: f64) -> f64 {
    const STEPS: u32 = 500;
    const LEAST: f64 = 1e-300;
    if x <= 0.0 {
        return 0.0;
    }
    if x.is_infinite() {
        return 1.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..STEPS {
            term *= x / (a + f64::from(n));
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        return (front * sum).min(1.0);
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / LEAST, 1.0 / b);
    let mut fraction = d;
    for n in 1..STEPS {
        let n = f64::from(n);
        let numerator = -n * (n - a);
        b += 2.0;
        let floor = |value: f64| if value.abs() < LEAST { LEAST } else { value };
        d = 1.0 / floor(numerator * d + b);
        c = floor(b + numerator / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (1.0 - front * fraction).max(0.0)
}

#[cfg(test)]
mod tests;
