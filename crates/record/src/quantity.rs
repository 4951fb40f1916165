//! Distributions by their formulas: means, quantiles, draws.
//!
//! A draw takes one uniform number and looks up its quantile, so that the n-th draw of two distributions
//! comes from the same number: conditions that differ by a distribution differ by it and not by luck.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::sync::Arc;

use jostle_path::registry;
use jostle_units::{Span, Stream};

use crate::{CdfPoint, Distribution, FlowStreams, Law, Quantity};

/// Most that a draw comes to, however heavy its tail: 2⁵³, and the longest time there is.
const MOST_COUNTED: u64 = 1 << 53;
const LONGEST_NS: u64 = registry::LONGEST_NS as u64;

/// A quantity, ready to be drawn. Copies share their law, so that each of many connections can have one.
#[derive(Clone, Debug)]
pub struct Sampler(Prepared);

#[derive(Clone, Debug)]
enum Prepared {
    Constant(u64),
    Drawn {
        law: Arc<Law>,
        /// Probabilities of the law's that lie between the bounds.
        within: (f64, f64),
    },
}

impl Sampler {
    /// That of `quantity`.
    pub fn new(quantity: Quantity) -> Self {
        Self(match quantity {
            Quantity::Constant(value) => Prepared::Constant(value),
            Quantity::Drawn(distribution) => {
                Prepared::Drawn { within: distribution.within(), law: Arc::new(distribution.law) }
            }
        })
    }

    /// A value as it is distributed, before it is rounded. What is constant takes no random number.
    pub fn real(&self, random: &mut Stream) -> f64 {
        match &self.0 {
            Prepared::Constant(value) => *value as f64,
            Prepared::Drawn { law, within: (low, high) } => {
                law.quantile(low + (high - low) * random.uniform())
            }
        }
    }

    /// A value as so many whole things, at least one.
    pub fn count(&self, random: &mut Stream) -> u64 {
        match self.0 {
            Prepared::Constant(value) => value,
            Prepared::Drawn { .. } => (self.real(random).round() as u64).clamp(1, MOST_COUNTED),
        }
    }

    /// A value as a time.
    pub fn span(&self, random: &mut Stream) -> Span {
        match self.0 {
            Prepared::Constant(ns) => Span::from_ns(ns),
            Prepared::Drawn { .. } => {
                Span::from_ns((self.real(random).round() as u64).min(LONGEST_NS))
            }
        }
    }
}

/// Sizes that a flow's application writes, one after the other: bytes, at least one.
#[derive(Clone, Debug)]
pub struct Sizes {
    sampler: Sampler,
    random: Stream,
}

impl Sizes {
    /// Those of a flow in a run with `seed`. They have random numbers of their own, so that the n-th
    /// size is the same whatever else the application draws.
    pub fn new(bytes: &Quantity, seed: u64, flow: &str) -> Self {
        Self::of(Sampler::new(bytes.clone()), FlowStreams::of(seed, flow))
    }

    /// The same of a flow or connection with these `streams`.
    pub fn of(sampler: Sampler, streams: FlowStreams) -> Self {
        Self { sampler, random: streams.stream("sizes") }
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.sampler.count(&mut self.random)
    }
}

/// So many responses a flow's application asks for: drawn once, at least one.
pub fn responses(count: &Sampler, streams: FlowStreams) -> u64 {
    count.count(&mut streams.stream("count"))
}

impl Quantity {
    /// Its mean; none if it has no finite one.
    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::Constant(value) => Some(*value as f64),
            Self::Drawn(distribution) => distribution.mean(),
        }
    }

    /// The value that a share `p` does not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        match self {
            Self::Constant(value) => *value as f64,
            Self::Drawn(distribution) => distribution.quantile(p),
        }
    }
}

impl Distribution {
    /// One without bounds of its own.
    pub const fn of(law: Law) -> Self {
        Self { law, min: None, max: None }
    }

    /// Probabilities of the law's that lie between the bounds.
    pub(crate) fn within(&self) -> (f64, f64) {
        (
            self.min.map_or(0.0, |min| self.law.cdf(min)),
            self.max.map_or(1.0, |max| self.law.cdf(max)),
        )
    }

    /// The value that a share `p` does not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        let (low, high) = self.within();
        self.law.quantile(low + (high - low) * p)
    }

    /// Its mean; none if it has no finite one.
    pub fn mean(&self) -> Option<f64> {
        let (low, high) = self.within();
        let up_to =
            |bound: Option<f64>| bound.map_or(self.law.mean(), |x| Some(self.law.partial_mean(x)));
        let from = self.min.map_or(0.0, |min| self.law.partial_mean(min));
        Some((up_to(self.max)? - from) / (high - low))
    }
}

impl Law {
    /// The share of values up to `x`.
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

    /// The value that a share `p` does not exceed.
    pub fn quantile(&self, p: f64) -> f64 {
        match *self {
            Self::Exponential { mean } => -mean * libm::log(1.0 - p),
            Self::Lognormal { median, sigma } => median * libm::exp(sigma * normal_quantile(p)),
            Self::Pareto { scale, shape } => scale * libm::pow(1.0 - p, -1.0 / shape),
            Self::Weibull { scale, shape } => scale * libm::pow(-libm::log(1.0 - p), 1.0 / shape),
            Self::Empirical { ref points } => empirical_quantile(points, p),
        }
    }

    /// Its mean; none if it has no finite one.
    pub fn mean(&self) -> Option<f64> {
        match *self {
            Self::Exponential { mean } => Some(mean),
            Self::Lognormal { median, sigma } => Some(median * libm::exp(sigma * sigma / 2.0)),
            Self::Pareto { scale, shape } => (shape > 1.0).then(|| shape * scale / (shape - 1.0)),
            Self::Weibull { scale, shape } => Some(scale * libm::tgamma(1.0 + 1.0 / shape)),
            Self::Empirical { ref points } => Some(empirical_mean(points, f64::INFINITY)),
        }
    }

    /// ∫ x dF over values up to `bound`: what they contribute to the mean.
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

/// Between two points values are uniform: the mean of those is the middle.
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

/// The inverse of [`normal_cdf`]: a first guess (Abramowitz and Stegun 26.2.23, within 4.5e-4), then
/// Halley's steps, each of which triples the digits.
fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p);
    if tail <= 0.0 {
        return if p < 0.5 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let t = libm::sqrt(-2.0 * libm::log(tail));
    let guess = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    // In the lower tail, where probabilities keep their digits.
    let mut z = -guess;
    for _ in 0..3 {
        let density = libm::exp(-z * z / 2.0) / (SQRT_2 * libm::sqrt(std::f64::consts::PI));
        let step = (normal_cdf(z) - tail) / density;
        z -= step / (1.0 + z * step / 2.0);
    }
    if p < 0.5 { z } else { -z }
}

/// The regularised lower incomplete gamma function P(a, x): its series where that converges fast,
/// else one less the continued fraction of the upper one (DLMF 8.7.1, 8.9.2, by Lentz's method).
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
