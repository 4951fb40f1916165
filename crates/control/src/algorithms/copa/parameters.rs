//! Parameters of Copa.

use jostle_catalogue::{Kind, Parameter, Values};
use jostle_units::Span;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "delta",
        summary: "weight of delay against throughput: 1/delta packets are kept in the queue",
        kind: Kind::Number { default: 0.5, min: 0.001, max: 100.0 },
    },
    Parameter {
        name: "mode",
        summary: "switching: by the test for others that fill the buffer; default: constant \
                  delta; competitive: always AIMD on 1/delta",
        kind: Kind::Choice {
            default: "switching",
            choices: &["switching", "default", "competitive"],
        },
    },
    Parameter {
        name: "empty_share",
        summary: "queueing delay that counts as nearly empty, as a share of the RTT's recent swing",
        kind: Kind::Number { default: 0.1, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "empty_rtts",
        summary: "RTTs within which the queue must be nearly empty once for the default mode",
        kind: Kind::Integer { default: 5, min: 1, max: 1_000 },
    },
    Parameter {
        name: "velocity_cap",
        summary: "largest velocity, in windows (release of the authors: 1)",
        kind: Kind::Number { default: 1.0, min: 0.0, max: 1_000.0 },
    },
    Parameter {
        name: "steady_rounds",
        summary: "round trips in one direction after which the velocity doubles",
        kind: Kind::Integer { default: 3, min: 0, max: 1_000 },
    },
    Parameter {
        name: "reset_at_crossing",
        summary: "the velocity is 1 again as soon as the target is crossed, not when the round \
                  trip ends (mvfst)",
        kind: Kind::Bool { default: true },
    },
    Parameter {
        name: "standing_rtts",
        summary: "window of the standing RTT, in smoothed RTTs",
        kind: Kind::Number { default: 0.5, min: 0.0, max: 10.0 },
    },
    Parameter {
        name: "min_rtt_window",
        summary: "window of the minimum RTT",
        kind: Kind::Span {
            default_ns: 10_000_000_000,
            min_ns: 100_000_000,
            max_ns: 3_600_000_000_000,
        },
    },
];

/// How the mode is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeRule {
    Switching,
    Default,
    Competitive,
}

/// The parameters, resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) delta: f64,
    pub(super) rule: ModeRule,
    pub(super) empty_share: f64,
    pub(super) empty_rtts: u64,
    pub(super) velocity_cap: f64,
    pub(super) steady_rounds: u32,
    pub(super) reset_at_crossing: bool,
    pub(super) standing_rtts: f64,
    pub(super) min_rtt_window: Span,
}

impl Parameters {
    pub(super) fn new(values: &Values) -> Self {
        Self {
            delta: values.number("delta"),
            rule: match values.choice("mode") {
                "default" => ModeRule::Default,
                "competitive" => ModeRule::Competitive,
                _ => ModeRule::Switching,
            },
            empty_share: values.number("empty_share"),
            empty_rtts: u64::from(values.u32("empty_rtts")),
            velocity_cap: values.number("velocity_cap"),
            steady_rounds: values.u32("steady_rounds"),
            reset_at_crossing: values.bool("reset_at_crossing"),
            standing_rtts: values.number("standing_rtts"),
            min_rtt_window: values.span("min_rtt_window"),
        }
    }
}
