//! Parameters of PCC Allegro.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::Rate;

use crate::pcc::parameters::minimum_rate;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::number("loss_threshold", 0.05, 0.0..=0.5)
        .summary("share of losses at which the sigmoid reduces the utility"),
    Parameter::number("steepness", 100.0, 0.0..=1e6)
        .summary("steepness of the sigmoid, per share of losses"),
    Parameter::number("epsilon", 0.01, 1e-3..=0.5)
        .summary("smallest distance of probed rates, as a share; also the step"),
    Parameter::number("epsilon_max", 0.05, 1e-3..=0.5)
        .summary("largest distance of probed rates, as a share"),
    Parameter::number("interval_rtts", 1.7, 0.1..=10.0)
        .summary("shortest length of a monitor interval, in smoothed RTTs"),
    Parameter::number("interval_jitter_rtts", 0.5, 0.0..=10.0)
        .summary("largest random lengthening of an interval, in smoothed RTTs"),
    Parameter::integer("interval_packets", 40, 2..=100_000)
        .summary("smallest number of packets of a monitor interval (paper: 10)"),
    minimum_rate(Rate::from_bps(100_000)),
];

/// Values of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) loss_threshold: f64,
    pub(super) steepness: f64,
    pub(super) epsilon: f64,
    pub(super) epsilon_max: f64,
    pub(super) interval_rtts: f64,
    pub(super) interval_jitter_rtts: f64,
    pub(super) interval_packets: u64,
    pub(super) minimum_bps: f64,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        let epsilon = values.number("epsilon");
        Self {
            loss_threshold: values.number("loss_threshold"),
            steepness: values.number("steepness"),
            epsilon,
            epsilon_max: values.number("epsilon_max").max(epsilon),
            interval_rtts: values.number("interval_rtts"),
            interval_jitter_rtts: values.number("interval_jitter_rtts"),
            interval_packets: u64::from(values.u32("interval_packets")),
            minimum_bps: values.rate("minimum_rate").as_bps() as f64,
        }
    }

    /// §2.2: u = T · sigmoid(L − 0.05) − x · L with the throughput T = x · (1 − L), in Mbit/s.
    pub(super) fn utility(&self, rate_bps: f64, loss: f64) -> f64 {
        let x = rate_bps / 1e6;
        let sigmoid = 1.0 / (1.0 + libm::exp(self.steepness * (loss - self.loss_threshold)));
        x * (1.0 - loss) * sigmoid - x * loss
    }
}
