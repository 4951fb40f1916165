//! Which quantities make sense.

use std::ops::RangeInclusive;

use super::{Place, SpecError, within};
use crate::{CdfPoint, Distribution, Law, Quantity};

/// Most points of a distribution function.
const MAX_POINTS: usize = 100_000;
/// Widest lognormal: e^±σ are four orders of magnitude.
const MAX_SIGMA: f64 = 10.0;
/// Exponents: beyond them nearly all values are the same, or none is like another.
const SHAPES: RangeInclusive<f64> = 0.05..=1_000.0;
/// Least share of a law that its bounds have to leave.
const MIN_SHARE: f64 = 1e-6;
/// Largest value of a law's parameters.
const LARGEST: f64 = 1e19;

/// Checks one that is drawn, or that lies within `accepted`.
pub(super) fn check(
    at: Place<'_>,
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

fn law(at: Place<'_>, law: &Law) -> Result<(), SpecError> {
    let positive = |key: &str, value: f64| number(at, key, value, f64::MIN_POSITIVE..=LARGEST);
    match law {
        Law::Exponential { mean } => positive("mean", *mean),
        Law::Lognormal { median, sigma } => {
            positive("median", *median)?;
            number(at, "sigma", *sigma, f64::MIN_POSITIVE..=MAX_SIGMA)
        }
        Law::Pareto { scale, shape } | Law::Weibull { scale, shape } => {
            positive("scale", *scale)?;
            number(at, "shape", *shape, SHAPES)
        }
        Law::Empirical { points } => empirical(format_args!("{at}.points"), points),
    }
}

fn empirical(at: Place<'_>, points: &[CdfPoint]) -> Result<(), SpecError> {
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

fn bounds(at: Place<'_>, distribution: &Distribution) -> Result<(), SpecError> {
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
    at: Place<'_>,
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
