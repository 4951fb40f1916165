//! Quantities that a run's specification fixes or has drawn: sizes, times, counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Always the same, or drawn anew each time. Its unit is that of the key that holds it: bytes or
/// nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantity {
    /// Always the same.
    Constant(u64),
    /// Drawn anew each time.
    Drawn(Distribution),
}

impl From<u64> for Quantity {
    fn from(value: u64) -> Self {
        Self::Constant(value)
    }
}

/// A law, and the bounds outside of which nothing of it is left: what lies between them keeps its
/// proportions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// The law.
    pub law: Law,
    /// Least value (absent: the law's own).
    pub min: Option<f64>,
    /// Largest value (absent: the law's own).
    pub max: Option<f64>,
}

/// A law of distribution. What has a unit is in that of the quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// P(X > x) = e^(−x ⁄ mean).
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// ln X is normally distributed.
    Lognormal {
        /// The median, e^μ.
        median: f64,
        /// Standard deviation σ of ln X.
        sigma: f64,
    },
    /// P(X > x) = (scale ⁄ x)^shape from `scale` on.
    Pareto {
        /// Least value.
        scale: f64,
        /// Exponent; at most 1: there is no finite mean.
        shape: f64,
    },
    /// P(X > x) = e^(−(x ⁄ scale)^shape).
    Weibull {
        /// The value that 1 ⁄ e of all exceed.
        scale: f64,
        /// Exponent; below 1 the tail is heavier than exponential.
        shape: f64,
    },
    /// As it was measured: points of its distribution function, linear in between.
    Empirical {
        /// From the probability 0 to 1; neither number decreases.
        points: Vec<CdfPoint>,
    },
}

/// A point of a distribution function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CdfPoint {
    /// Value …
    pub value: f64,
    /// … that is not exceeded with this probability.
    pub probability: f64,
}
