//! Parameters of PCC Vivace.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::Rate;

use super::step_size::Steps;
use super::utility::{Form, Utility};
use crate::pcc::parameters::minimum_rate;

/// A coefficient whose default is given by the form.
const fn coefficient(name: &'static str) -> Parameter {
    Parameter::number(name, -1.0, -1.0..=1e9)
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::choice("form", "paper", &["paper", "linear", "scaled", "satellite", "linux"])
        .summary(
            "utility function: paper (throughput 1, loss 11.35, RTT 900, power 0.9, in Mbit/s), \
             linear (1, 11, 900, power 1), scaled (WebRTC, bit/s: 0.001, 10, 0.005, power 0.9), \
             satellite (a guess at a closed implementation: 1, 10, 2, linear); linux is the \
             complete Linux port of the authors, which has no other parameters",
        ),
    Parameter::choice("utility", "latency", &["latency", "loss"])
        .summary("latency: coefficient of the form; loss: RTTs do not count (RTT coefficient 0)"),
    coefficient("throughput_coefficient").summary("reward of the rate; -1: value of the form"),
    coefficient("loss_coefficient")
        .summary("cost of the share of packets lost; -1: value of the form"),
    coefficient("rtt_coefficient").summary("cost of the RTT gradient; -1: value of the form"),
    Parameter::number("exponent", -1.0, -1.0..=3.0)
        .summary("power of the rate in its reward; -1: value of the form"),
    coefficient("step_size").summary(
        "rate change per unit of the utility's gradient, in the form's unit of the rate; -1: value \
         of the form (1, scaled 5)",
    ),
    Parameter::number("epsilon", 0.05, 0.0..=0.5)
        .summary("distance of probed rates from the current rate, as a share of it"),
    Parameter::number("change_bound", -1.0, -1.0..=1.0).summary(
        "largest first change of the rate, as a share of it; -1: value of the form (0.05, linear \
         0.1)",
    ),
    Parameter::number("change_bound_step", -1.0, -1.0..=1.0).summary(
        "increase of the bound each time a change reaches it; -1: value of the form (0.05, linear \
         0.07)",
    ),
    Parameter::number("min_change", 0.02, 0.0..=0.5)
        .summary("smallest change of the rate, as a share of it"),
    Parameter::number("gradient_tolerance", 0.03, 0.0..=10.0)
        .summary("RTT gradients below this count as 0"),
    Parameter::number("noise_gain", 1.0, 0.0..=100.0).summary(
        "RTT gradients below this many times the residuals of their regression, relative to the \
         mean RTT, count as 0",
    ),
    Parameter::number("start_gain", 2.0, 1.01..=4.0)
        .summary("growth of the rate per interval of the starting phase (Linux port: 1.5)"),
    Parameter::number("start_loss_tolerance", 0.1, 0.0..=1.0)
        .summary("share of losses that the starting phase ignores"),
    Parameter::number("start_rtt_tolerance", 0.3, 0.0..=1e6).summary(
        "growth of the smoothed RTT within an interval that ends the starting phase, as a share",
    ),
    minimum_rate(Rate::from_bps(500_000)),
    Parameter::number("interval_rtts", 1.0, 0.1..=10.0)
        .summary("length of a monitor interval, in smoothed RTTs"),
    Parameter::number("interval_jitter", 0.1, 0.0..=10.0)
        .summary("largest random lengthening of an interval, as a share"),
    Parameter::integer("interval_packets", 0, 0..=100_000).summary(
        "smallest number of packets of a monitor interval; 0: value of the form (20, linear 50)",
    ),
];

/// Values of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) utility: Utility,
    pub(super) steps: Steps,
    pub(super) epsilon: f64,
    pub(super) gradient_tolerance: f64,
    pub(super) noise_gain: f64,
    pub(super) start_gain: f64,
    pub(super) start_loss_tolerance: f64,
    pub(super) start_rtt_tolerance: f64,
    pub(super) minimum_bps: f64,
    pub(super) interval_rtts: f64,
    pub(super) interval_jitter: f64,
    pub(super) interval_packets: u64,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        let utility = Utility::from_values(values);
        let step_size = match (values.number("step_size"), utility.form) {
            (given, _) if given >= 0.0 => given,
            (_, Form::Scaled) => 5.0,
            _ => 1.0,
        };
        // Bounds and intervals of the Linux port, which has the linear utility.
        let port = values.choice("form") == "linear";
        let given = |name, own| match values.number(name) {
            value if value < 0.0 => own,
            value => value,
        };
        Self {
            utility,
            steps: Steps {
                conversion_bps: step_size * utility.unit_bps(),
                bound: given("change_bound", if port { 0.10 } else { 0.05 }),
                bound_step: given("change_bound_step", if port { 0.07 } else { 0.05 }),
                least: values.number("min_change"),
            },
            // Equal rates have no slope between them.
            epsilon: values.number("epsilon").max(1e-3),
            gradient_tolerance: values.number("gradient_tolerance"),
            noise_gain: values.number("noise_gain"),
            start_gain: values.number("start_gain"),
            start_loss_tolerance: values.number("start_loss_tolerance"),
            start_rtt_tolerance: values.number("start_rtt_tolerance"),
            minimum_bps: values.rate("minimum_rate").as_bps() as f64,
            interval_rtts: values.number("interval_rtts"),
            interval_jitter: values.number("interval_jitter"),
            interval_packets: match values.u32("interval_packets") {
                0 if port => 50,
                0 => 20,
                given => u64::from(given.max(2)),
            },
        }
    }
}
