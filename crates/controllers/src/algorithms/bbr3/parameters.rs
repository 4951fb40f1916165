//! Parameters of BBR v3: the constants of the draft with their names.

use jostle_registry::{Parameter, ParameterType, ParameterValues};
use jostle_units::Span;

use crate::algorithms::bbr::model::GAIN_UNIT;

const SECOND_NS: i64 = 1_000_000_000;

const fn gain(default: f64) -> ParameterType {
    ParameterType::Number { default, min: LEAST_GAIN, max: 10.0 }
}

/// A gain whose default depends on the flavour; 0 selects this default.
const fn gain_of_flavour() -> ParameterType {
    ParameterType::Number { default: 0.0, min: 0.0, max: 10.0 }
}

/// Smallest valid gain.
const LEAST_GAIN: f64 = 0.1;

const fn span(default_ns: i64, min_ns: i64) -> ParameterType {
    ParameterType::Span { default_ns, min_ns, max_ns: 3600 * SECOND_NS }
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
    Parameter {
        name: "flavour",
        summary: "version of BBR v3: the IETF draft, or Google's release for Linux, which \
            published studies measured; its constants are in 256ths, rounded down",
        kind: ParameterType::Choice { default: "draft", choices: &["draft", "google"] },
    },
    Parameter {
        name: "ecn_low",
        summary: "responds to ECN marks on paths of at most 5 ms (google only; there it is a \
            feature of the route)",
        kind: ParameterType::Bool { default: false },
    },
    Parameter {
        name: "startup_pacing_gain",
        summary: "pacing gain of Startup: the smallest with which the rate doubles, 4 ln 2",
        kind: gain(2.77),
    },
    Parameter {
        name: "drain_pacing_gain",
        summary: "pacing gain of Drain, at least 0.1; 0 for the flavour's: 0.5 of the draft (before -05: \
                  0.35), 1000/2885 of google",
        kind: gain_of_flavour(),
    },
    Parameter {
        name: "down_pacing_gain",
        summary: "pacing gain of ProbeBW_DOWN, which drains what the probe queued, at least 0.1; 0 for \
                  the flavour's: 0.9 of the draft, 0.91 of google",
        kind: gain_of_flavour(),
    },
    Parameter {
        name: "up_pacing_gain",
        summary: "pacing gain of ProbeBW_UP, which probes for more bandwidth",
        kind: gain(1.25),
    },
    Parameter {
        name: "default_cwnd_gain",
        summary: "default cwnd in bandwidth-delay products",
        kind: gain(2.0),
    },
    Parameter {
        name: "up_cwnd_gain",
        summary: "cwnd in bandwidth-delay products in ProbeBW_UP",
        kind: gain(2.25),
    },
    Parameter {
        name: "probe_rtt_cwnd_gain",
        summary: "cwnd in bandwidth-delay products in ProbeRTT",
        kind: gain(0.5),
    },
    Parameter {
        name: "loss_thresh",
        summary: "share of packets lost in a round trip above which a probe was too high",
        kind: ParameterType::Number { default: 0.02, min: 0.0, max: 0.5 },
    },
    Parameter {
        name: "beta",
        summary: "minimum share of the short-term and long-term bounds kept after loss",
        kind: ParameterType::Number { default: 0.7, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "headroom",
        summary: "share of inflight_longterm left to others while cruising",
        kind: ParameterType::Number { default: 0.15, min: 0.0, max: 1.0 },
    },
    Parameter {
        name: "min_pipe_cwnd",
        summary: "smallest cwnd, in packets",
        kind: ParameterType::Integer { default: 4, min: 1, max: 1000 },
    },
    Parameter {
        name: "startup_full_loss_cnt",
        summary: "gaps of lost packets in a round trip that end Startup; 0: any loss. With \
            google, ACKs that report losses; 0: never",
        kind: ParameterType::Integer { default: 6, min: 0, max: 1000 },
    },
    Parameter {
        name: "min_rtt_filter_len",
        summary: "window of the minimum RTT",
        kind: span(10 * SECOND_NS, SECOND_NS / 10),
    },
    Parameter {
        name: "probe_rtt_interval",
        summary: "time without a new minimum RTT after which ProbeRTT follows",
        kind: span(5 * SECOND_NS, SECOND_NS / 10),
    },
    Parameter {
        name: "probe_rtt_duration",
        summary: "minimum time at the small window of ProbeRTT; 0: no probes",
        kind: span(SECOND_NS / 5, 0),
    },
    Parameter {
        name: "bw_probe_wait",
        summary: "minimum time between probes for bandwidth, plus a random part of a second",
        kind: span(2 * SECOND_NS, 0),
    },
    Parameter {
        name: "bw_probe_max_rounds",
        summary: "largest number of round trips between probes, for coexistence with Reno and \
            CUBIC",
        kind: ParameterType::Integer { default: 63, min: 1, max: 1_000_000 },
    },
    Parameter {
        name: "precautionary",
        summary: "after a probe that was too high, the next one stops at the bound of that probe",
        kind: ParameterType::Bool { default: true },
    },
    Parameter {
        name: "pacing_margin_percent",
        summary: "difference between the estimated bandwidth and the pacing rate, in percent",
        kind: ParameterType::Integer { default: 1, min: 0, max: 50 },
    },
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
