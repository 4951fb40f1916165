//! What makes one window-based controller differ from another, and the steps that many share.

use jostle_units::{Rate, Span, Time};

use crate::controller::{
    AckSample, Congestion, EcnFeedback, Established, Marks, Measurement, Observer, RecoveryState,
};
use crate::slow_start::SlowStart;
use crate::window::Window;

/// Slow start, where it applies. Returns the packets for congestion avoidance; none if the window
/// was not the limit, or slow start took them all.
#[inline]
pub(crate) fn past_slow_start(
    window: &mut Window,
    slow_start: &mut dyn SlowStart,
    ack: &AckSample,
) -> Option<u32> {
    if !ack.cwnd_limited {
        return None;
    }
    if !window.in_slow_start() {
        return Some(ack.acked);
    }
    Some(slow_start.grow(window, ack)).filter(|&left_over| left_over > 0)
}

/// The same for those modules of Linux that lose what slow start leaves over at ssthresh.
#[inline]
pub(crate) fn instead_of_slow_start(
    window: &mut Window,
    slow_start: &mut dyn SlowStart,
    ack: &AckSample,
) -> Option<u32> {
    let slow = window.in_slow_start();
    past_slow_start(window, slow_start, ack).filter(|_| !slow)
}

/// Reno's growth (`tcp_reno_cong_avoid` in Linux), which other laws fall back on.
pub(crate) fn grow_as_reno(window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
    if let Some(acked) = past_slow_start(window, slow_start, ack) {
        window.additive_increase(window.cwnd, acked);
    }
}

/// What makes one window-based controller differ from another.
pub trait WindowLaw: Send {
    /// The feedback on marks that the law needs ([`Controller::needs_ecn`]).
    fn needs_ecn(&self) -> EcnFeedback {
        EcnFeedback::None
    }

    /// The feedback that it gets, once that is known.
    fn on_ecn_negotiated(&mut self, _feedback: EcnFeedback) {}

    /// The handshake is complete; `window` holds the initial window.
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {}

    /// Packets are of another payload from now on ([`Controller::on_packet_size`]).
    fn on_packet_size(&mut self, _mss_bytes: u32) {}

    /// Packets were sent while none was in flight (`CA_EVENT_TX_START` in Linux): the first flight,
    /// the first after an idle time, and the first after a timeout. `idle` has passed since the
    /// packet sent before them; zero for the first flight.
    fn on_flight_start(&mut self, _window: &mut Window, _now: Time, _idle: Span) {}

    /// An ACK arrived; loss detection has not yet seen it.
    fn on_measurement(&mut self, _window: &mut Window, _measurement: &Measurement) {}

    /// See [`TcpExtension::hears_headers`].
    fn hears_headers(&self) -> bool {
        false
    }

    /// The same ACK is about to reach loss detection ([`TcpExtension::on_ack_event`]). A transport
    /// that is no TCP does not tell of it.
    fn on_ack_event(&mut self, _window: &mut Window, _now: Time, _slow_path: bool) {}

    /// An ACK of a connection with ECN arrived; loss detection has not yet seen it
    /// ([`Controller::on_marks`]).
    fn on_marks(&mut self, _window: &mut Window, _marks: &Marks) {}

    /// An ACK was processed, whether the window may grow or not (`in_ack_event` in Linux).
    fn on_any_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// Grow the window (`cong_avoid` in Linux): slow start first, the rest by
    /// [`avoid`](Self::avoid). Laws whose slow start is their own replace this.
    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if let Some(acked) = past_slow_start(window, slow_start, ack) {
            self.avoid(window, acked, ack);
        }
    }

    /// Congestion avoidance for `acked` packets.
    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample);

    /// The slow-start threshold that answers a congestion signal, at least 2.
    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32;

    /// Recovery went from one state to another (`set_state` in Linux).
    fn on_state(&mut self, _window: &mut Window, _now: Time, _state: RecoveryState) {}

    /// Takes the law's request for a reduction
    /// ([`Controller::take_reduction_request`]); `tcp_enter_cwr` in Linux.
    fn take_reduction_request(&mut self) -> bool {
        false
    }

    /// A reduction by the transport is over (`CA_EVENT_COMPLETE_CWR` in Linux).
    fn on_reduction_end(&mut self, _window: &mut Window, _now: Time) {}

    /// The transport is about to shrink the window for a long silence (`CA_EVENT_CWND_RESTART` in
    /// Linux).
    fn on_idle_restart(&mut self, _window: &mut Window, _now: Time) {}

    /// cwnd after a spurious congestion signal, given the cwnd before it.
    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// Rate at which packets must leave, where slow start asks for none; none if the transport may
    /// choose.
    fn pacing_rate(&self, _window: &Window) -> Option<Rate> {
        None
    }

    /// Name of the mode outside slow start, for plots.
    fn mode(&self) -> &'static str {
        "avoidance"
    }

    /// Shows internal state to `observer`.
    fn observe(&self, _observer: &mut dyn Observer) {}
}
