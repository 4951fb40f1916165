//! Parameters of BBR. Linux defines them as constants; the defaults are its values.

use jostle_registry::{LinuxRelease, Parameter, ParameterValues};
use jostle_units::Span;

use super::model::GAIN_UNIT;
use crate::slow_start::stopeg::DEFAULT_THRESHOLD;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::number("startup_gain", 2.885, 1.0..=10.0)
        .summary("pacing and cwnd gain of STARTUP; DRAIN paces by its inverse"),
    Parameter::number("cwnd_gain", 2.0, 1.0..=10.0)
        .summary("cwnd in PROBE_BW, in bandwidth-delay products"),
    Parameter::number("probe_gain", 1.25, 1.0..=10.0)
        .summary("pacing gain of the PROBE_BW phase that probes for more bandwidth"),
    Parameter::number("yield_gain", 0.75, 0.1..=1.0)
        .summary("pacing gain of the PROBE_BW phase after it, which drains what the probe queued"),
    Parameter::integer("bandwidth_window", 10, 1..=1000)
        .summary("round trips over which the maximum of the delivery rate is taken"),
    Parameter::span(
        "min_rtt_window",
        Span::from_secs(10),
        Span::from_ms(100)..=Span::from_secs(3600),
    )
    .summary("time for which a minimum RTT is valid; PROBE_RTT follows if it is not confirmed"),
    Parameter::span("probe_rtt_duration", Span::from_ms(200), Span::ZERO..=Span::from_secs(60))
        .summary("minimum time at the minimum window in PROBE_RTT; 0: no probes"),
    Parameter::integer("min_window", 4, 1..=1000)
        .summary("smallest cwnd, also in PROBE_RTT, in packets"),
    Parameter::number("full_pipe_growth", 1.25, 1.0..=4.0)
        .summary("growth of the bandwidth per round below which STARTUP may be over"),
    Parameter::integer("full_pipe_rounds", 3, 1..=100)
        .summary("rounds without such growth that end STARTUP"),
    Parameter::choice("startup_exit", "bandwidth", &["bandwidth", "stopeg"]).summary(
        "end of STARTUP: when the bandwidth no longer grows, or also by StopEG's share of the data \
         in flight on the forward path",
    ),
    Parameter::number("stopeg_threshold", DEFAULT_THRESHOLD, 0.5..=1.0)
        .summary("share of the data in flight on the forward path above which StopEG ends STARTUP"),
    Parameter::integer("pacing_margin_percent", 1, 0..=50)
        .summary("difference between the estimated bandwidth and the pacing rate, in percent"),
    Parameter::bool("ack_aggregation", true)
        .summary("increases cwnd by the data of aggregated ACKs; ignored with linux = 4.15"),
    Parameter::choice("linux", "6.1", LinuxRelease::CHOICES).summary(
        "kernel to follow; 4.15 does not increase cwnd for aggregated ACKs or for the probe of a \
         small BDP, counts packets delayed by pacing as in flight, and an RTT equal to the minimum \
         confirms it",
    ),
    Parameter::bool("policer_detection", true)
        .summary("keeps the long-term rate if losses look like a token-bucket policer's"),
];

/// The parameters in the units of the computation. Gains are in 256ths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) startup_gain: u64,
    pub(super) drain_gain: u64,
    pub(super) cwnd_gain: u64,
    pub(super) probe_gain: u64,
    pub(super) yield_gain: u64,
    pub(super) full_pipe_growth: u64,
    pub(super) full_pipe_rounds: u32,
    /// Threshold of StopEG, if it may end STARTUP.
    pub(super) stopeg_threshold: Option<f64>,
    pub(super) bandwidth_window: u64,
    pub(super) min_rtt_window: Span,
    pub(super) probe_rtt_duration: Span,
    pub(super) min_window: u32,
    pub(super) pacing_margin_percent: u64,
    pub(super) ack_aggregation: bool,
    pub(super) policer_detection: bool,
    pub(super) kernel: LinuxRelease,
}

impl Parameters {
    pub(super) fn new(values: &ParameterValues) -> Self {
        let unit = GAIN_UNIT as f64;
        let gain = |name| (values.number(name) * unit) as u64;
        Self {
            // `bbr_high_gain` in Linux: rounded up, "the smallest pacing gain" that still doubles.
            startup_gain: gain("startup_gain") + 1,
            drain_gain: (unit / values.number("startup_gain")) as u64,
            cwnd_gain: gain("cwnd_gain"),
            probe_gain: gain("probe_gain"),
            yield_gain: gain("yield_gain"),
            full_pipe_growth: gain("full_pipe_growth"),
            full_pipe_rounds: values.u32("full_pipe_rounds"),
            stopeg_threshold: (values.choice("startup_exit") == "stopeg")
                .then(|| values.number("stopeg_threshold")),
            bandwidth_window: u64::from(values.u32("bandwidth_window")),
            min_rtt_window: values.span("min_rtt_window"),
            probe_rtt_duration: values.span("probe_rtt_duration"),
            min_window: values.u32("min_window"),
            pacing_margin_percent: u64::from(values.u32("pacing_margin_percent")),
            ack_aggregation: values.bool("ack_aggregation"),
            kernel: LinuxRelease::from_choice(values.choice("linux")),
            policer_detection: values.bool("policer_detection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::BBR;

    /// `bbr_high_gain` = 256·2885/1000 + 1, `bbr_drain_gain` = 256·1000/2885.
    #[test]
    fn gains_are_those_of_linux() {
        let p = Parameters::new(&BBR.entry.defaults());
        assert_eq!((p.startup_gain, p.drain_gain, p.cwnd_gain), (739, 88, 512));
        assert_eq!((p.probe_gain, p.yield_gain, p.full_pipe_growth), (320, 192, 320));
    }
}
