//! Parameters of BBR v3: the constants of the draft with their names.

use jostle_registry::{Parameter, ParameterValues};
#[cfg(not(feature = "std"))]
use jostle_units::FloatMath;
use jostle_units::Span;

use crate::algorithms::bbr::model::GAIN_UNIT;

const fn gain(name: &'static str, default: f64) -> Parameter {
    Parameter::number(name, default, LEAST_GAIN..=10.0)
}

/// A gain whose default depends on the flavour; 0 selects this default.
const fn gain_of_flavour(name: &'static str) -> Parameter {
    Parameter::number(name, 0.0, 0.0..=10.0)
}

/// Smallest valid gain.
const LEAST_GAIN: f64 = 0.1;

const fn span(name: &'static str, default: Span, min: Span) -> Parameter {
    Parameter::span(name, default, min..=Span::from_secs(3600))
}

/// Pacing gain of Drain, in 256ths: 0.5 in the draft, `bbr_drain_gain` in the release.
const DRAFT_DRAIN_GAIN: f64 = 0.5;
const RELEASE_DRAIN_GAIN: u64 = GAIN_UNIT * 1000 / 2885;
/// Pacing gain of DOWN: 0.9 in the draft, the second element of `bbr_pacing_gain` in the release.
const DRAFT_DOWN_GAIN: f64 = 0.9;
const RELEASE_DOWN_GAIN: u64 = GAIN_UNIT * 91 / 100;

/// Variant of BBR v3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// draft-ietf-ccwg-bbr-06.
    Draft,
    /// The release for Linux by its authors.
    Google,
}

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::choice("flavour", "draft", &["draft", "google"]).summary(
        "version of BBR v3: the IETF draft, or Google's release for Linux, which published studies \
         measured; its constants are in 256ths, rounded down",
    ),
    Parameter::bool("ecn_low", false).summary(
        "responds to ECN marks on paths of at most 5 ms (google only; there it is a feature of the \
         route)",
    ),
    gain("startup_pacing_gain", 2.77)
        .summary("pacing gain of Startup: the smallest with which the rate doubles, 4 ln 2"),
    gain_of_flavour("drain_pacing_gain").summary(
        "pacing gain of Drain, at least 0.1; 0 for the flavour's: 0.5 of the draft (before -05: \
         0.35), 1000/2885 of google",
    ),
    gain_of_flavour("down_pacing_gain").summary(
        "pacing gain of ProbeBW_DOWN, which drains what the probe queued, at least 0.1; 0 for the \
         flavour's: 0.9 of the draft, 0.91 of google",
    ),
    gain("up_pacing_gain", 1.25)
        .summary("pacing gain of ProbeBW_UP, which probes for more bandwidth"),
    gain("default_cwnd_gain", 2.0).summary("default cwnd in bandwidth-delay products"),
    gain("up_cwnd_gain", 2.25).summary("cwnd in bandwidth-delay products in ProbeBW_UP"),
    gain("probe_rtt_cwnd_gain", 0.5).summary("cwnd in bandwidth-delay products in ProbeRTT"),
    Parameter::number("loss_thresh", 0.02, 0.0..=0.5)
        .summary("share of packets lost in a round trip above which a probe was too high"),
    Parameter::number("beta", 0.7, 0.0..=1.0)
        .summary("minimum share of the short-term and long-term bounds kept after loss"),
    Parameter::number("headroom", 0.15, 0.0..=1.0)
        .summary("share of inflight_longterm left to others while cruising"),
    Parameter::integer("min_pipe_cwnd", 4, 1..=1000).summary("smallest cwnd, in packets"),
    Parameter::integer("startup_full_loss_cnt", 6, 0..=1000).summary(
        "gaps of lost packets in a round trip that end Startup; 0: any loss. With google, ACKs \
         that report losses; 0: never",
    ),
    span("min_rtt_filter_len", Span::from_secs(10), Span::from_ms(100))
        .summary("window of the minimum RTT"),
    span("probe_rtt_interval", Span::from_secs(5), Span::from_ms(100))
        .summary("time without a new minimum RTT after which ProbeRTT follows"),
    span("probe_rtt_duration", Span::from_ms(200), Span::ZERO)
        .summary("minimum time at the small window of ProbeRTT; 0: no probes"),
    span("bw_probe_wait", Span::from_secs(2), Span::ZERO)
        .summary("minimum time between probes for bandwidth, plus a random part of a second"),
    Parameter::integer("bw_probe_max_rounds", 63, 1..=1_000_000).summary(
        "largest number of round trips between probes, for coexistence with Reno and CUBIC",
    ),
    Parameter::bool("precautionary", true)
        .summary("after a probe that was too high, the next one stops at the bound of that probe"),
    Parameter::integer("pacing_margin_percent", 1, 0..=50)
        .summary("difference between the estimated bandwidth and the pacing rate, in percent"),
];

/// The parameters in the units of the computation. Gains are in 256ths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) flavour: Flavour,
    pub(super) ecn_low: bool,
    pub(super) startup_pacing_gain: u64,
    pub(super) drain_pacing_gain: u64,
    pub(super) down_pacing_gain: u64,
    pub(super) up_pacing_gain: u64,
    pub(super) default_cwnd_gain: u64,
    pub(super) up_cwnd_gain: u64,
    pub(super) probe_rtt_cwnd_gain: u64,
    pub(super) loss_thresh: f64,
    pub(super) beta: f64,
    pub(super) headroom: f64,
    pub(super) min_pipe_cwnd: u32,
    pub(super) startup_full_loss_cnt: u32,
    pub(super) min_rtt_filter_len: Span,
    pub(super) probe_rtt_interval: Span,
    pub(super) probe_rtt_duration: Span,
    pub(super) bw_probe_wait: Span,
    pub(super) bw_probe_max_rounds: u32,
    pub(super) precautionary: bool,
    pub(super) pacing_margin_percent: u64,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        let in_256ths = |gain: f64| (gain * GAIN_UNIT as f64) as u64;
        let gain = |name| in_256ths(values.number(name));
        let google = values.choice("flavour") == "google";
        let gain_or = |name, draft: f64, release| match values.number(name) {
            0.0 if google => release,
            0.0 => in_256ths(draft),
            given => in_256ths(given.max(LEAST_GAIN)),
        };
        // Shares that the release stores in 256ths.
        let share = |value: f64| {
            if google { (value * GAIN_UNIT as f64).floor() / GAIN_UNIT as f64 } else { value }
        };
        Self {
            flavour: if google { Flavour::Google } else { Flavour::Draft },
            ecn_low: google && values.bool("ecn_low"),
            // Rounded up: a lower gain would not double the rate.
            startup_pacing_gain: gain("startup_pacing_gain") + 1,
            drain_pacing_gain: gain_or("drain_pacing_gain", DRAFT_DRAIN_GAIN, RELEASE_DRAIN_GAIN),
            down_pacing_gain: gain_or("down_pacing_gain", DRAFT_DOWN_GAIN, RELEASE_DOWN_GAIN),
            up_pacing_gain: gain("up_pacing_gain"),
            default_cwnd_gain: gain("default_cwnd_gain"),
            up_cwnd_gain: gain("up_cwnd_gain"),
            probe_rtt_cwnd_gain: gain("probe_rtt_cwnd_gain"),
            loss_thresh: share(values.number("loss_thresh")),
            // In the release, beta is the share by which bounds are reduced: `bbr_beta`, 0.3.
            beta: if google {
                1.0 - share(1.0 - values.number("beta"))
            } else {
                values.number("beta")
            },
            headroom: share(values.number("headroom")),
            min_pipe_cwnd: values.u32("min_pipe_cwnd"),
            startup_full_loss_cnt: values.u32("startup_full_loss_cnt"),
            min_rtt_filter_len: values.span("min_rtt_filter_len"),
            probe_rtt_interval: values.span("probe_rtt_interval"),
            probe_rtt_duration: values.span("probe_rtt_duration"),
            bw_probe_wait: values.span("bw_probe_wait"),
            bw_probe_max_rounds: values.u32("bw_probe_max_rounds"),
            precautionary: values.bool("precautionary"),
            pacing_margin_percent: u64::from(values.u32("pacing_margin_percent")),
        }
    }
}
