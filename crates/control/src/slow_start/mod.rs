//! Slow-start methods: what a window-based controller does below ssthresh. One file each.

mod capstart;
mod hystart;
mod hystart_plus_plus;
mod limited;
mod search;
mod standard;
pub(crate) mod stopeg;

use jostle_units::Time;

use crate::controller::{AckSample, Established, Measurement};
use crate::windowed::{Kernel, Window};

pub use capstart::CapStart;
pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;
pub use limited::Limited;
pub use search::Search;
pub use standard::Standard;
pub use stopeg::StopEg;

pub(crate) use capstart::ROW as CAPSTART;
pub(crate) use hystart::{PAPER_ROW as HYSTART_PAPER, ROW as HYSTART};
pub(crate) use hystart_plus_plus::ROW as HYSTART_PLUS_PLUS;
pub(crate) use limited::ROW as LIMITED;
pub(crate) use search::ROW as SEARCH;
pub(crate) use standard::ROW as STANDARD;
pub(crate) use stopeg::ROW as STOPEG;

/// A slow-start method. It leaves slow start by setting `window.ssthresh`.
pub trait SlowStart: Send {
    /// The controller it is composed with follows `kernel` (called once, before anything else).
    fn follow(&mut self, _kernel: Kernel) {}

    /// The handshake is complete; `window` holds the initial window.
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {}

    /// An ACK arrived, during slow start or after it; loss detection has not yet seen it. Only
    /// while `window.in_slow_start()` may ssthresh be set.
    fn on_measurement(&mut self, _window: &mut Window, _measurement: &Measurement) {}

    /// Grow the window for `ack.acked` packets; returns those left over for congestion avoidance.
    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32;

    /// The retransmission timer expired: start anew. `next_to_send` is `snd_nxt`.
    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {}

    /// Name of the mode, for plots.
    fn mode(&self) -> &'static str {
        "slow_start"
    }
}
