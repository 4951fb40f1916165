//! What losses say of the path: the bounds of the short-term and the long-term model
//! (draft-ietf-ccwg-bbr, "Updating the Model Upon Packet Loss").

use super::Bbr3;
use super::states::State;
use crate::controller::{AckSample, LostPacket, RecoveryState};

/// "Infinity" of the draft: no bound.
pub(super) const UNBOUNDED: u32 = u32::MAX;
const UNBOUNDED_BANDWIDTH: u64 = u64::MAX;

/// Upper bounds of bandwidth and flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// `bw_shortterm`.
    pub(super) bandwidth_short: u64,
    /// `inflight_shortterm`.
    pub(super) inflight_short: u32,
    /// `inflight_longterm`.
    pub(super) inflight_long: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bandwidth_short: UNBOUNDED_BANDWIDTH,
            inflight_short: UNBOUNDED,
            inflight_long: UNBOUNDED,
        }
    }
}

impl Bounds {
    /// `ResetShortTermModel`.
    pub(super) fn reset_short(&mut self) {
        self.bandwidth_short = UNBOUNDED_BANDWIDTH;
        self.inflight_short = UNBOUNDED;
    }

    /// `bw_shortterm`, if there is one.
    pub(super) fn short_bandwidth(&self) -> Option<u64> {
        (self.bandwidth_short < UNBOUNDED_BANDWIDTH).then_some(self.bandwidth_short)
    }
}

/// What the path delivered in the present round, and what it lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// `bw_latest`.
    bandwidth: u64,
    /// `inflight_latest`.
    inflight: u32,
    /// `loss_round_delivered`.
    round_end: u64,
    /// `loss_round_start`.
    pub(super) round_started: bool,
    /// `loss_in_round`.
    lossy: bool,
    /// Gaps of lost packets in the round.
    gaps: u32,
    last_lost: Option<u64>,
}

impl Latest {
    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        (self.bandwidth, self.inflight, self.lossy) = (0, 0, false);
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn on_sample(&mut self, ack: &AckSample, bandwidth: u64, delivered: u32) {
        self.bandwidth = self.bandwidth.max(bandwidth);
        self.inflight = self.inflight.max(delivered);
        if ack.prior_delivered >= self.round_end {
            self.round_end = ack.delivered;
            self.round_started = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance(&mut self, bandwidth: u64, delivered: u32) {
        if self.round_started {
            (self.bandwidth, self.inflight) = (bandwidth, delivered);
        }
    }

    /// `NoteLoss`. Returns whether it is the first of the round.
    fn note_loss(&mut self, lost: &LostPacket) -> bool {
        let first = !std::mem::replace(&mut self.lossy, true);
        if first {
            // A round from here on shows what the path delivers while it loses.
            self.round_end = lost.delivered;
        }
        if self.last_lost.is_none_or(|last| last + 1 != lost.number) {
            self.gaps = self.gaps.saturating_add(1);
        }
        self.last_lost = Some(lost.number);
        first
    }
}

/// What to return to if the losses prove to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    bounds: Bounds,
    /// The state that the losses ended.
    ended: Option<State>,
}

impl Bbr3 {
    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostPacket) {
        self.delivered = lost.delivered;
        self.save_bounds();
        if self.latest.note_loss(lost) {
            self.save_cwnd();
        }
        // Only losses among what a probe has sent speak of its height.
        if self.probe.samples
            && self.is_inflight_too_high(lost.lost_since_send, lost.in_flight_at_send)
        {
            self.handle_inflight_too_high(lost);
        }
    }

    /// `IsInflightTooHigh`, over the round trip before a packet was delivered or lost.
    pub(super) fn is_inflight_too_high(&self, lost: u32, in_flight: u32) -> bool {
        f64::from(lost) > f64::from(in_flight) * self.parameters.loss_thresh
    }

    /// `InflightAtLoss`: the flight at which losses crossed the threshold. The draft solves
    /// (lost_prev + x) / (inflight_prev + x) = LossThresh for the part x of a burst. Packets here are
    /// single, so x is less than one; below nothing it goes where losses from before the probe took
    /// part.
    fn inflight_at_loss(&self, lost: &LostPacket) -> u32 {
        let thresh = self.parameters.loss_thresh;
        let prior = f64::from(lost.in_flight_at_send) - 1.0;
        let prefix = (thresh * prior - (f64::from(lost.lost_since_send) - 1.0)) / (1.0 - thresh);
        (prior + prefix).max(0.0) as u32
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, lost: &LostPacket) {
        self.probe.too_high = true;
        // "only react once per bw probe"
        self.probe.samples = false;
        if !lost.app_limited {
            let floor = f64::from(self.target_inflight()) * self.parameters.beta;
            self.bounds.inflight_long = self.inflight_at_loss(lost).max(floor as u32);
        }
        if self.state == State::Up {
            self.remember_end(State::Up);
            self.start_down(lost.now, lost.delivered);
        }
    }

    /// `CheckStartupHighLoss`: a round trip in recovery that lost too much, in several places.
    pub(super) fn check_startup_loss(&mut self, ack: &AckSample) {
        if !self.latest.round_started {
            return;
        }
        let gaps = std::mem::take(&mut self.latest.gaps);
        if self.full_pipe
            || ack.state != RecoveryState::Recovery
            || gaps < self.parameters.startup_full_loss_cnt
            || !self.is_inflight_too_high(ack.lost_since_send, ack.in_flight_at_send)
        {
            return;
        }
        self.full_pipe = true;
        self.remember_end(State::Startup);
        self.bounds.inflight_long = self.max_bdp().max(self.latest.inflight);
    }

    /// `UpdateCongestionSignals`, once the bandwidth is known: at the end of a lossy round the
    /// short-term bounds follow what was delivered, unless the losses are those of a probe.
    pub(super) fn adapt_short_term(&mut self) {
        if !self.latest.round_started {
            return;
        }
        if std::mem::take(&mut self.latest.lossy) && !self.state.is_probing() {
            let bounds = &mut self.bounds;
            if bounds.bandwidth_short == UNBOUNDED_BANDWIDTH {
                bounds.bandwidth_short = self.max_bandwidth.get();
            }
            if bounds.inflight_short == UNBOUNDED {
                bounds.inflight_short = self.cwnd;
            }
            let beta = self.parameters.beta;
            let lower = (bounds.bandwidth_short as f64 * beta) as u64;
            bounds.bandwidth_short = self.latest.bandwidth.max(lower);
            let lower = (f64::from(bounds.inflight_short) * beta) as u32;
            bounds.inflight_short = self.latest.inflight.max(lower);
        }
    }

    /// A timeout has cut cwnd: bounds that are still to be set start from the window before it (the
    /// draft would take the window of one packet).
    pub(super) fn bound_before_timeout(&mut self) {
        if !self.state.is_probing() && self.bounds.inflight_short == UNBOUNDED {
            self.bounds.inflight_short = self.cwnd.max(self.prior_cwnd);
        }
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let long = self.bounds.inflight_long;
        if long == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = (f64::from(long) * self.parameters.headroom) as u32;
        long.saturating_sub(headroom.max(1)).max(self.parameters.min_pipe_cwnd)
    }

    /// `SaveStateUponLoss`, its bounds: once an episode, before anything of it is answered. The text
    /// has them "saved at the start of loss recovery", while its `NoteLoss` would save them again in
    /// every lossy round and forget what the first one took.
    pub(super) fn save_bounds(&mut self) {
        self.undo.get_or_insert(Undo { bounds: self.bounds, ended: None });
    }

    fn remember_end(&mut self, state: State) {
        if let Some(undo) = &mut self.undo {
            undo.ended = Some(state);
        }
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn undo_loss(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.restore_cwnd();
        self.latest.lossy = false;
        self.plateau.restart(0);
        let (now, saved) = (&mut self.bounds, undo.bounds);
        now.bandwidth_short = now.bandwidth_short.max(saved.bandwidth_short);
        now.inflight_short = now.inflight_short.max(saved.inflight_short);
        now.inflight_long = now.inflight_long.max(saved.inflight_long);
        match undo.ended {
            Some(State::Startup) => {
                self.full_pipe = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(self.delivered);
            }
            _ => {}
        }
    }
}
