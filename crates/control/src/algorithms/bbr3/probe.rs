//! What BBR v3 knows of its probes for bandwidth, and the largest rate that they found.

use jostle_units::{Span, Time};

use crate::algorithms::bbr::model::Resize;

/// What ACKs say of the probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
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
    /// `probe_up_cnt`: packets acknowledged for each by which the long-term bound rises.
    pub(super) up_count: u32,
    /// `prev_probe_too_high`.
    pub(super) too_high: bool,
    /// `prev_probe_precautionary`.
    pub(super) precautionary: bool,
}

/// `MaxBwFilterLen`: the largest rate of the present and of the previous cycle.
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

    /// Packets have got another size.
    pub(super) fn resize(&mut self, resize: Resize) {
        self.previous = resize.bandwidth(self.previous);
        self.present = resize.bandwidth(self.present);
    }

    /// `AdvanceMaxBwFilter`; a cycle without samples is not worth forgetting another for.
    pub(super) fn advance(&mut self) {
        if self.present > 0 {
            *self = Self { previous: self.present, present: 0 };
        }
    }
}
