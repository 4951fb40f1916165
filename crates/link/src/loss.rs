//! Losses after the transmission, one file per kind.

mod gilbert_elliott;
mod independent;
mod outages;
mod steps;

pub use gilbert_elliott::{GilbertElliott, ROW as GILBERT_ELLIOTT, Transitions};
pub use independent::ROW as INDEPENDENT;
pub use outages::{ENTRY as OUTAGES, Outages};
pub use steps::Steps;

use jostle_units::Time;

use crate::packet::DropReason;

/// Loss process of a link. Times must not decrease from call to call.
pub trait Loss: Send {
    /// Returns the reason if the packet that was sent at `now` is lost.
    fn verdict(&mut self, now: Time) -> Option<DropReason>;

    /// Advances the process to `now`. Packets sent before `now` must not be evaluated later. This
    /// allows the process to draw random numbers early, instead of all at once for the next packet.
    /// Results do not change.
    fn advance_to(&mut self, _now: Time) {}
}
