//! Validation of quantities.

use std::ops::RangeInclusive;

use super::{SpecError, SpecPath, within};
use crate::{CdfPoint, Distribution, DistributionKind, Quantity};

/// Maximum number of points of a distribution function.
const MAX_POINTS: usize = 100_000;
/// Maximum σ of a lognormal distribution: e^σ is then more than four orders of magnitude.
const MAX_SIGMA: f64 = 10.0;
/// Range of exponents. Beyond it nearly all values are equal, or they spread over all magnitudes.
const SHAPES: RangeInclusive<f64> = 0.05..=1_000.0;
/// Minimum probability of the values between the bounds.
const MIN_SHARE: f64 = 1e-6;
/// Maximum of a distribution's parameters.
const LARGEST: f64 = 1e19;

/// Checks that a constant is in `accepted`, or that a random quantity is valid.
pub(super) fn check(
    at: SpecPath<'_>,
    quantity: &Quantity,
    accepted: RangeInclusive<u64>,
) -> Result<(), SpecError> {
    match quantity {
        Quantity::Constant(value) => within(at, *value, accepted),
        Quantity::Drawn(distribution) => {
            law(format_args!("{at}.law"), &distribution.law)?;
            bounds(at, distribution)
        }
    }
}

fn law(at: SpecPath<'_>, law: &DistributionKind) -> Result<(), SpecError> {
    let positive = |key: &str, value: f64| number(at, key, value, f64::MIN_POSITIVE..=LARGEST);
    match law {
        DistributionKind::Exponential { mean } => positive("mean", *mean),
        DistributionKind::Lognormal { median, sigma } => {
            positive("median", *median)?;
            number(at, "sigma", *sigma, f64::MIN_POSITIVE..=MAX_SIGMA)
        }
        DistributionKind::Pareto { scale, shape } | DistributionKind::Weibull { scale, shape } => {
            positive("scale", *scale)?;
            number(at, "shape", *shape, SHAPES)
        }
        DistributionKind::Empirical { points } => empirical(format_args!("{at}.points"), points),
    }
}

fn empirical(at: SpecPath<'_>, points: &[CdfPoint]) -> Result<(), SpecError> {
    if !(2..=MAX_POINTS).contains(&points.len()) {
        let expected = format!("2 to {MAX_POINTS} points");
        return Err(SpecError::unfit(at, format!("{} of them", points.len()), expected));
    }
    let mut before = CdfPoint { value: 0.0, probability: 0.0 };
    for (i, point) in points.iter().enumerate() {
        let at = format_args!("{at}[{i}]");
        number(at, "value", point.value, before.value..=LARGEST)?;
        number(at, "probability", point.probability, before.probability..=1.0)?;
        before = *point;
    }
    let (first, last) = (points[0].probability, before.probability);
    if (first, last) != (0.0, 1.0) {
        let given = format!("from {first} to {last}");
        return Err(SpecError::unfit(at, given, "probabilities from 0 to 1"));
    }
    if before.value == 0.0 {
        return Err(SpecError::unfit(at, "0 throughout", "values above 0"));
    }
    Ok(())
}

fn bounds(at: SpecPath<'_>, distribution: &Distribution) -> Result<(), SpecError> {
    let Distribution { min, max, .. } = distribution;
    for (key, bound) in [("min", min), ("max", max)] {
        if let Some(bound) = bound {
            number(at, key, *bound, 0.0..=LARGEST)?;
        }
    }
    let (low, high) = distribution.within();
    if high - low < MIN_SHARE {
        let given = format!("from {} to {}", min.unwrap_or(0.0), max.unwrap_or(f64::INFINITY));
        return Err(SpecError::unfit(at, given, "bounds between which the law has values"));
    }
    Ok(())
}

fn number(
    at: SpecPath<'_>,
    key: &str,
    given: f64,
    accepted: RangeInclusive<f64>,
) -> Result<(), SpecError> {
    if accepted.contains(&given) {
        return Ok(());
    }
    let (min, max) = (accepted.start(), accepted.end());
    let expected = if *min == f64::MIN_POSITIVE {
        format!("more than 0, at most {max}")
    } else {
        format!("{min} to {max}")
    };
    Err(SpecError::unfit(format_args!("{at}.{key}"), given, expected))
}
