//! State of BBR v3's probes for bandwidth, and the maximum bandwidth filter.

use jostle_units::{Span, Time};

use crate::algorithms::bbr::model::MssChange;

/// Meaning of ACKs for the probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Full,
    Stopping,
}

/// A probe for bandwidth: its time, its progress, and the growth of the long-term bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    pub(super) feedback: Feedback,
    /// `bw_probe_samples`: ACKs now cover what was sent while probing.
    pub(super) samples: bool,
    /// `cycle_stamp`.
    pub(super) cycle_start: Time,
    /// `bw_probe_wait`.
    pub(super) wait: Span,
    /// `rounds_since_bw_probe`.
    pub(super) rounds_since: u32,
    /// `bw_probe_up_rounds`.
    pub(super) up_rounds: u32,
    /// `bw_probe_up_acked`.
    pub(super) up_acked: u32,
    /// `probe_up_cnt`: number of acknowledged packets per increase of the long-term bound by one.
    pub(super) up_count: u32,
    /// `prev_probe_too_high`.
    pub(super) too_high: bool,
    /// `prev_probe_precautionary`.
    pub(super) precautionary: bool,
}

/// `MaxBwFilterLen`: maximum bandwidth of the current and the previous cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

    /// Adapts to a new packet size.
    pub(super) fn resize(&mut self, resize: MssChange) {
        self.previous = resize.bandwidth(self.previous);
        self.present = resize.bandwidth(self.present);
    }

    /// `AdvanceMaxBwFilter`. A cycle without samples does not replace an older one.
    pub(super) fn advance(&mut self) {
        if self.present > 0 {
            *self = Self { previous: self.present, present: 0 };
        }
    }
}
