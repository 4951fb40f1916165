//! Modest BBR: BBR that reacts to losses.
//!
//! A layer over version 1: while BBR probes for bandwidth in the steady state, its window, and
//! optionally its pacing rate, are multiplied by a proportion. A loss reduces the proportion, and
//! it recovers afterwards. Everything else is BBR.

mod window_search;

use alloc::boxed::Box;

use jostle_registry::{LinuxRelease, RegistryEntry};
use jostle_units::{Rate, Time};

use self::window_search::{PARAMETERS, Parameters, WindowSearch};
use super::bbr::Bbr;
use crate::registry_rows::{ControllerEntry, ControllerInputs, SlowStartChoice};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent,
    LostPacket, RawAckSample, RecoveryState, SendEvent, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "modest-bbr",
        summary: "BBR that reduces cwnd by a binary search after a loss and restores it linearly",
        class: "hybrid",
        based_on: &["bbr"],
        source: "Zhang, Cui, Tso, \"Modest BBR: Enabling Better Fairness for BBR Congestion \
                 Control\", IEEE ISCC 2018",
        parameters: PARAMETERS,
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(ModestBbr::new(parts)),
};

/// The controller.
pub struct ModestBbr {
    bbr: Bbr,
    parameters: Parameters,
    /// Whether the proportion also applies to the pacing rate.
    paces: bool,
    search: WindowSearch,
}

impl ModestBbr {
    /// Creates a controller with the parameters and random numbers of `parts`. All parameters of
    /// BBR except the kernel have their defaults.
    fn new(parts: ControllerInputs) -> Self {
        let kernel = LinuxRelease::from_choice(parts.values.choice("linux"));
        Self {
            parameters: Parameters::new(&parts.values),
            paces: parts.values.choice("control") == "cwnd and pacing",
            bbr: Bbr::new(ControllerInputs { values: super::BBR.entry.defaults(), ..parts })
                .following(kernel),
            search: WindowSearch::default(),
        }
    }
}

impl CongestionController for ModestBbr {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.bbr.on_established(established);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.bbr.on_mss_change(mss_bytes);
    }

    fn on_send(&mut self, sent: &SendEvent) {
        self.bbr.on_send(sent);
    }

    fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        self.bbr.on_ack_before_loss_detection(measurement);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.bbr.on_packet_lost(lost);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.bbr.on_ack(ack);
        if self.bbr.is_steady() {
            let (round, target) = (self.bbr.round_started(), self.bbr.target());
            self.search.on_ack(&self.parameters, ack.lost > 0, round, target);
        } else {
            // STARTUP and the four packets of PROBE_RTT are not reduced, and reset the search.
            self.search = WindowSearch::default();
        }
    }

    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        self.bbr.on_congestion_event(congestion);
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        self.bbr.on_recovery_state(now, state);
    }

    fn on_undo(&mut self, now: Time) {
        self.bbr.on_undo(now);
        // The loss was spurious.
        self.search = WindowSearch::default();
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

    /// The dimension of "pacing rate = BtlBw · RTprop · Proportion" (equation 1) is a window. It is
    /// interpreted as pacing_gain · BtlBw · Proportion.
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.bbr.pacing_rate()?;
        if !self.paces || self.search.window().is_none() {
            return Some(rate);
        }
        let share = self.search.proportion();
        Some(Rate::from_bps(((rate.as_bps() as f64 * share) as u64).max(1)))
    }

    fn min_burst_packets(&self) -> Option<u32> {
        self.bbr.min_burst_packets()
    }

    fn limits_flight_on_purpose(&self) -> bool {
        self.bbr.limits_flight_on_purpose()
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        self.search.name().unwrap_or_else(|| self.bbr.mode())
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("proportion", self.search.proportion());
        self.bbr.observe(observer);
    }
}
