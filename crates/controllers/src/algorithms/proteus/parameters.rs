//! Parameters of PCC Proteus.

use jostle_registry::{Parameter, ParameterType, ParameterValues};

use super::utility::Utility;
use crate::pcc::parameters::{minimum_rate, number, rate};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "mode",
        summary: "primary (Proteus-P) takes its share, scavenger (Proteus-S) yields to others, \
            hybrid (Proteus-H) is primary below the threshold and scavenger above",
        kind: ParameterType::Choice {
            default: "primary",
            choices: &["primary", "scavenger", "hybrid"],
        },
    },
    rate(
        "threshold",
        "rate above which a hybrid flow yields; the release has no default",
        10_000_000,
    ),
    Parameter {
        name: "exponent",
        summary: "power of the rate in its reward",
        kind: ParameterType::Number { default: 0.9, min: 0.1, max: 1.0 },
    },
    number("rtt_coefficient", "cost of the RTT gradient, in s/s", 900.0, 1e9),
    number("loss_coefficient", "cost of the share of packets lost", 11.35, 1e9),
    number(
        "deviation_coefficient",
        "cost of the deviation of RTTs for scavengers, per second",
        1500.0,
        1e9,
    ),
    number(
        "epsilon",
        "distance of probed rates from the current rate, as a share of it",
        0.05,
        0.5,
    ),
    number("change_bound", "largest first change of the rate, as a share of it", 0.05, 0.5),
    number("change_bound_step", "increase of the bound each time a change reaches it", 0.05, 0.5),
    rate("min_change", "smallest change of the rate", 500_000),
    minimum_rate(500_000),
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
