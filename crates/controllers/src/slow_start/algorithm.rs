//! The interface of slow-start methods.

use jostle_registry::LinuxRelease;
use jostle_units::{Rate, Span, Time};

use crate::cwnd::CongestionWindow;
use jostle_congestion::QuickStartRate;
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, RawAckSample, SendEvent};

/// A slow-start method. It leaves slow start by setting `window.ssthresh`.
pub trait SlowStart: Send {
    /// Sets the kernel release that the controller follows. Called once, before all other methods.
    fn set_linux_release(&mut self, _kernel: LinuxRelease) {}

    /// Returns the rate that the SYN requests from the routers of the path (RFC 4782).
    fn rate_request(&self) -> QuickStartRate {
        QuickStartRate::NONE
    }

    /// Called when the handshake is complete. `window` contains the initial window, which the
    /// method may replace.
    fn on_established(&mut self, _window: &mut CongestionWindow, _established: &EstablishedEvent) {}

    /// Called when the payload of a packet changes. The pacing rate of a flight in progress remains
    /// the same.
    fn on_mss_change(&mut self, _mss_bytes: u32) {}

    /// Returns whether [`on_send`](Self::on_send) must be called. Asked once, when the connection is
    /// established.
    fn observes_sends(&self) -> bool {
        self.next_packet_gap().is_some()
    }

    /// Called after packets were sent, but only if the method
    /// [`observes_sends`](Self::observes_sends).
    fn on_send(&mut self, _window: &mut CongestionWindow, _sent: &SendEvent) {}

    /// Called when an ACK arrived, in slow start or later, before loss detection processes it. May
    /// set ssthresh only while `window.in_slow_start()`.
    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        _measurement: &RawAckSample,
    ) {
    }

    /// Called before an ACK increases the window, in slow start or later, even if the window may
    /// not grow.
    fn on_ack(&mut self, _window: &mut CongestionWindow, _ack: &AckSample) {}

    /// Increases the window for `ack.acked` packets. Returns the packets left over for congestion
    /// avoidance.
    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32;

    /// Called at a congestion signal, before congestion avoidance computes ssthresh from the window.
    fn before_congestion_event(
        &mut self,
        _window: &mut CongestionWindow,
        _congestion: &CongestionEvent,
    ) {
    }

    /// Called at a congestion signal, after congestion avoidance has set ssthresh.
    fn on_congestion_event(
        &mut self,
        _window: &mut CongestionWindow,
        _congestion: &CongestionEvent,
    ) {
    }

    /// Called when the last congestion signal proved to be spurious.
    fn on_undo(&mut self) {}

    /// Called at a retransmission timeout, which restarts slow start. `next_to_send` is `snd_nxt`.
    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {}

    /// Returns the required pacing rate; `None` leaves the choice to the transport. The rate may
    /// change with each call of a method.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Returns the time from the last packet to the next one, for a method that determines the
    /// spacing of each pair of packets. Packets are then sent one by one. Only used while there is
    /// a [`pacing_rate`](Self::pacing_rate). May change with each packet.
    fn next_packet_gap(&self) -> Option<Span> {
        None
    }

    /// Returns the largest number of packets that may be sent at once, if the method limits it.
    fn max_burst_packets(&self) -> Option<u32> {
        None
    }

    /// Returns the time at which [`on_wakeup`](Self::on_wakeup) must be called, if any.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Called at the time of [`next_wakeup`](Self::next_wakeup).
    fn on_wakeup(&mut self, _window: &mut CongestionWindow, _now: Time) {}

    /// Returns the name of the mode, for plots.
    fn mode(&self) -> &'static str {
        "slow_start"
    }
}
