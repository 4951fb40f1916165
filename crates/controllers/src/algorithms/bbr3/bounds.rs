//! Bounds of the short-term and long-term model of BBR v3, the congestion signals of a round, and
//! the state that an undo restores.

use jostle_units::Time;

use super::state::State;
use crate::algorithms::bbr::model::MssChange;
use jostle_congestion::AckSample;

/// "Infinity" of the draft: no bound.
pub(super) const UNBOUNDED: u32 = u32::MAX;
pub(super) const UNBOUNDED_BANDWIDTH: u64 = u64::MAX;

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

    /// Restores the bounds that were reduced since `saved`.
    pub(super) fn raise_to(&mut self, saved: &Self) {
        self.bandwidth_short = self.bandwidth_short.max(saved.bandwidth_short);
        self.inflight_short = self.inflight_short.max(saved.inflight_short);
        self.inflight_long = self.inflight_long.max(saved.inflight_long);
    }

    /// Adapts to a new packet size.
    pub(super) fn resize(&mut self, resize: MssChange) {
        if let Some(bandwidth) = self.short_bandwidth() {
            self.bandwidth_short = resize.bandwidth(bandwidth);
        }
    }

    /// `bw_shortterm`, if there is one.
    pub(super) fn short_bandwidth(&self) -> Option<u64> {
        (self.bandwidth_short < UNBOUNDED_BANDWIDTH).then_some(self.bandwidth_short)
    }
}

/// Delivery and losses of the current round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestDelivery {
    /// `bw_latest`.
    pub(super) bandwidth: u64,
    /// `inflight_latest`.
    pub(super) inflight: u32,
    /// `loss_round_delivered`.
    round_end: u64,
    /// `loss_round_start`.
    pub(super) round_started: bool,
    /// `loss_in_round`.
    pub(super) lossy: bool,
    /// Number of separate gaps of lost packets in the round.
    pub(super) gaps: u32,
    last_lost: Option<u64>,
}

impl LatestDelivery {
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
    pub(super) fn note_loss(&mut self, delivered: u64) -> bool {
        let first = !core::mem::replace(&mut self.lossy, true);
        if first {
            // The next round shows what the path delivers while it loses packets.
            self.round_end = delivered;
        }
        first
    }

    /// Counts the gaps between lost packets.
    pub(super) fn count_gap(&mut self, number: u64) {
        if self.last_lost.is_none_or(|last| last + 1 != number) {
            self.gaps = self.gaps.saturating_add(1);
        }
        self.last_lost = Some(number);
    }
}

/// A flight with too many losses or marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExcessiveInflight {
    pub(super) now: Time,
    /// Packets delivered since the connection began.
    pub(super) delivered: u64,
    pub(super) app_limited: bool,
    /// Packets in flight that were too many.
    pub(super) in_flight: u32,
}

/// State to restore if the losses prove to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) bounds: Bounds,
    /// State that ended because of the losses.
    pub(super) ended: Option<State>,
}
