//! Parameters of PCC Allegro.

use jostle_registry::{Parameter, ParameterType, ParameterValues};

use crate::pcc::parameters::minimum_rate;

const fn share(name: &'static str, summary: &'static str, default: f64, min: f64) -> Parameter {
    Parameter { name, summary, kind: ParameterType::Number { default, min, max: 0.5 } }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    share("loss_threshold", "share of losses at which the sigmoid reduces the utility", 0.05, 0.0),
    Parameter {
        name: "steepness",
        summary: "steepness of the sigmoid, per share of losses",
        kind: ParameterType::Number { default: 100.0, min: 0.0, max: 1e6 },
    },
    share("epsilon", "smallest distance of probed rates, as a share; also the step", 0.01, 1e-3),
    share("epsilon_max", "largest distance of probed rates, as a share", 0.05, 1e-3),
    Parameter {
        name: "interval_rtts",
        summary: "shortest length of a monitor interval, in smoothed RTTs",
        kind: ParameterType::Number { default: 1.7, min: 0.1, max: 10.0 },
    },
    Parameter {
        name: "interval_jitter_rtts",
        summary: "largest random lengthening of an interval, in smoothed RTTs",
        kind: ParameterType::Number { default: 0.5, min: 0.0, max: 10.0 },
    },
    Parameter {
        name: "interval_packets",
        summary: "smallest number of packets of a monitor interval (paper: 10)",
        kind: ParameterType::Integer { default: 40, min: 2, max: 100_000 },
    },
    minimum_rate(100_000),
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
