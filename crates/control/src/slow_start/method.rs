//! What a slow-start method is.

use jostle_catalogue::Linux;
use jostle_units::{Rate, Span, Time};

use crate::controller::{AckSample, Congestion, Established, Measurement, Sent};
use crate::rate_code::RateCode;
use crate::window::Window;

/// A slow-start method. It leaves slow start by setting `window.ssthresh`.
pub trait SlowStart: Send {
    /// The controller it is composed with follows `kernel` (called once, before anything else).
    fn follow(&mut self, _kernel: Linux) {}

    /// Rate that the SYN asks the routers of the path for (RFC 4782).
    fn rate_request(&self) -> RateCode {
        RateCode::NONE
    }

    /// The handshake is complete; `window` holds the initial window, which may be replaced.
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {}

    /// Packets are of another payload from now on. A rate at which a flight is being sent remains.
    fn on_packet_size(&mut self, _mss_bytes: u32) {}

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
