//! Losses of packets that were sent, one file per kind.

mod gilbert_elliott;
mod independent;
mod outages;
mod steps;

pub use gilbert_elliott::{GilbertElliott, ROW as GILBERT_ELLIOTT, Transitions};
pub use independent::ROW as INDEPENDENT;
pub use outages::{ENTRY as OUTAGES, Outages};
pub use steps::Steps;

use jostle_units::Time;

use crate::packet::Reason;

/// Loss on a link. Calls come in order of time.
pub trait Loss: Send {
    /// Whether the packet that has been sent at `now` is lost, and why.
    fn verdict(&mut self, now: Time) -> Option<Reason>;

    /// Time has passed until `now`, and no packet that was sent before it is still to be judged: a
    /// chance to draw what would otherwise be drawn all at once for the next packet. Verdicts are
    /// the same with and without.
    fn pass(&mut self, _now: Time) {}
}
