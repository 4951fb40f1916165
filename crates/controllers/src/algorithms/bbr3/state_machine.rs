//! State machine of BBR v3: Startup, Drain and the four states of ProbeBW (draft-ietf-ccwg-bbr,
//! "State Machine Operation").

use jostle_units::{Span, Time};

use super::Bbr3;
use super::bounds::{ExcessiveInflight, UNBOUNDED};
use super::parameters::Flavour;
use super::probe::Feedback;
use super::state::{Cause, State};
use crate::algorithms::bbr::model::GAIN_UNIT;
use jostle_congestion::AckSample;

impl Bbr3 {
    /// Changes the state. All transitions use this function.
    pub(super) fn enter(&mut self, next: State, cause: Cause) {
        debug_assert!(
            cause.allows(self.state, next),
            "{} cannot follow {} ({cause:?})",
            next.name(),
            self.state.name(),
        );
        self.state = next;
    }

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
            self.enter_drain();
        }
    }

    /// `EnterDrain`.
    pub(super) fn enter_drain(&mut self) {
        self.enter(State::Drain, Cause::Model);
        self.drain_start_round = self.rounds.count;
        // Only for display, not part of the draft: the end of slow start (as in Linux).
        self.ssthresh = Some(self.inflight(self.max_bandwidth.get(), GAIN_UNIT));
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, ack: &AckSample) {
        if self.state == State::Drain
            && (ack.in_flight <= self.inflight(self.bandwidth, GAIN_UNIT)
                // A rate that competing flows inflated could never be drained to.
                || self.rounds.count > self.drain_start_round + 3)
        {
            self.start_down(ack.now, ack.delivered);
        }
    }

    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Time, delivered: u64) {
        self.latest.reset();
        self.release.start_cycle();
        self.pick_probe_wait();
        self.probe.cycle_start = now;
        self.probe.feedback = Feedback::Stopping;
        self.rounds.restart(delivered);
        self.enter(State::Down, Cause::Model);
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_cruise(&mut self) {
        let bounds = &mut self.bounds;
        if self.parameters.flavour == Flavour::Google && bounds.inflight_short != UNBOUNDED {
            // `bbr_start_bw_probe_cruise`; the draft only changes the state.
            bounds.inflight_short = bounds.inflight_short.min(bounds.inflight_long);
        }
        self.enter(State::Cruise, Cause::Model);
    }

    /// `StartProbeBW_REFILL`. The long-term bound will grow by 2^`up_rounds` in the first round of
    /// the probe.
    pub(super) fn start_refill(&mut self, delivered: u64, up_rounds: u32, cause: Cause) {
        self.bounds.reset_short();
        (self.probe.up_rounds, self.probe.up_acked) = (up_rounds, 0);
        self.probe.precautionary = false;
        // Discards the feedback of the previous phase: a probe that is still stopping no longer
        // ages the bandwidth.
        self.probe.feedback = Feedback::Refilling;
        self.rounds.restart(delivered);
        self.enter(State::Refill, cause);
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, ack: &AckSample) {
        self.probe.feedback = Feedback::Starting;
        self.rounds.restart(ack.delivered);
        self.plateau.restart(self.sample_bandwidth);
        self.enter(State::Up, Cause::Model);
        self.raise_slope();
    }

    /// `PickProbeWait`: random, so that flows do not probe at the same time.
    fn pick_probe_wait(&mut self) {
        self.probe.rounds_since = self.random.below(2) as u32;
        let extra = Span::from_ns(self.random.below(1_000_000_000));
        self.probe.wait = self.parameters.bw_probe_wait + extra;
    }

    /// `IsTimeToProbeBW`.
    fn is_time_to_probe<const RELEASE: bool>(&self, now: Time) -> bool {
        // At most the number of rounds after which Reno would lose a packet at this window.
        let reno_rounds =
            self.target_inflight::<RELEASE>().min(self.parameters.bw_probe_max_rounds);
        now > self.probe.cycle_start + self.probe.wait || self.probe.rounds_since >= reno_rounds
    }

    /// `UpdateProbeBWCyclePhase`, which the draft runs "on each ACK that acknowledges new data".
    pub(super) fn update_cycle<const RELEASE: bool>(&mut self, ack: &AckSample) {
        if !self.full_pipe
            || ack.acked == 0 && !RELEASE
            || self.adapt_long_term::<RELEASE>(ack)
            || !self.state.is_probe_bw()
        {
            return;
        }
        match self.state {
            State::Down | State::Cruise => self.wait_for_probe::<RELEASE>(ack),
            State::Refill if self.rounds.started => {
                self.probe.samples = true;
                self.start_up(ack);
            }
            State::Up => self.end_probe::<RELEASE>(ack),
            _ => {}
        }
    }

    /// `IsTimeToProbeBW` and `IsTimeToCruise`, and the resulting transitions.
    fn wait_for_probe<const RELEASE: bool>(&mut self, ack: &AckSample) {
        let after_marks = if RELEASE { self.reprobes_after_marks(ack) } else { None };
        if after_marks.is_some() || self.is_time_to_probe::<RELEASE>(ack.now) {
            self.start_refill(ack.delivered, after_marks.unwrap_or(0), Cause::Model);
        } else if self.state == State::Down && self.is_time_to_cruise::<RELEASE>(ack) {
            self.start_cruise();
        }
    }

    /// `IsTimeToGoDown` and the resulting transition.
    fn end_probe<const RELEASE: bool>(&mut self, ack: &AckSample) {
        if self.is_time_to_go_down::<RELEASE>(ack) {
            // "no high loss (yet)": the feedback of the last round trip is still outstanding.
            self.probe.too_high = false;
            self.start_down(ack.now, ack.delivered);
        }
    }

    fn is_time_to_cruise<const RELEASE: bool>(&self, ack: &AckSample) -> bool {
        let in_flight =
            if RELEASE { self.in_network(ack, ack.prior_in_flight) } else { ack.in_flight };
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.max_bandwidth.get(), GAIN_UNIT)
    }

    fn is_time_to_go_down<const RELEASE: bool>(&mut self, ack: &AckSample) -> bool {
        let long = self.bounds.inflight_long;
        // "Precautionary Bandwidth Probing: Deceleration". `C.inflight` is the number of packets in
        // flight before the ACK (`prior_in_flight` in Linux). The bound limits cwnd, and after an
        // ACK fewer packets are always in flight.
        let in_flight =
            if RELEASE { self.in_network(ack, ack.prior_in_flight) } else { ack.prior_in_flight };
        if self.parameters.precautionary && self.probe.too_high && in_flight >= long {
            self.probe.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.cwnd >= long {
            // The bound and not the path limits the rate, so that a plateau has no meaning.
            self.plateau.restart(self.sample_bandwidth);
            return false;
        }
        self.plateau.reached
    }

    /// `AdaptLongTermModel`. Returns whether it changed the state.
    fn adapt_long_term<const RELEASE: bool>(&mut self, ack: &AckSample) -> bool {
        if self.rounds.started && self.on_probe_round(ack) {
            return true;
        }
        let long = self.bounds.inflight_long;
        // In the draft, only lost packets reveal flights that were too high (`HandleLostPacket`).
        // Without a bound there is nothing to adapt.
        if long == UNBOUNDED && !RELEASE {
            return false;
        }
        if self.is_ack_too_high::<RELEASE>(ack) {
            if RELEASE && self.probe.samples {
                self.handle_inflight_too_high(&ExcessiveInflight {
                    now: ack.now,
                    delivered: ack.delivered,
                    app_limited: ack.app_limited,
                    in_flight: ack.in_flight_at_send,
                });
            }
            return false;
        }
        if long == UNBOUNDED {
            return false;
        }
        self.bounds.inflight_long = long.max(ack.in_flight_at_send);
        if self.state == State::Up {
            self.raise_long_term(ack);
        }
        false
    }

    /// Processes the end of a round's feedback on the probe. Returns whether another probe follows.
    fn on_probe_round(&mut self, ack: &AckSample) -> bool {
        match self.probe.feedback {
            Feedback::Starting => self.probe.feedback = Feedback::Full,
            Feedback::Stopping => {
                // The feedback on the complete probe arrived one round after its end.
                self.probe.samples = false;
                self.probe.feedback = Feedback::None;
                // "if (IsInAProbeBWState() && !RS.is_app_limited)": neither holds for a probe that
                // ProbeRTT ended early. Its round ends in ProbeRTT, and the samples of the round
                // after ProbeRTT are marked by `MarkConnectionAppLimited`.
                if self.state.is_probe_bw() && !ack.app_limited {
                    self.max_bandwidth.advance();
                }
                // "Precautionary Bandwidth Probing: Acceleration"
                let probe = self.probe;
                if self.state.is_probe_bw() && probe.precautionary && !probe.too_high {
                    self.start_refill(ack.delivered, 0, Cause::Model);
                    return true;
                }
            }
            _ => {}
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
        self.release.is_settled = false;
        if self.rounds.started {
            self.raise_slope();
        }
    }
}
