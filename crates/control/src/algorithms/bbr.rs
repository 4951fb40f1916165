//! BBR, version 1, as `tcp_bbr.c` of Linux 6.1 behaves.
//!
//! Differences: times are nanoseconds where Linux has jiffies (PROBE_RTT and the age of the
//! minimum RTT), and the constants of its source are parameters.

pub(super) mod model;
mod modes;
mod parameters;
mod policer;
mod sending;
#[cfg(test)]
mod tests;

use jostle_catalogue::{Entry, Linux};
use jostle_units::{Rate, Span, Stream, Time};

use self::model::{AckAggregation, FullPipe, GAIN_UNIT, Pacing, ProbeRtt, Rounds};
use self::modes::Mode;
use self::parameters::{PARAMETERS, Parameters};
use self::policer::{Event, Finding, LongTerm};
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, RecoveryState, Sent,
};
use crate::estimate::WindowedMax;
use crate::row::{ControllerRow, Parts, Start};
use crate::slow_start::stopeg::ForwardShare;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "bbr",
        summary: "paces at the largest delivery rate seen, with a window of two BDPs",
        class: "hybrid",
        based_on: &[],
        source: "Cardwell et al., \"BBR: Congestion-Based Congestion Control\", ACM Queue 2016; \
                 Linux 6.1 tcp_bbr.c",
        parameters: PARAMETERS,
    },
    start: Start::Own,
    build: |parts| Box::new(Bbr::new(parts)),
};

/// `TCP_INIT_CWND` in Linux: the window while no RTT is known.
const INIT_CWND: u32 = 10;
/// The controller.
pub struct Bbr {
    parameters: Parameters,
    random: Stream,
    pacing: Pacing,
    mode: Mode,
    /// Phase of the gain cycle, while in PROBE_BW.
    phase: u32,
    phase_start: Time,
    pacing_gain: u64,
    cwnd_gain: u64,
    cwnd: u32,
    /// Last window from before recovery or PROBE_RTT.
    prior_cwnd: u32,
    ssthresh: Option<u32>,
    pacing_bytes_per_s: u64,
    has_seen_rtt: bool,
    max_bandwidth: WindowedMax,
    rounds: Rounds,
    aggregation: AckAggregation,
    full_pipe: FullPipe,
    forward_share: ForwardShare,
    long_term: LongTerm,
    min_rtt_us: Option<u64>,
    min_rtt_at: Time,
    probe_rtt: ProbeRtt,
    /// PROBE_RTT held the flight down when the latest ACK came.
    holds_back: bool,
    /// Sending again after the application was idle; nothing was delivered since.
    idle_restart: bool,
    /// First round of recovery: send a packet per packet delivered.
    conserves_packets: bool,
    /// Recovery state at the latest ACK or timeout.
    prior_state: RecoveryState,
    /// A timeout that long-term sampling has not seen yet.
    timed_out: bool,
    /// Time of the latest delivery (`delivered_mstamp` in Linux).
    delivered_at: Time,
}

impl Bbr {
    /// A controller with the parameters and random numbers of `parts`.
    pub(super) fn new(parts: Parts) -> Self {
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
            forward_share: ForwardShare::default(),
            long_term: LongTerm::default(),
            min_rtt_us: None,
            min_rtt_at: Time::ZERO,
            probe_rtt: ProbeRtt::default(),
            holds_back: false,
            idle_restart: false,
            conserves_packets: false,
            prior_state: RecoveryState::Open,
            timed_out: false,
            delivered_at: Time::ZERO,
        }
    }

    /// The same, as in another kernel.
    pub(super) const fn following(mut self, kernel: Linux) -> Self {
        self.parameters.kernel = kernel;
        self
    }

    /// Windowed maximum of the delivery rate.
    fn max_bandwidth(&self) -> u64 {
        self.max_bandwidth.get()
    }

    /// Bandwidth that is used: the policer's, if there is one.
    fn bandwidth(&self) -> u64 {
        self.long_term.bandwidth().unwrap_or_else(|| self.max_bandwidth())
    }

    fn sample_long_term(&mut self, event: &Event) {
        if !self.parameters.policer_detection {
            return;
        }
        match self.long_term.on_event(event, self.pacing) {
            Finding::Nothing => {}
            Finding::Policed => self.pacing_gain = GAIN_UNIT,
            Finding::Expired => self.enter_probe_bw(),
        }
    }

    /// Long-term sampling counts a timeout as the lossy end of a round. Linux does so at once; the
    /// counters of that moment are those of the next ACK without its own share.
    fn settle_timeout(&mut self, ack: &AckSample) {
        if std::mem::take(&mut self.timed_out) {
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

    /// Rounds, long-term sampling and the bandwidth filter (`bbr_update_bw`).
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
        // What the application limits tells nothing of the path, unless it beats the estimate.
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

    /// StopEG as the end of STARTUP; not of Linux.
    fn check_forward_share(&mut self, ack: &AckSample, threshold: f64) {
        let min_rtt = Span::from_us(self.min_rtt_us.unwrap_or(0));
        if let Some(share) = self.forward_share.finish(ack.now, ack.delivered, min_rtt) {
            self.full_pipe.reached |= share > threshold && !ack.app_limited;
        }
        if self.rounds.started {
            self.forward_share.start(ack.now, ack.delivered, ack.in_flight);
        }
    }

    /// The gain cycle is running: neither start-up nor PROBE_RTT.
    pub(super) fn is_steady(&self) -> bool {
        self.mode == Mode::ProbeBw
    }

    /// The latest ACK started a round.
    pub(super) fn round_started(&self) -> bool {
        self.rounds.started
    }
}

impl Controller for Bbr {
    fn on_established(&mut self, established: &Established) {
        self.pacing.mss_bytes = u64::from(established.mss_bytes.max(1));
        self.cwnd = established.initial_window;
        self.min_rtt_us = established.rtt.map(Span::as_us);
        self.min_rtt_at = established.now;
        self.delivered_at = established.now;
        self.aggregation.restart(established.now);
        self.start_pacing(established.rtt);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        let resize = self.pacing.resize(mss_bytes);
        self.max_bandwidth.convert(|bandwidth| resize.bandwidth(bandwidth));
        self.long_term.resize(resize);
        self.full_pipe.resize(resize);
    }

    /// `CWND_EVENT_TX_START` of Linux.
    fn on_send(&mut self, sent: &Sent) {
        if !sent.after_idle {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(sent.now);
        // The application did not fill the path: no need to start faster than the path.
        if self.mode == Mode::ProbeBw {
            self.set_pacing(GAIN_UNIT, Span::ZERO);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_over(sent.now);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.settle_timeout(ack);
        self.holds_back = false;
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

    fn on_congestion(&mut self, _congestion: &Congestion) {
        self.save_cwnd();
    }

    fn on_state(&mut self, _now: Time, state: RecoveryState) {
        if state == RecoveryState::Loss {
            self.prior_state = RecoveryState::Loss;
            self.full_pipe.on_timeout();
            self.timed_out = true;
        }
    }

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

    fn burst_packets(&self) -> Option<u32> {
        Some(self.min_burst())
    }

    fn holds_back(&self) -> bool {
        self.holds_back
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn mode(&self) -> &'static str {
        self.mode.name()
    }

    fn observe(&self, observer: &mut dyn Observer) {
        let gain = |gain: u64| gain as f64 / GAIN_UNIT as f64;
        let bps = |bandwidth| self.pacing.bits_per_s(bandwidth);
        observer.value("bottleneck_bps", bps(self.max_bandwidth()));
        observer.value("policed_bps", bps(self.long_term.bandwidth().unwrap_or(0)));
        observer.value("min_rtt_s", self.min_rtt_us.unwrap_or(0) as f64 * 1e-6);
        observer.value("pacing_gain", gain(self.pacing_gain));
        observer.value("cwnd_gain", gain(self.cwnd_gain));
        observer.value("round_count", self.rounds.count as f64);
        observer.value("extra_acked_packets", f64::from(self.aggregation.max_extra()));
        observer.value("prior_cwnd_packets", f64::from(self.prior_cwnd));
        observer.value("full_pipe", f64::from(u8::from(self.full_pipe.reached)));
    }
}
