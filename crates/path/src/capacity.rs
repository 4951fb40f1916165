//! Capacities: how long a link takes to send, one file per kind.

mod autoregressive;
mod constant;
mod serialiser;
mod steps;
mod trace;

pub use autoregressive::{Autoregressive, ENTRY as AUTOREGRESSIVE, Process};
pub use constant::{Constant, ENTRY as CONSTANT};
pub use steps::{ENTRY as STEPS, Steps};
pub use trace::{ENTRY as TRACE, Trace};

use jostle_units::{Rate, Time};

/// A link's sending rate over time. Lazily asked: `start` and `now` of all calls come in order of
/// time.
pub trait Capacity: Send {
    /// When a packet of `size_bytes` that starts to be sent at `start` has been sent;
    /// [`Time::NEVER`] if the link stops for good. Calls come with `start` never before the result
    /// of the previous call.
    fn finish(&mut self, start: Time, size_bytes: u32) -> Time;

    /// The rate, if it never changes.
    fn constant(&self) -> Option<Rate> {
        None
    }

    /// Bytes that could have been sent from the start of the run until `now`: what utilisation is
    /// measured against.
    fn offered_bytes(&mut self, now: Time) -> f64;
}
