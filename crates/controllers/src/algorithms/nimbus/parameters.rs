//! Parameters of Nimbus.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::Rate;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::choice("competitive", "cubic", &["cubic", "reno"])
        .summary("controller that competes with elastic traffic: Cubic as in the paper, or Reno"),
    Parameter::rate("link_rate", Rate::ZERO, Rate::ZERO..=Rate::from_mbps(1_000_000))
        .summary("rate of the link (μ), as payload; 0: the largest observed rate"),
    Parameter::number("pulse_size", 0.25, 0.0..=1.0)
        .summary("amplitude of the pulses, as a share of the link's rate"),
    Parameter::number("frequency", 5.0, 2.0..=20.0)
        .summary("frequency of the pulses in Hz; 1 Hz more in delay mode"),
    Parameter::number("elastic_above", 2.25, 0.0..=1e3)
        .summary("elasticity above which cross traffic counts as elastic"),
    Parameter::number("inelastic_below", 2.0, 0.0..=1e3)
        .summary("elasticity below which cross traffic counts as inelastic, at most elastic_above"),
    Parameter::number("alpha", 0.8, 0.0..=2.0)
        .summary("share of the unused rate that is added per step"),
    Parameter::number("beta", 0.5, 0.0..=10.0)
        .summary("share of the link's rate subtracted per RTT of delay above the threshold"),
    Parameter::number("delay_threshold", 1.25, 1.0..=10.0)
        .summary("target RTT, in multiples of the minimum RTT"),
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
