//! BBR v3's states: Startup, Drain, the four of ProbeBW, ProbeRTT.

use jostle_units::{Span, Time};

use super::Bbr3;
use super::bounds::UNBOUNDED;
use crate::algorithms::bbr::model::GAIN_UNIT;
use crate::controller::AckSample;

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Doubles the rate per round until the pipe is full.
    Startup,
    /// Drains the queue that Startup built.
    Drain,
    /// Sends less than is delivered, to drain what the probe queued and to leave headroom.
    Down,
    /// Sends as much as is delivered.
    Cruise,
    /// Fills the pipe for a round, so that the probe is not judged by what cruising left free.
    Refill,
    /// Probes for more bandwidth.
    Up,
    /// Halves the flight, to see the path's own RTT.
    ProbeRtt,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "probe_bw_down",
            Self::Cruise => "probe_bw_cruise",
            Self::Refill => "probe_bw_refill",
            Self::Up => "probe_bw_up",
            Self::ProbeRtt => "probe_rtt",
        }
    }

    /// `IsInAProbeBWState`.
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW`: losses are expected.
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// What ACKs say of the probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Full,
    Stopping,
}

/// The probe for bandwidth: when it is due, how it went, how far it raises the long-term bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    feedback: Feedback,
    /// `bw_probe_samples`: ACKs now cover what was sent while probing.
    pub(super) samples: bool,
    /// `cycle_stamp`.
    cycle_start: Time,
    /// `bw_probe_wait`.
    wait: Span,
    /// `rounds_since_bw_probe`.
    pub(super) rounds_since: u32,
    /// `bw_probe_up_rounds`.
    up_rounds: u32,
    /// `bw_probe_up_acked`.
    up_acked: u32,
    /// `probe_up_cnt`: packets acknowledged for each by which the long-term bound rises.
    up_count: u32,
    /// `prev_probe_too_high`.
    pub(super) too_high: bool,
    /// `prev_probe_precautionary`.
    precautionary: bool,
}

/// `MaxBwFilterLen`: the largest rate of the present and of the previous cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CycleMax {
    previous: u64,
    present: u64,
}

impl CycleMax {
    pub(super) fn get(&self) -> u64 {
        self.previous.max(self.present)
    }

    pub(super) fn update(&mut self, bandwidth: u64) {
        self.present = self.present.max(bandwidth);
    }

    /// `AdvanceMaxBwFilter`; a cycle without samples is not worth forgetting another for.
    pub(super) fn advance(&mut self) {
        if self.present > 0 {
            *self = Self { previous: self.present, present: 0 };
        }
    }
}

impl Bbr3 {
    pub(super) fn pacing_gain(&self) -> u64 {
        let p = &self.parameters;
        match self.state {
            State::Startup => p.startup_pacing_gain,
            State::Drain => p.drain_pacing_gain,
            State::Down => p.down_pacing_gain,
            State::Up => p.up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => GAIN_UNIT,
        }
    }

    pub(super) fn cwnd_gain(&self) -> u64 {
        match self.state {
            State::Up => self.parameters.up_cwnd_gain,
            State::ProbeRtt => self.parameters.probe_rtt_cwnd_gain,
            _ => self.parameters.default_cwnd_gain,
        }
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, ack: &AckSample) {
        self.check_startup_loss(ack);
        if self.state == State::Startup && self.full_pipe {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
            // Not of the draft, and only shown: where slow start ended (Linux does the same).
            self.ssthresh = Some(self.inflight(self.max_bandwidth.get(), GAIN_UNIT));
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, ack: &AckSample) {
        if self.state == State::Drain
            && (ack.in_flight <= self.inflight(self.bandwidth, GAIN_UNIT)
                // A rate that competitors inflated would never be drained to.
                || self.rounds.count > self.drain_start_round + 3)
        {
            self.start_down(ack.now, ack.delivered);
        }
    }

    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Time, delivered: u64) {
        self.latest.reset();
        self.pick_probe_wait();
        self.probe.cycle_start = now;
        self.probe.feedback = Feedback::Stopping;
        self.rounds.restart(delivered);
        self.state = State::Down;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self, delivered: u64) {
        self.bounds.reset_short();
        (self.probe.up_rounds, self.probe.up_acked) = (0, 0);
        self.probe.precautionary = false;
        self.probe.feedback = Feedback::Refilling;
        self.rounds.restart(delivered);
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, ack: &AckSample) {
        self.probe.feedback = Feedback::Starting;
        self.rounds.restart(ack.delivered);
        self.plateau.restart(self.sample_bandwidth);
        self.state = State::Up;
        self.raise_slope();
    }

    /// `PickProbeWait`: random, so that flows do not probe in step.
    fn pick_probe_wait(&mut self) {
        self.probe.rounds_since = self.random.below(2) as u32;
        let extra = Span::from_ns(self.random.below(1_000_000_000));
        self.probe.wait = self.parameters.bw_probe_wait + extra;
    }

    /// `IsTimeToProbeBW`.
    fn is_time_to_probe(&self, now: Time) -> bool {
        // As often as Reno would lose a packet in the same window, but at least so often.
        let reno_rounds = self.target_inflight().min(self.parameters.bw_probe_max_rounds);
        now > self.probe.cycle_start + self.probe.wait || self.probe.rounds_since >= reno_rounds
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, ack: &AckSample) {
        if !self.full_pipe || ack.acked == 0 || self.adapt_long_term(ack) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => {
                self.start_refill(ack.delivered);
            }
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.rounds.started => {
                self.probe.samples = true;
                self.start_up(ack);
            }
            State::Up => self.end_probe(ack),
            _ => {}
        }
    }

    /// `IsTimeToGoDown` and what follows.
    fn end_probe(&mut self, ack: &AckSample) {
        if self.is_time_to_go_down(ack) {
            // "no high loss (yet)": its last round trip is still to be heard of.
            self.probe.too_high = false;
            self.start_down(ack.now, ack.delivered);
        }
    }

    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        ack.in_flight <= self.inflight_with_headroom()
            && ack.in_flight <= self.inflight(self.max_bandwidth.get(), GAIN_UNIT)
    }

    fn is_time_to_go_down(&mut self, ack: &AckSample) -> bool {
        let long = self.bounds.inflight_long;
        // "Precautionary Bandwidth Probing: Deceleration". `C.inflight` is what the ACK found in
        // flight (`prior_in_flight` in Linux): the bound holds cwnd, and what an ACK leaves in flight
        // is always less.
        if self.parameters.precautionary && self.probe.too_high && ack.prior_in_flight >= long {
            self.probe.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.cwnd >= long {
            // The bound, not the path, holds the rate down: its plateau says nothing.
            self.plateau.restart(self.sample_bandwidth);
            return false;
        }
        self.plateau.reached
    }

    /// `AdaptLongTermModel`. Returns whether it decided on a state.
    fn adapt_long_term(&mut self, ack: &AckSample) -> bool {
        if self.rounds.started {
            match self.probe.feedback {
                Feedback::Starting => self.probe.feedback = Feedback::Full,
                Feedback::Stopping => {
                    // A round after the probe's end: all of it has been heard of.
                    self.probe.samples = false;
                    self.probe.feedback = Feedback::None;
                    if self.state.is_probe_bw() && !ack.app_limited {
                        self.max_bandwidth.advance();
                    }
                    // "Precautionary Bandwidth Probing: Acceleration"
                    let probe = self.probe;
                    if self.state.is_probe_bw() && probe.precautionary && !probe.too_high {
                        self.start_refill(ack.delivered);
                        return true;
                    }
                }
                _ => {}
            }
        }
        let long = self.bounds.inflight_long;
        if long == UNBOUNDED
            || self.is_inflight_too_high(ack.lost_since_send, ack.in_flight_at_send)
        {
            return false;
        }
        self.bounds.inflight_long = long.max(ack.in_flight_at_send);
        if self.state == State::Up {
            self.raise_long_term(ack);
        }
        false
    }

    /// `RaiseInflightLongtermSlope`: 1, 2, 4 … packets per round.
    fn raise_slope(&mut self) {
        self.probe.up_count = (self.cwnd >> self.probe.up_rounds).max(1);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
    }

    /// `ProbeInflightLongtermUpward`.
    fn raise_long_term(&mut self, ack: &AckSample) {
        if !ack.cwnd_limited || self.cwnd < self.bounds.inflight_long {
            return;
        }
        let probe = &mut self.probe;
        probe.up_acked = probe.up_acked.saturating_add(ack.acked);
        let raise = probe.up_acked / probe.up_count.max(1);
        probe.up_acked -= raise * probe.up_count;
        let raised = self.bounds.inflight_long.saturating_add(raise);
        self.bounds.inflight_long = raised.min(UNBOUNDED - 1);
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// `UpdateMinRTT`: the minimum that ProbeRTT keeps fresh, and the longer-lived one of the BDP.
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        let rtt = &mut self.min_rtt;
        rtt.expired = ack.now > rtt.recent_at + self.parameters.probe_rtt_interval;
        if let Some(sample) = ack.rtt {
            let us = sample.as_us();
            if rtt.expired || rtt.recent_us.is_none_or(|recent| us < recent) {
                (rtt.recent_us, rtt.recent_at) = (Some(us), ack.now);
            }
        }
        let outdated = ack.now > rtt.at + self.parameters.min_rtt_filter_len;
        if let Some(recent) = rtt.recent_us
            && (outdated || rtt.us.is_none_or(|us| recent < us))
        {
            (rtt.us, rtt.at) = (Some(recent), rtt.recent_at);
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample) {
        if self.state != State::ProbeRtt
            && self.min_rtt.expired
            && !self.idle_restart
            && !self.parameters.probe_rtt_duration.is_zero()
        {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt.enter();
            self.probe.feedback = Feedback::Stopping;
            self.rounds.restart(ack.delivered);
        }
        if self.state == State::ProbeRtt {
            self.stay_in_probe_rtt(ack);
        }
        if ack.acked > 0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn stay_in_probe_rtt(&mut self, ack: &AckSample) {
        self.holds_back = true;
        let (small, duration) = (self.probe_rtt_cwnd(), self.parameters.probe_rtt_duration);
        if self.probe_rtt.on_ack(ack, small, duration, &mut self.rounds) {
            self.check_probe_rtt_over(ack.now);
        }
    }

    /// `CheckProbeRTTDone`.
    pub(super) fn check_probe_rtt_over(&mut self, now: Time) {
        if !self.probe_rtt.is_over(now) {
            return;
        }
        self.min_rtt.recent_at = now;
        self.restore_cwnd();
        self.bounds.reset_short();
        if self.full_pipe {
            // The clock of the probes starts anew, but there is nothing to drain.
            self.start_down(now, self.delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
