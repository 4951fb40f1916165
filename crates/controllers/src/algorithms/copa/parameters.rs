//! Parameters of Copa.

use jostle_registry::{Parameter, ParameterType, ParameterValues};
use jostle_units::Span;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "flavour",
        summary: "version of Copa: the authors' release, or mvfst (Meta's QUIC), which has no \
            competitive mode and only the parameters delta and rtt_standing",
        kind: ParameterType::Choice { default: "release", choices: &["release", "mvfst"] },
    },
    Parameter {
        name: "delta",
        summary: "weight of delay relative to throughput, at least 0.001: 1/delta packets are \
            kept in the queue; 0: value of the flavour (0.5 in the release, 0.05 in mvfst)",
        kind: ParameterType::Number { default: 0.0, min: 0.0, max: 100.0 },
    },
    Parameter {
        name: "rtt_standing",
        summary: "the queueing delay uses RTTstanding (copaUseRttStanding of mvfst); off: the \
            latest RTT",
        kind: ParameterType::Bool { default: false },
    },
    Parameter {
        name: "mode",
        summary: "switching: tests whether other flows fill the buffer; default: constant delta; \
            competitive: always AIMD on 1/delta",
        kind: ParameterType::Choice {
            default: "switching",
            choices: &["switching", "default", "competitive"],
        },
    },
    Parameter {
        name: "empty_share",
        summary: "queueing delay that counts as nearly empty, as a share of the RTT's recent swing",
        kind: ParameterType::Number { default: 0.1, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "empty_rtts",
        summary: "RTTs within which the queue must be nearly empty once for the default mode \
                  (release of the authors: 4; the paper: 5)",
        kind: ParameterType::Integer { default: 4, min: 1, max: 1_000 },
    },
    Parameter {
        name: "velocity_cap",
        summary: "largest change of cwnd in a round trip, relative to cwnd (release of the \
            authors: 1)",
        kind: ParameterType::Number { default: 1.0, min: 0.0, max: 1_000.0 },
    },
    Parameter {
        name: "steady_rounds",
        summary: "round trips in one direction after which the velocity doubles with each further \
                  one (release of the authors: 1; the paper and mvfst: 3)",
        kind: ParameterType::Integer { default: 1, min: 1, max: 1_000 },
    },
    Parameter {
        name: "reset_at_crossing",
        summary: "reset the velocity to 1 when the target is crossed, not at the end of the round \
            trip (mvfst, which has no competitive mode)",
        kind: ParameterType::Bool { default: false },
    },
    Parameter {
        name: "standing_rtts",
        summary: "window of the standing RTT, in smoothed RTTs",
        kind: ParameterType::Number { default: 0.5, min: 0.0, max: 10.0 },
    },
    Parameter {
        name: "min_rtt_window",
        summary: "window of the minimum RTT, if longer than min_rtt_rtts",
        kind: ParameterType::Span {
            default_ns: 10_000_000_000,
            min_ns: 100_000_000,
            max_ns: 3_600_000_000_000,
        },
    },
    Parameter {
        name: "min_rtt_rtts",
        summary: "smallest window of the minimum RTT, in minimum RTTs (release of the authors: 20)",
        kind: ParameterType::Integer { default: 20, min: 0, max: 10_000 },
    },
    Parameter {
        name: "loss_threshold",
        summary: "share of lost packets over two round trips above which cwnd is reduced (release \
            of the authors: 0.3; 1: never)",
        kind: ParameterType::Number { default: 0.3, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "loss_factor",
        summary: "share of cwnd kept by this reduction (release of the authors: 0.7)",
        kind: ParameterType::Number { default: 0.7, min: 0.1, max: 1.0 },
    },
];

/// Selection of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeRule {
    Switching,
    Default,
    Competitive,
}

/// Values of the parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) delta: f64,
    /// Only for mvfst.
    pub(super) uses_standing: bool,
    pub(super) rule: ModeRule,
    pub(super) empty_share: f64,
    pub(super) empty_rtts: u64,
    pub(super) velocity_cap: f64,
    pub(super) steady_rounds: u32,
    pub(super) reset_at_crossing: bool,
    pub(super) standing_rtts: f64,
    pub(super) min_rtt_window: Span,
    pub(super) min_rtt_rtts: u64,
    pub(super) loss_threshold: f64,
    pub(super) loss_factor: f64,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        Self {
            delta: match values.number("delta") {
                0.0 if values.choice("flavour") == "mvfst" => 0.05,
                0.0 => 0.5,
                given => given.max(0.001),
            },
            uses_standing: values.bool("rtt_standing"),
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
            min_rtt_rtts: u64::from(values.u32("min_rtt_rtts")),
            loss_threshold: values.number("loss_threshold"),
            loss_factor: values.number("loss_factor"),
        }
    }
}
