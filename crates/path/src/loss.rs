//! Losses of packets that were sent, one file per kind.

mod gilbert_elliott;
mod independent;
mod outages;

pub use gilbert_elliott::{GilbertElliott, ROW as GILBERT_ELLIOTT, Transitions};
pub use independent::ROW as INDEPENDENT;
pub use outages::{ENTRY as OUTAGES, Outages};

use jostle_units::Time;

use crate::packet::Reason;

/// Loss on a link. Calls come in order of time.
pub trait Loss: Send {
    /// Whether the packet that has been sent at `now` is lost, and why.
    fn verdict(&mut self, now: Time) -> Option<Reason>;
}
