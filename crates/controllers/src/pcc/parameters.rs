//! Parameters of PCC's controllers.

use jostle_registry::{Parameter, ParameterType};

/// A number from 0 to `max`.
pub(crate) const fn number(
    name: &'static str,
    summary: &'static str,
    default: f64,
    max: f64,
) -> Parameter {
    Parameter { name, summary, kind: ParameterType::Number { default, min: 0.0, max } }
}

/// A rate for any link.
pub(crate) const fn rate(name: &'static str, summary: &'static str, default_bps: i64) -> Parameter {
    let kind = ParameterType::Rate { default_bps, min_bps: 1_000, max_bps: 1_000_000_000_000 };
    Parameter { name, summary, kind }
}

/// The minimum rate of `IntervalMonitor`.
pub(crate) const fn minimum_rate(default_bps: i64) -> Parameter {
    let summary = "lowest rate; also at least two packets per round trip";
    rate("minimum_rate", summary, default_bps)
}
