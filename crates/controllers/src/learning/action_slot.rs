//! The slot in which an external agent stores the next action.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use jostle_units::Time;

use super::controller::Policy;
use super::design::MOST_ACTIONS;

/// State shared by a controller and an external agent. The controller reads it only at the end of
/// an interval. The agent writes it while the simulation is paused.
#[derive(Debug, Default)]
pub struct ActionSlot {
    /// End of the current interval, in ns; 0 before the connection is open.
    due_ns: AtomicU64,
    /// The next action, as bits.
    action: [AtomicU64; MOST_ACTIONS],
}

impl ActionSlot {
    /// Returns the end of the current interval; `None` while the connection is not open.
    pub fn interval_end(&self) -> Option<Time> {
        match self.due_ns.load(Ordering::Acquire) {
            0 => None,
            ns => Some(Time::from_ns(ns)),
        }
    }

    /// Sets the action for the end of the interval.
    pub fn set_action(&self, action: &[f64]) {
        for (place, value) in self.action.iter().zip(action) {
            place.store(value.to_bits(), Ordering::Release);
        }
    }
}

impl Policy for Arc<ActionSlot> {
    fn act(&mut self, _observation: &[f64]) -> [f64; MOST_ACTIONS] {
        core::array::from_fn(|i| f64::from_bits(self.action[i].load(Ordering::Acquire)))
    }

    fn set_next_decision(&mut self, due: Time) {
        self.due_ns.store(due.as_ns(), Ordering::Release);
    }
}
