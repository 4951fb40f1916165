//! BBR, version 1, as in `tcp_bbr.c` of Linux 6.1.
//!
//! Differences: times are in nanoseconds where Linux uses jiffies (PROBE_RTT and the age of the
//! minimum RTT), and the constants of its source are parameters.

mod long_term_sampling;
pub(super) mod model;
mod modes;
pub(crate) mod pacing_and_cwnd;
mod parameters;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, RegistryEntry};
use jostle_units::{RandomStream, Rate, Span, Time};

use self::long_term_sampling::{Event, LongTermResult, LongTermSampler};
use self::model::{AckAggregation, FullPipe, GAIN_UNIT, Pacing, ProbeRtt, Rounds};
use self::modes::Mode;
use self::parameters::{PARAMETERS, Parameters};
use crate::estimators::WindowedMax;
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use crate::slow_start::stopeg::ForwardPathShare;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent,
    RecoveryState, SendEvent, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "bbr",
        summary: "paces at the measured bandwidth, with a cwnd of two BDPs",
        class: "hybrid",
        based_on: &[],
        source: "Cardwell et al., \"BBR: Congestion-Based Congestion Control\", ACM Queue 2016; \
                 Linux 6.1 tcp_bbr.c",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Bbr::new(parts)),
};

/// `TCP_INIT_CWND` in Linux: the window while no RTT is known.
const INIT_CWND: u32 = 10;
/// The controller.
pub struct Bbr {
    parameters: Parameters,
    random: RandomStream,
    pacing: Pacing,
    mode: Mode,
    /// Phase of the gain cycle, while in PROBE_BW.
    phase: u32,
    phase_start: Time,
    pacing_gain: u64,
    cwnd_gain: u64,
    cwnd: u32,
    /// Last window before recovery or PROBE_RTT.
    prior_cwnd: u32,
    ssthresh: Option<u32>,
    pacing_bytes_per_s: u64,
    has_seen_rtt: bool,
    max_bandwidth: WindowedMax,
    rounds: Rounds,
    aggregation: AckAggregation,
    full_pipe: FullPipe,
    forward_share: ForwardPathShare,
    long_term: LongTermSampler,
    min_rtt_us: Option<u64>,
    min_rtt_at: Time,
    probe_rtt: ProbeRtt,
    /// Whether PROBE_RTT limited the flight at the latest ACK.
    limits_flight_on_purpose: bool,
    /// Whether sending restarted after an idle time and nothing was delivered since.
    idle_restart: bool,
    /// First round of recovery: send one packet per delivered packet.
    conserves_packets: bool,
    /// Recovery state at the latest ACK or timeout.
    prior_state: RecoveryState,
    /// A timeout that long-term sampling has not processed yet.
    timed_out: bool,
    /// Time of the latest delivery (`delivered_mstamp` in Linux).
    delivered_at: Time,
}

impl Bbr {
    /// Creates a controller with the parameters and random numbers of `parts`.
    pub(super) fn new(parts: ControllerInputs) -> Self {
        let parameters = Parameters::new(&parts.values);
        Self {
            parameters,
            random: parts.random,
            pacing: Pacing { mss_bytes: 1, margin_percent: parameters.pacing_margin_percent },
            mode: Mode::Startup,
            phase: 0,
            phase_start: Time::ZERO,
            pacing_gain: parameters.startup_gain,
            cwnd_gain: parameters.startup_gain,
            cwnd: INIT_CWND,
            prior_cwnd: 0,
            ssthresh: None,
            pacing_bytes_per_s: 0,
            has_seen_rtt: false,
            max_bandwidth: WindowedMax::default(),
            rounds: Rounds::default(),
            aggregation: AckAggregation::default(),
            full_pipe: FullPipe::default(),
            forward_share: ForwardPathShare::default(),
            long_term: LongTermSampler::default(),
            min_rtt_us: None,
            min_rtt_at: Time::ZERO,
            probe_rtt: ProbeRtt::default(),
            limits_flight_on_purpose: false,
            idle_restart: false,
            conserves_packets: false,
            prior_state: RecoveryState::Open,
            timed_out: false,
            delivered_at: Time::ZERO,
        }
    }

    /// Sets the kernel release to follow.
    pub(super) const fn following(mut self, kernel: LinuxRelease) -> Self {
        self.parameters.kernel = kernel;
        self
    }

    /// Windowed maximum of the delivery rate.
    fn max_bandwidth(&self) -> u64 {
        self.max_bandwidth.get()
    }

    /// Bandwidth in use: the policer's rate, if one was detected.
    fn bandwidth(&self) -> u64 {
        self.long_term.bandwidth().unwrap_or_else(|| self.max_bandwidth())
    }

    fn sample_long_term(&mut self, event: &Event) {
        if !self.parameters.policer_detection {
            return;
        }
        match self.long_term.on_event(event, self.pacing) {
            LongTermResult::Nothing => {}
            LongTermResult::Policed => self.pacing_gain = GAIN_UNIT,
            LongTermResult::Expired => self.enter_probe_bw(),
        }
    }

    /// Reports a timeout to long-term sampling as the end of a lossy round. Linux does so
    /// immediately. At that time its counters have the values of the next ACK without the packets
    /// of that ACK.
    fn settle_timeout(&mut self, ack: &AckSample) {
        if core::mem::take(&mut self.timed_out) {
            self.sample_long_term(&Event {
                lossy: true,
                app_limited: false,
                round_started: true,
                probing_bandwidth: self.mode == Mode::ProbeBw,
                delivered: ack.delivered.saturating_sub(u64::from(ack.acked)),
                lost: ack.total_lost.saturating_sub(u64::from(ack.lost)),
                delivered_at: self.delivered_at,
            });
        }
    }

    /// Updates rounds, long-term sampling and the bandwidth filter (`tcp_bbr.c::bbr_update_bw`).
    fn update_bandwidth(&mut self, ack: &AckSample) {
        self.rounds.started = false;
        let Some(bandwidth) = ack.rate.as_ref().and_then(model::bandwidth) else { return };
        self.rounds.on_sample(ack);
        if self.rounds.started {
            self.conserves_packets = false;
        }
        self.sample_long_term(&Event {
            lossy: ack.lost > 0,
            app_limited: ack.app_limited,
            round_started: self.rounds.started,
            probing_bandwidth: self.mode == Mode::ProbeBw,
            delivered: ack.delivered,
            lost: ack.total_lost,
            delivered_at: self.delivered_at,
        });
        // An application-limited sample does not show the path's bandwidth, unless it exceeds the
        // estimate.
        if !ack.app_limited || bandwidth >= self.max_bandwidth() {
            let window = self.parameters.bandwidth_window;
            self.max_bandwidth.update(window, self.rounds.count, bandwidth);
        }
        if self.compensates_aggregation() && ack.acked > 0 {
            if self.rounds.started {
                self.aggregation.on_round();
            }
            let used = self.bandwidth();
            self.aggregation.on_ack(ack, used, self.cwnd);
        }
    }

    fn check_full_pipe(&mut self, ack: &AckSample) {
        if self.rounds.started && !ack.app_limited {
            let p = &self.parameters;
            let bandwidth = self.max_bandwidth.get();
            self.full_pipe.on_round(bandwidth, p.full_pipe_growth, p.full_pipe_rounds);
        }
        if let Some(threshold) = self.parameters.stopeg_threshold
            && self.mode == Mode::Startup
        {
            self.check_forward_share(ack, threshold);
        }
    }

    /// Ends STARTUP by StopEG, which is not part of Linux.
    fn check_forward_share(&mut self, ack: &AckSample, threshold: f64) {
        let min_rtt = Span::from_us(self.min_rtt_us.unwrap_or(0));
        if let Some(share) = self.forward_share.finish(ack.now, ack.delivered, min_rtt) {
            self.full_pipe.reached |= share > threshold && !ack.app_limited;
        }
        if self.rounds.started {
            self.forward_share.start(ack.now, ack.delivered, ack.in_flight);
        }
    }

    /// Returns whether the gain cycle is running: neither start-up nor PROBE_RTT.
    pub(super) fn is_steady(&self) -> bool {
        self.mode == Mode::ProbeBw
    }

    /// Returns whether the latest ACK started a round.
    pub(super) fn round_started(&self) -> bool {
        self.rounds.started
    }
}

impl CongestionController for Bbr {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.pacing.mss_bytes = u64::from(established.mss_bytes.max(1));
        self.cwnd = established.initial_window;
        self.min_rtt_us = established.rtt.map(Span::as_us);
        self.min_rtt_at = established.now;
        self.delivered_at = established.now;
        self.aggregation.restart(established.now);
        self.start_pacing(established.rtt);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        let resize = self.pacing.resize(mss_bytes);
        self.max_bandwidth.convert(|bandwidth| resize.bandwidth(bandwidth));
        self.long_term.resize(resize);
        self.full_pipe.resize(resize);
    }

    /// `CWND_EVENT_TX_START` of Linux.
    /// `tcp_bbr.c::bbr_cwnd_event`.
    fn on_send(&mut self, sent: &SendEvent) {
        if !sent.after_idle {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(sent.now);
        // The application did not fill the path: there is no need to send faster than the path.
        if self.mode == Mode::ProbeBw {
            self.set_pacing(GAIN_UNIT, Span::ZERO);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_over(sent.now);
        }
    }

    /// `tcp_bbr.c::bbr_main`.
    fn on_ack(&mut self, ack: &AckSample) {
        self.settle_timeout(ack);
        self.limits_flight_on_purpose = false;
        if ack.acked > 0 {
            self.delivered_at = ack.now;
        }
        self.update_bandwidth(ack);
        self.update_phase(ack);
        self.check_full_pipe(ack);
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_gains();
        self.set_pacing(self.pacing_gain, ack.srtt);
        self.update_cwnd(ack);
    }

    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {
        self.save_cwnd();
    }

    /// `tcp_bbr.c::bbr_set_state`.
    fn on_recovery_state(&mut self, _now: Time, state: RecoveryState) {
        if state == RecoveryState::Loss {
            self.prior_state = RecoveryState::Loss;
            self.full_pipe.on_timeout();
            self.timed_out = true;
        }
    }

    /// `tcp_bbr.c::bbr_undo_cwnd`.
    fn on_undo(&mut self, _now: Time) {
        self.full_pipe.on_undo();
        self.long_term.reset();
        self.timed_out = false;
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.pacing_bytes_per_s;
        (rate > 0).then_some(Rate::from_bytes_per_s(rate))
    }

    fn min_burst_packets(&self) -> Option<u32> {
        Some(self.min_burst())
    }

    fn limits_flight_on_purpose(&self) -> bool {
        self.limits_flight_on_purpose
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        self.mode.name()
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        let gain = |gain: u64| gain as f64 / GAIN_UNIT as f64;
        let bps = |bandwidth| self.pacing.bits_per_s(bandwidth);
        observer.record_value("bottleneck_bps", bps(self.max_bandwidth()));
        observer.record_value("policed_bps", bps(self.long_term.bandwidth().unwrap_or(0)));
        observer.record_value("min_rtt_s", self.min_rtt_us.unwrap_or(0) as f64 * 1e-6);
        observer.record_value("pacing_gain", gain(self.pacing_gain));
        observer.record_value("cwnd_gain", gain(self.cwnd_gain));
        observer.record_value("round_count", self.rounds.count as f64);
        observer.record_value("extra_acked_packets", f64::from(self.aggregation.max_extra()));
        observer.record_value("prior_cwnd_packets", f64::from(self.prior_cwnd));
        observer.record_value("full_pipe", f64::from(u8::from(self.full_pipe.reached)));
    }
}
