//! Constant or random quantities: sizes, times, counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A constant or a random value. The unit is the one of the key: bytes or nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Quantity {
    /// A constant.
    Constant(u64),
    /// A random value, drawn for each use.
    Drawn(Distribution),
}

impl From<u64> for Quantity {
    fn from(value: u64) -> Self {
        Self::Constant(value)
    }
}

/// A distribution, truncated to bounds: values outside are excluded, the others keep their
/// proportions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Type of the distribution.
    pub law: DistributionKind,
    /// Minimum (absent: the minimum of the distribution).
    pub min: Option<f64>,
    /// Maximum (absent: the maximum of the distribution).
    pub max: Option<f64>,
}

/// Type of a distribution. Parameters with a unit use the unit of the quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DistributionKind {
    /// P(X > x) = e^(−x ⁄ mean).
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// ln X is normally distributed.
    Lognormal {
        /// Median, e^μ.
        median: f64,
        /// Standard deviation σ of ln X.
        sigma: f64,
    },
    /// P(X > x) = (scale ⁄ x)^shape from `scale` on.
    Pareto {
        /// Minimum.
        scale: f64,
        /// Exponent; at most 1: the mean is infinite.
        shape: f64,
    },
    /// P(X > x) = e^(−(x ⁄ scale)^shape).
    Weibull {
        /// Value that the fraction 1 ⁄ e of all values exceeds.
        scale: f64,
        /// Exponent; below 1 the tail is heavier than exponential.
        shape: f64,
    },
    /// A measured distribution: points of its distribution function, linear in between.
    Empirical {
        /// Points from probability 0 to 1; neither values nor probabilities decrease.
        points: Vec<CdfPoint>,
    },
}

/// A point of a distribution function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CdfPoint {
    /// Value.
    pub value: f64,
    /// Probability with which the value is not exceeded.
    pub probability: f64,
}
