//! Where somebody outside leaves what a controller is to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jostle_units::Time;

use super::controller::Decide;
use super::design::MOST_ACTIONS;

/// Shared by a controller and by whoever decides for it. Nothing is taken from it but at the ends of
/// intervals, one side at a time: whoever decides does so while the simulation is at rest.
#[derive(Debug, Default)]
pub struct Desk {
    /// End of the interval that is under way, in ns; 0 before the connection is open.
    due_ns: AtomicU64,
    /// The next action, as bits.
    action: [AtomicU64; MOST_ACTIONS],
}

impl Desk {
    /// When the interval under way ends; none while the connection is not open.
    pub fn due(&self) -> Option<Time> {
        match self.due_ns.load(Ordering::Acquire) {
            0 => None,
            ns => Some(Time::from_ns(ns)),
        }
    }

    /// What is to be done at the end of the interval.
    pub fn leave(&self, action: &[f64]) {
        for (place, value) in self.action.iter().zip(action) {
            place.store(value.to_bits(), Ordering::Release);
        }
    }
}

impl Decide for Arc<Desk> {
    fn decide(&mut self, _observation: &[f64]) -> [f64; MOST_ACTIONS] {
        std::array::from_fn(|i| f64::from_bits(self.action[i].load(Ordering::Acquire)))
    }

    fn expect(&mut self, due: Time) {
        self.due_ns.store(due.as_ns(), Ordering::Release);
    }
}
