//! A controller that does nothing of its own accord.

use jostle_units::Time;

use crate::controller::{AckSample, Congestion, Controller, Established, RecoveryOwner};

/// Keeps the window that it is given.
#[derive(Debug)]
pub(super) struct Held(u32);

impl Held {
    pub const fn new() -> Self {
        Self(1)
    }
}

impl Controller for Held {
    fn on_established(&mut self, established: &Established) {
        self.0 = established.initial_window.max(1);
    }

    fn on_ack(&mut self, _ack: &AckSample) {}

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.0 = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.0
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn mode(&self) -> &'static str {
        "learned"
    }
}
