//! Parameters of Copa.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::Span;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::choice("flavour", "release", &["release", "mvfst"]).summary(
        "version of Copa: the authors' release, or mvfst (Meta's QUIC), which has no competitive \
         mode and only the parameters delta and rtt_standing",
    ),
    Parameter::number("delta", 0.0, 0.0..=100.0).summary(
        "weight of delay relative to throughput, at least 0.001: 1/delta packets are kept in the \
         queue; 0: value of the flavour (0.5 in the release, 0.05 in mvfst)",
    ),
    Parameter::bool("rtt_standing", false).summary(
        "only with flavour mvfst (copaUseRttStanding): the queueing delay uses RTTstanding, as the \
         release always does; off: the latest RTT",
    ),
    Parameter::choice("mode", "switching", &["switching", "default", "competitive"]).summary(
        "switching: tests whether other flows fill the buffer; default: constant delta; \
         competitive: always AIMD on 1/delta",
    ),
    Parameter::number("empty_share", 0.1, 0.0..=1.0).summary(
        "queueing delay that counts as nearly empty, as a share of the RTT's recent swing",
    ),
    Parameter::integer("empty_rtts", 4, 1..=1_000).summary(
        "RTTs within which the queue must be nearly empty once for the default mode (release of \
         the authors: 4; the paper: 5)",
    ),
    Parameter::number("velocity_cap", 1.0, 0.0..=1_000.0).summary(
        "largest change of cwnd in a round trip, relative to cwnd (release of the authors: 1)",
    ),
    Parameter::integer("steady_rounds", 1, 1..=1_000).summary(
        "round trips in one direction after which the velocity doubles with each further one \
         (release of the authors: 1; the paper and mvfst: 3)",
    ),
    Parameter::bool("reset_at_crossing", false).summary(
        "reset the velocity to 1 when the target is crossed, not at the end of the round trip \
         (mvfst, which has no competitive mode)",
    ),
    Parameter::number("standing_rtts", 0.5, 0.0..=10.0)
        .summary("window of the standing RTT, in smoothed RTTs"),
    Parameter::span(
        "min_rtt_window",
        Span::from_secs(10),
        Span::from_ms(100)..=Span::from_secs(3600),
    )
    .summary("window of the minimum RTT, if longer than min_rtt_rtts"),
    Parameter::integer("min_rtt_rtts", 20, 0..=10_000).summary(
        "smallest window of the minimum RTT, in minimum RTTs (release of the authors: 20)",
    ),
    Parameter::number("loss_threshold", 0.3, 0.0..=1.0).summary(
        "share of lost packets over two round trips above which cwnd is reduced (release of the \
         authors: 0.3; 1: never)",
    ),
    Parameter::number("loss_factor", 0.7, 0.1..=1.0)
        .summary("share of cwnd kept by this reduction (release of the authors: 0.7)"),
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
