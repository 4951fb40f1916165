//! Modest BBR: BBR that gives way to losses.
//!
//! A layer over version 1: while BBR probes for bandwidth in the steady state, its window, and its
//! pacing rate if so told, are reduced to a proportion that a loss sets and that comes back
//! afterwards. Everything else is BBR.

mod search;

use jostle_catalogue::{Entry, Linux};
use jostle_units::{Rate, Time};

use self::search::{PARAMETERS, Parameters, Search};
use super::bbr::Bbr;
use crate::controller::{
    AckSample, Congestion, Controller, Established, LostPacket, Measurement, Observer,
    RecoveryOwner, RecoveryState, Sent,
};
use crate::row::{ControllerRow, Parts, Start};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "modest-bbr",
        summary: "BBR whose window gives way to a loss by a binary search and grows back linearly",
        class: "hybrid",
        based_on: &["bbr"],
        source: "Zhang, Cui, Tso, \"Modest BBR: Enabling Better Fairness for BBR Congestion \
                 Control\", IEEE ISCC 2018",
        parameters: PARAMETERS,
    },
    start: Start::Own,
    build: |parts| Box::new(ModestBbr::new(parts)),
};

/// The controller.
pub struct ModestBbr {
    bbr: Bbr,
    parameters: Parameters,
    /// The proportion holds for the pacing rate, too.
    paces: bool,
    search: Search,
}

impl ModestBbr {
    /// A controller with the parameters and random numbers of `parts`; BBR's own are at their
    /// defaults but for the kernel.
    fn new(parts: Parts) -> Self {
        let kernel = Linux::from_choice(parts.values.choice("linux"));
        Self {
            parameters: Parameters::new(&parts.values),
            paces: parts.values.choice("control") == "cwnd and pacing",
            bbr: Bbr::new(Parts { values: super::BBR.entry.defaults(), ..parts }).following(kernel),
            search: Search::default(),
        }
    }
}

impl Controller for ModestBbr {
    fn on_established(&mut self, established: &Established) {
        self.bbr.on_established(established);
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.bbr.on_packet_size(mss_bytes);
    }

    fn on_send(&mut self, sent: &Sent) {
        self.bbr.on_send(sent);
    }

    fn on_measurement(&mut self, measurement: &Measurement) {
        self.bbr.on_measurement(measurement);
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        self.bbr.on_lost(lost);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.bbr.on_ack(ack);
        if self.bbr.is_steady() {
            let (round, target) = (self.bbr.round_started(), self.bbr.target());
            self.search.on_ack(&self.parameters, ack.lost > 0, round, target);
        } else {
            // STARTUP and the four packets of PROBE_RTT are left alone, and forget what was before.
            self.search = Search::default();
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.bbr.on_congestion(congestion);
    }

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        self.bbr.on_state(now, state);
    }

    fn on_undo(&mut self, now: Time) {
        self.bbr.on_undo(now);
        // There was no loss to give way to.
        self.search = Search::default();
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.bbr.set_cwnd(cwnd);
    }

    fn cwnd(&self) -> u32 {
        self.search.window().unwrap_or(u32::MAX).min(self.bbr.cwnd())
    }

    fn ssthresh(&self) -> Option<u32> {
        self.bbr.ssthresh()
    }

    /// "pacing rate = BtlBw · RTprop · Proportion" (equation 1) is a window by its dimension: read
    /// as pacing_gain · BtlBw · Proportion.
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.bbr.pacing_rate()?;
        if !self.paces || self.search.window().is_none() {
            return Some(rate);
        }
        let share = self.search.proportion();
        Some(Rate::from_bps(((rate.as_bps() as f64 * share) as u64).max(1)))
    }

    fn burst_packets(&self) -> Option<u32> {
        self.bbr.burst_packets()
    }

    fn holds_back(&self) -> bool {
        self.bbr.holds_back()
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn mode(&self) -> &'static str {
        self.search.name().unwrap_or_else(|| self.bbr.mode())
    }

    fn observe(&self, observer: &mut dyn Observer) {
        observer.value("proportion", self.search.proportion());
        self.bbr.observe(observer);
    }
}
