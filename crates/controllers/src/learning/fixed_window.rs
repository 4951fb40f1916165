//! A controller that keeps its window constant.

use jostle_units::Time;

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent,
};

/// Keeps the window that it is given.
#[derive(Debug)]
pub(super) struct FixedWindow(u32);

impl FixedWindow {
    pub const fn new() -> Self {
        Self(1)
    }
}

impl CongestionController for FixedWindow {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.0 = established.initial_window.max(1);
    }

    fn on_ack(&mut self, _ack: &AckSample) {}

    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {}

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.0 = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.0
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        "learned"
    }
}
