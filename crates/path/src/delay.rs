//! Delays after sending, one file per kind.

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
    /// Delay of a packet that has been sent at `now`. Calls come in order of time.
    fn delay(&mut self, now: Time) -> Span;

    /// The delay of all packets, if it never changes.
    fn constant(&self) -> Option<Span> {
        None
    }

    /// Whether a packet may overtake its predecessor. If not, the link holds it back. The answer
    /// never changes.
    fn may_reorder(&self) -> bool {
        false
    }
}
