//! Effect of losses on the bounds of BBR v3 (draft-ietf-ccwg-bbr, "Updating the Model Upon Packet
//! Loss").

use super::Bbr3;
use super::bounds::{ExcessiveInflight, UNBOUNDED, UNBOUNDED_BANDWIDTH, Undo};
use super::state::{Cause, State};
use jostle_congestion::{AckSample, LostPacket, RecoveryState};

impl Bbr3 {
    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostPacket) {
        self.delivered = lost.delivered;
        self.save_bounds();
        if self.latest.note_loss(lost.delivered) {
            self.save_cwnd();
        }
        self.latest.count_gap(lost.number);
        // Only losses of packets sent by a probe show that it was too high.
        if self.probe.samples
            && self.is_inflight_too_high(lost.lost_since_send, lost.in_flight_at_send)
        {
            self.handle_inflight_too_high(&ExcessiveInflight {
                now: lost.now,
                delivered: lost.delivered,
                app_limited: lost.app_limited,
                in_flight: self.inflight_at_loss(lost),
            });
        }
    }

    /// `IsInflightTooHigh`, for the round trip before a packet was delivered or lost.
    pub(super) fn is_inflight_too_high(&self, lost: u32, in_flight: u32) -> bool {
        f64::from(lost) > f64::from(in_flight) * self.parameters.loss_thresh
    }

    /// `IsInflightTooHigh` for the packets that an ACK delivered. Only the release checks marks.
    pub(super) fn is_ack_too_high<const RELEASE: bool>(&self, ack: &AckSample) -> bool {
        self.is_inflight_too_high(ack.lost_since_send, ack.in_flight_at_send)
            || RELEASE && self.release.ecn.is_too_high(ack)
    }

    /// `InflightAtLoss`: packets in flight when losses exceeded the threshold. The draft solves
    /// (lost_prev + x) / (inflight_prev + x) = LossThresh for the part x of a burst. Here bursts
    /// are single packets, so x is less than one. It is negative if losses from before the probe
    /// are included.
    fn inflight_at_loss(&self, lost: &LostPacket) -> u32 {
        let thresh = self.parameters.loss_thresh;
        let prior = f64::from(lost.in_flight_at_send) - 1.0;
        let prefix = (thresh * prior - (f64::from(lost.lost_since_send) - 1.0)) / (1.0 - thresh);
        (prior + prefix).max(0.0) as u32
    }

    /// `HandleInflightTooHigh`.
    pub(super) fn handle_inflight_too_high(&mut self, found: &ExcessiveInflight) {
        self.probe.too_high = true;
        // "only react once per bw probe"
        self.probe.samples = false;
        if !found.app_limited {
            let target = if self.is_release() {
                self.target_inflight::<true>()
            } else {
                self.target_inflight::<false>()
            };
            let floor = f64::from(target) * self.parameters.beta;
            self.bounds.inflight_long = found.in_flight.max(floor as u32);
        }
        if self.state == State::Up {
            self.remember_end(State::Up);
            self.start_down(found.now, found.delivered);
        }
    }

    /// `CheckStartupHighLoss`: ends Startup after a round trip in recovery with too many losses in
    /// several places.
    pub(super) fn check_startup_loss(&mut self, ack: &AckSample) {
        if !self.latest.round_started {
            return;
        }
        let gaps = core::mem::take(&mut self.latest.gaps);
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

    /// `UpdateCongestionSignals`, after the bandwidth is known: at the end of a lossy round the
    /// short-term bounds are set from the delivered data, unless a probe caused the losses.
    pub(super) fn adapt_short_term<const RELEASE: bool>(&mut self) {
        if !self.latest.round_started {
            return;
        }
        let lossy = core::mem::take(&mut self.latest.lossy);
        let marked = RELEASE && core::mem::take(&mut self.release.ecn.in_round);
        if self.state.is_probing() {
            return;
        }
        let bounds = &mut self.bounds;
        let before =
            if bounds.inflight_short == UNBOUNDED { self.cwnd } else { bounds.inflight_short };
        if lossy {
            if bounds.bandwidth_short == UNBOUNDED_BANDWIDTH {
                bounds.bandwidth_short = self.max_bandwidth.get();
            }
            let beta = self.parameters.beta;
            let lower = (bounds.bandwidth_short as f64 * beta) as u64;
            bounds.bandwidth_short = self.latest.bandwidth.max(lower);
            let lower = (f64::from(before) * beta) as u32;
            bounds.inflight_short = self.latest.inflight.max(lower);
        }
        if marked {
            // Only in the release (`bbr_adapt_lower_bounds`): "Adjust to the lower of the levels
            // implied by loss/ECN."
            let lower = self.release.ecn.lowered(before);
            bounds.inflight_short = bounds.inflight_short.min(lower);
        }
    }

    /// After a timeout has reduced cwnd, bounds that are not set yet start from the previous window
    /// (the draft would use the window of one packet).
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

    /// `SaveStateUponLoss`, its bounds: saved once per episode, before the first reaction. The text
    /// says "saved at the start of loss recovery", but `NoteLoss` of the draft would save them
    /// again in each lossy round and discard the values from before the first round.
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
        self.bounds.raise_to(&undo.bounds);
        match undo.ended {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe = false;
                if self.state != State::ProbeRtt {
                    self.enter(State::Startup, Cause::Undo);
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(self.delivered, 0, Cause::Undo);
            }
            _ => {}
        }
    }
}
