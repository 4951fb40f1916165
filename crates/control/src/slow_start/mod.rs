//! Slow-start methods: what a window-based controller does below ssthresh. One file each.

mod capstart;
mod first_flight;
mod hystart;
mod hystart_plus_plus;
mod jumpstart;
mod limited;
mod paced_chirping;
mod quickstart;
mod search;
mod standard;
pub(crate) mod stopeg;
mod suss;

use jostle_units::{Rate, Span, Time};

use crate::controller::{AckSample, Congestion, Established, Measurement, Sent};
use crate::windowed::{Kernel, Window};

pub use capstart::CapStart;
pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;
pub use jumpstart::JumpStart;
pub use limited::Limited;
pub use paced_chirping::PacedChirping;
pub use quickstart::{QuickStart, RateCode};
pub use search::Search;
pub use standard::Standard;
pub use stopeg::StopEg;
pub use suss::Suss;

pub(crate) use capstart::ROW as CAPSTART;
pub(crate) use hystart::{PAPER_ROW as HYSTART_PAPER, ROW as HYSTART};
pub(crate) use hystart_plus_plus::ROW as HYSTART_PLUS_PLUS;
pub(crate) use jumpstart::ROW as JUMPSTART;
pub(crate) use limited::ROW as LIMITED;
pub(crate) use paced_chirping::ROW as PACED_CHIRPING;
pub(crate) use quickstart::ROW as QUICKSTART;
pub(crate) use search::ROW as SEARCH;
pub(crate) use standard::ROW as STANDARD;
pub(crate) use stopeg::ROW as STOPEG;
pub(crate) use suss::ROW as SUSS;

/// A slow-start method. It leaves slow start by setting `window.ssthresh`.
pub trait SlowStart: Send {
    /// The controller it is composed with follows `kernel` (called once, before anything else).
    fn follow(&mut self, _kernel: Kernel) {}

    /// Rate that the SYN asks the routers of the path for (RFC 4782).
    fn rate_request(&self) -> RateCode {
        RateCode::NONE
    }

    /// The handshake is complete; `window` holds the initial window, which may be replaced.
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {}

    /// Packets were sent. Only a method is told that has a [`packet_gap`](Self::packet_gap) when the
    /// connection is established.
    fn on_send(&mut self, _window: &mut Window, _sent: &Sent) {}

    /// An ACK arrived, during slow start or after it; loss detection has not yet seen it. Only
    /// while `window.in_slow_start()` may ssthresh be set.
    fn on_measurement(&mut self, _window: &mut Window, _measurement: &Measurement) {}

    /// An ACK was processed, during slow start or after it, whether the window may grow or not:
    /// before it grows.
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// Grow the window for `ack.acked` packets; returns those left over for congestion avoidance.
    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32;

    /// Congestion was signalled, and the law has set ssthresh.
    fn on_congestion(&mut self, _window: &mut Window, _congestion: &Congestion) {}

    /// The last congestion signal proved to be spurious.
    fn on_undo(&mut self) {}

    /// The retransmission timer expired: start anew. `next_to_send` is `snd_nxt`.
    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {}

    /// Rate at which packets must leave; none if the transport may choose. It may change whenever
    /// one of the methods here was called.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Time from the packet sent last to the next one, for a method that spaces every pair of them
    /// by itself: packets then leave one by one. Asked only while there is a
    /// [`pacing_rate`](Self::pacing_rate); it may change with every packet sent.
    fn packet_gap(&self) -> Option<Span> {
        None
    }

    /// When to call [`on_wakeup`](Self::on_wakeup); none if only events matter.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// The time of [`next_wakeup`](Self::next_wakeup) has come.
    fn on_wakeup(&mut self, _window: &mut Window, _now: Time) {}

    /// Name of the mode, for plots.
    fn mode(&self) -> &'static str {
        "slow_start"
    }
}
