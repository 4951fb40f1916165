//! Propagation delays, one file per kind.

mod constant;
mod jitter;
mod quantiles;
mod steps;

pub use constant::{Constant, ENTRY as CONSTANT};
pub use jitter::{ENTRY as JITTER, Jitter};
pub use quantiles::Quantiles;
pub use steps::{ENTRY as STEPS, Steps};

use jostle_units::{Span, Time};

/// Propagation delay of a link over time.
pub trait Delay: Send {
    /// Returns the delay of a packet that was sent at `now`. `now` must not decrease from call to
    /// call.
    fn delay(&mut self, now: Time) -> Span;

    /// Returns the delay of all packets, if it never changes.
    fn constant(&self) -> Option<Span> {
        None
    }

    /// Returns whether a packet can overtake its predecessor. If not, the link delays it until the
    /// predecessor has arrived. The result never changes.
    fn may_reorder(&self) -> bool {
        false
    }
}
