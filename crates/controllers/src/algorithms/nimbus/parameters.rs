//! Parameters of Nimbus.

use jostle_registry::{Parameter, ParameterType, ParameterValues};

const fn number(
    name: &'static str,
    summary: &'static str,
    default: f64,
    min: f64,
    max: f64,
) -> Parameter {
    Parameter { name, summary, kind: ParameterType::Number { default, min, max } }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "competitive",
        summary: "controller that competes with elastic traffic: Cubic as in the paper, or Reno",
        kind: ParameterType::Choice { default: "cubic", choices: &["cubic", "reno"] },
    },
    Parameter {
        name: "link_rate",
        summary: "rate of the link (μ), as payload; 0: the largest observed rate",
        kind: ParameterType::Rate { default_bps: 0, min_bps: 0, max_bps: 1_000_000_000_000 },
    },
    number("pulse_size", "amplitude of the pulses, as a share of the link's rate", 0.25, 0.0, 1.0),
    number("frequency", "frequency of the pulses in Hz; 1 Hz more in delay mode", 5.0, 2.0, 20.0),
    number(
        "elastic_above",
        "elasticity above which cross traffic counts as elastic",
        2.25,
        0.0,
        1e3,
    ),
    number(
        "inelastic_below",
        "elasticity below which cross traffic counts as inelastic, at most elastic_above",
        2.0,
        0.0,
        1e3,
    ),
    number("alpha", "share of the unused rate that is added per step", 0.8, 0.0, 2.0),
    number(
        "beta",
        "share of the link's rate subtracted per RTT of delay above the threshold",
        0.5,
        0.0,
        10.0,
    ),
    number("delay_threshold", "target RTT, in multiples of the minimum RTT", 1.25, 1.0, 10.0),
];

/// Values of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) reno: bool,
    pub(super) link_bps: Option<f64>,
    pub(super) pulse_size: f64,
    pub(super) frequency_hz: f64,
    pub(super) elastic_above: f64,
    pub(super) inelastic_below: f64,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) delay_threshold: f64,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        let link_bps = values.rate("link_rate").as_bps() as f64;
        let elastic_above = values.number("elastic_above");
        Self {
            reno: values.choice("competitive") == "reno",
            link_bps: (link_bps > 0.0).then_some(link_bps),
            pulse_size: values.number("pulse_size"),
            frequency_hz: values.number("frequency"),
            elastic_above,
            inelastic_below: values.number("inelastic_below").min(elastic_above),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            delay_threshold: values.number("delay_threshold"),
        }
    }
}
