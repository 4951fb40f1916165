//! Parameters of PCC Proteus.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::Rate;

use super::utility::Utility;
use crate::pcc::parameters::{minimum_rate, rate};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::choice("mode", "primary", &["primary", "scavenger", "hybrid"]).summary(
        "primary (Proteus-P) takes its share, scavenger (Proteus-S) yields to others, hybrid \
         (Proteus-H) is primary below the threshold and scavenger above",
    ),
    rate("threshold", Rate::from_mbps(10))
        .summary("rate above which a hybrid flow yields; the release has no default"),
    Parameter::number("exponent", 0.9, 0.1..=1.0).summary("power of the rate in its reward"),
    Parameter::number("rtt_coefficient", 900.0, 0.0..=1e9)
        .summary("cost of the RTT gradient, in s/s"),
    Parameter::number("loss_coefficient", 11.35, 0.0..=1e9)
        .summary("cost of the share of packets lost"),
    Parameter::number("deviation_coefficient", 1500.0, 0.0..=1e9)
        .summary("cost of the deviation of RTTs for scavengers, per second"),
    Parameter::number("epsilon", 0.05, 0.0..=0.5)
        .summary("distance of probed rates from the current rate, as a share of it"),
    Parameter::number("change_bound", 0.05, 0.0..=0.5)
        .summary("largest first change of the rate, as a share of it"),
    Parameter::number("change_bound_step", 0.05, 0.0..=0.5)
        .summary("increase of the bound each time a change reaches it"),
    rate("min_change", Rate::from_bps(500_000)).summary("smallest change of the rate"),
    minimum_rate(Rate::from_bps(500_000)),
];

/// Values of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) utility: Utility,
    pub(super) epsilon: f64,
    pub(super) bound: f64,
    pub(super) bound_step: f64,
    pub(super) min_change_bps: f64,
    pub(super) minimum_bps: f64,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        Self {
            utility: Utility::from_values(values),
            // Equal rates have no slope between them.
            epsilon: values.number("epsilon").max(1e-3),
            bound: values.number("change_bound"),
            bound_step: values.number("change_bound_step"),
            min_change_bps: values.rate("min_change").as_bps() as f64,
            minimum_bps: values.rate("minimum_rate").as_bps() as f64,
        }
    }
}
