//! Delays after sending, one file per kind.

use jostle_units::{Span, Time};

/// Propagation delay of a link over time.
pub trait Delay: Send {
    /// Delay of a packet that has been sent at `now`. Calls come in order of time.
    fn delay(&mut self, now: Time) -> Span;

    /// Whether a packet may overtake its predecessor. If not, the link holds it back.
    fn may_reorder(&self) -> bool {
        false
    }
}
