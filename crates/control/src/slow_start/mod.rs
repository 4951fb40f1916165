//! Slow-start methods: what a window-based controller does below ssthresh. One file each.

mod standard;

use crate::controller::{AckSample, Established, Measurement};
use crate::windowed::Window;

pub use standard::Standard;

pub(crate) use standard::ROW as STANDARD;

/// A slow-start method. It leaves slow start by setting `window.ssthresh`.
pub trait SlowStart: Send {
    /// The handshake is complete; `window` holds the initial window.
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {}

    /// An ACK arrived during slow start; loss detection has not yet seen it.
    fn on_measurement(&mut self, _window: &mut Window, _measurement: &Measurement) {}

    /// Grow the window for `ack.acked` packets; returns those left over for congestion avoidance.
    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32;

    /// The retransmission timer expired: start anew.
    fn on_timeout(&mut self) {}

    /// Name of the mode, for plots.
    fn mode(&self) -> &'static str {
        "slow_start"
    }
}
