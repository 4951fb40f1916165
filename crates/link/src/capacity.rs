//! Capacities: sending times of a link, one file per kind.

mod autoregressive;
mod constant;
mod serialiser;
mod steps;
mod trace;

pub use autoregressive::{Autoregressive, AutoregressiveParameters, ENTRY as AUTOREGRESSIVE};
pub use constant::{Constant, ENTRY as CONSTANT};
pub use steps::{ENTRY as STEPS, Steps};
pub use trace::{DeliveryTrace, ENTRY as TRACE};

use jostle_units::{Rate, Time};

/// Sending rate of a link over time. It is evaluated lazily: `start` and `now` must not decrease
/// from call to call.
pub trait Capacity: Send {
    /// Returns the time at which a packet of `size_bytes`, whose transmission begins at `start`,
    /// has been sent; [`Time::NEVER`] if the link stops for good. `start` must not be earlier than
    /// the result of the previous call.
    fn finish(&mut self, start: Time, size_bytes: u32) -> Time;

    /// Returns the rate, if it never changes.
    fn constant(&self) -> Option<Rate> {
        None
    }

    /// Returns the bytes that the capacity allowed from the start of the run until `now`, from
    /// which the service rate is computed ([`ServiceRate`](crate::ServiceRate)).
    fn offered_bytes(&mut self, now: Time) -> f64;

    /// Returns the next time after `now` at which the rate changes, or at which bytes are offered
    /// if they are offered in bursts; [`Time::NEVER`] if there is none.
    fn next_change(&mut self, now: Time) -> Time {
        let _ = now;
        Time::NEVER
    }

    /// Returns whether bytes are offered at single moments, and not at a rate.
    fn is_in_bursts(&self) -> bool {
        false
    }
}
