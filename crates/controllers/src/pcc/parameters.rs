//! Parameters of PCC's controllers.

use jostle_registry::Parameter;
use jostle_units::Rate;

/// A rate for any link.
pub(crate) const fn rate(name: &'static str, default: Rate) -> Parameter {
    Parameter::rate(name, default, Rate::from_bps(1_000)..=Rate::from_mbps(1_000_000))
}

/// The minimum rate of `IntervalMonitor`.
pub(crate) const fn minimum_rate(default: Rate) -> Parameter {
    rate("minimum_rate", default).summary("lowest rate; also at least two packets per round trip")
}
