//! The interface of congestion avoidance algorithms, and steps that several of them share.

use jostle_units::{Rate, Span, Time};

use crate::cwnd::CongestionWindow;
use crate::estimators::RoundRtts;
use crate::slow_start::SlowStart;
use jostle_congestion::{
    AckSample, CongestionEvent, EcnFeedback, EcnMarks, EstablishedEvent, RawAckSample,
    RecoveryState, StateObserver,
};

/// Applies slow start if required. Returns the packets left over for congestion avoidance; 0 if the
/// flow was not cwnd-limited or slow start used all of them.
#[inline]
pub(crate) fn slow_start_then_remaining(
    window: &mut CongestionWindow,
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

/// Applies slow start like Linux modules that discard the packets left over at ssthresh.
#[inline]
pub(crate) fn slow_start_or_remaining(
    window: &mut CongestionWindow,
    slow_start: &mut dyn SlowStart,
    ack: &AckSample,
) -> Option<u32> {
    let slow = window.in_slow_start();
    slow_start_then_remaining(window, slow_start, ack).filter(|_| !slow)
}

/// Grows like Reno (`tcp_cong.c::tcp_reno_cong_avoid` in Linux), which other algorithms fall back on.
pub(crate) fn reno_increase(
    window: &mut CongestionWindow,
    slow_start: &mut dyn SlowStart,
    ack: &AckSample,
) {
    if let Some(acked) = slow_start_then_remaining(window, slow_start, ack) {
        window.additive_increase(window.cwnd, acked);
    }
}

/// A congestion avoidance algorithm of a window-based controller. The default methods are Reno's.
pub trait CongestionAvoidance: Send {
    /// Returns the ECN feedback that the algorithm requires
    /// ([`CongestionController::required_ecn_feedback`](jostle_congestion::CongestionController::required_ecn_feedback)).
    fn required_ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::None
    }

    /// Returns the RTTs per round, if the algorithm uses them. The default methods update them.
    fn round_rtts(&mut self) -> Option<&mut RoundRtts> {
        None
    }

    /// Reports the negotiated ECN feedback.
    fn on_ecn_negotiated(&mut self, _feedback: EcnFeedback) {}

    /// Called when the handshake is complete. `window` contains the initial window.
    fn on_established(&mut self, _window: &mut CongestionWindow, _established: &EstablishedEvent) {}

    /// Called when the payload of a packet changes
    /// ([`CongestionController::on_mss_change`](jostle_congestion::CongestionController::on_mss_change)).
    fn on_mss_change(&mut self, _mss_bytes: u32) {}

    /// Called after packets were sent while none was in flight (`CA_EVENT_TX_START` in Linux): in
    /// the first flight, the first after an idle time, and the first after a timeout. `idle`: time
    /// since the previous packet; zero for the first flight.
    fn on_flight_start(&mut self, _window: &mut CongestionWindow, _now: Time, _idle: Span) {
        if let Some(rtts) = self.round_rtts() {
            rtts.on_flight_start();
        }
    }

    /// Called when an ACK arrived, before loss detection processes it.
    fn on_ack_before_loss_detection(
        &mut self,
        _window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if let Some(rtts) = self.round_rtts() {
            rtts.on_ack_before_loss_detection(measurement);
        }
    }

    /// See [`TcpExtension::wants_ack_events`](jostle_congestion::TcpExtension::wants_ack_events).
    fn wants_ack_events(&self) -> bool {
        false
    }

    /// Called before loss detection processes the same ACK
    /// ([`TcpExtension::on_ack_event`](jostle_congestion::TcpExtension::on_ack_event)). Only TCP
    /// calls it.
    fn on_ack_event(&mut self, _window: &mut CongestionWindow, _now: Time, _slow_path: bool) {}

    /// Called when an ACK arrived on a connection with ECN, before loss detection processes it
    /// ([`CongestionController::on_ecn_feedback`](jostle_congestion::CongestionController::on_ecn_feedback)).
    fn on_ecn_feedback(&mut self, _window: &mut CongestionWindow, _marks: &EcnMarks) {}

    /// Called after an ACK was processed, even if the window may not grow (`in_ack_event` in
    /// Linux).
    fn on_ack(&mut self, _window: &mut CongestionWindow, _ack: &AckSample) {}

    /// Increases the window (`cong_avoid` in Linux): slow start first, then
    /// [`increase_cwnd`](Self::increase_cwnd). Algorithms with a built-in slow start override this
    /// method.
    fn on_cwnd_limited_ack(
        &mut self,
        window: &mut CongestionWindow,
        slow_start: &mut dyn SlowStart,
        ack: &AckSample,
    ) {
        if let Some(acked) = slow_start_then_remaining(window, slow_start, ack) {
            self.increase_cwnd(window, acked, ack);
        }
    }

    /// Returns whether the window does not increase while the flow does not use it (RFC 7661, RFC
    /// 9002 §7.8), although [`on_cwnd_limited_ack`](Self::on_cwnd_limited_ack) does not check this.
    fn keeps_unused_window(&self) -> bool {
        false
    }

    /// Applies congestion avoidance for `acked` packets.
    fn increase_cwnd(&mut self, window: &mut CongestionWindow, acked: u32, _ack: &AckSample) {
        window.additive_increase(window.cwnd, acked);
    }

    /// Returns the new ssthresh after a congestion signal, at least 2. RFC 5681 §3.1 (4) requires
    /// max(FlightSize / 2, 2 · SMSS). Linux halves cwnd instead, even if it was not fully used
    /// (`tcp_cong.c::tcp_reno_ssthresh`).
    fn ssthresh_after(&mut self, window: &CongestionWindow, congestion: &CongestionEvent) -> u32 {
        if let Some(rtts) = self.round_rtts() {
            rtts.on_congestion_event(congestion);
        }
        (window.cwnd / 2).max(2)
    }

    /// Called when the recovery state changed (`set_state` in Linux).
    fn on_recovery_state(
        &mut self,
        _window: &mut CongestionWindow,
        _now: Time,
        state: RecoveryState,
    ) {
        if let Some(rtts) = self.round_rtts() {
            rtts.on_recovery_state(state);
        }
    }

    /// Takes the algorithm's request for a reduction
    /// ([`CongestionController::take_cwr_request`](jostle_congestion::CongestionController::take_cwr_request));
    /// `tcp_input.c::tcp_enter_cwr` in Linux.
    fn take_cwr_request(&mut self) -> bool {
        false
    }

    /// Called when a reduction by the transport has ended (`CA_EVENT_COMPLETE_CWR` in Linux).
    fn on_cwr_complete(&mut self, _window: &mut CongestionWindow, _now: Time) {}

    /// Called before the transport reduces the window after a long idle time
    /// (`CA_EVENT_CWND_RESTART` in Linux).
    fn on_idle_restart(&mut self, _window: &mut CongestionWindow, _now: Time) {}

    /// Returns cwnd after a spurious congestion signal, given the cwnd before the signal.
    fn cwnd_after_undo(&mut self, window: &CongestionWindow, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// Returns the required pacing rate if slow start requires none; `None` leaves the choice to
    /// the transport.
    fn pacing_rate(&self, _window: &CongestionWindow) -> Option<Rate> {
        None
    }

    /// Returns the name of the mode outside of slow start, for plots.
    fn mode(&self) -> &'static str {
        "avoidance"
    }

    /// Reports internal state to `observer`.
    fn observe(&self, _observer: &mut dyn StateObserver) {}
}
