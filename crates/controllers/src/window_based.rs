//! Window-based controllers: congestion avoidance combined with a slow-start method.

mod abe;
mod algorithm;

use alloc::boxed::Box;

use jostle_registry::ParameterValues;
use jostle_units::{Rate, Span, Time};

pub(crate) use abe::{Abe, BETA_ECN};
pub use algorithm::CongestionAvoidance;
pub(crate) use algorithm::{reno_increase, slow_start_or_remaining, slow_start_then_remaining};

use crate::cwnd::{CongestionWindow, INFINITE_SSTHRESH};
use crate::slow_start::SlowStart;
use jostle_congestion::QuickStartRate;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EcnFeedback, EcnMarks, EstablishedEvent, RawAckSample, RecoveryState, SendEvent, StateObserver,
    TcpExtension,
};

/// A [`CongestionController`] that combines congestion avoidance with a slow-start method.
pub struct WindowBasedController<L> {
    window: CongestionWindow,
    law: L,
    slow_start: Box<dyn SlowStart>,
    state: RecoveryState,
    /// cwnd before the last congestion signal.
    prior_cwnd: u32,
    /// ssthresh to restore if that signal was spurious; 0 if it cannot be undone.
    prior_ssthresh: u32,
    last_sent_at: Option<Time>,
    next_to_send: u64,
    /// Whether slow start is notified of sent packets.
    observes_sends: bool,
    /// Alternative Backoff with ECN.
    abe: Abe,
}

impl<L: CongestionAvoidance> WindowBasedController<L> {
    /// Combines `law` with `slow_start`.
    pub fn new(law: L, slow_start: Box<dyn SlowStart>) -> Self {
        Self {
            window: CongestionWindow::default(),
            law,
            slow_start,
            state: RecoveryState::Open,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            last_sent_at: None,
            next_to_send: 0,
            observes_sends: false,
            abe: Abe::default(),
        }
    }

    /// Enables the response to marks of the parameter [`BETA_ECN`].
    pub(crate) fn with_abe(mut self, values: &ParameterValues) -> Self {
        self.abe = Abe::new(values);
        self
    }

    /// Checks the invariants before and after each call.
    #[inline]
    fn check(&self) {
        let CongestionWindow { cwnd, ssthresh, clamp, .. } = self.window;
        debug_assert!(cwnd >= 1 && cwnd <= clamp, "cwnd {cwnd}, of at most {clamp}");
        debug_assert!(ssthresh >= 1, "ssthresh {ssthresh}");
    }

    /// Returns ssthresh for a window that is about to shrink (`tcp.h::tcp_current_ssthresh` in
    /// Linux): at least three quarters of cwnd, unless a reduction is in progress.
    fn current_ssthresh(&self) -> u32 {
        match self.state {
            RecoveryState::Cwr | RecoveryState::Recovery => self.window.ssthresh,
            _ => self.window.three_quarters().max(self.window.ssthresh),
        }
    }
}

impl<L: CongestionAvoidance> CongestionController for WindowBasedController<L> {
    fn required_ecn_feedback(&self) -> EcnFeedback {
        self.law.required_ecn_feedback()
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.law.on_ecn_negotiated(feedback);
    }

    fn on_established(&mut self, established: &EstablishedEvent) {
        self.window = CongestionWindow {
            cwnd: established.initial_window.max(1),
            ..CongestionWindow::default()
        };
        self.law.on_established(&mut self.window, established);
        self.slow_start.on_established(&mut self.window, established);
        self.observes_sends = self.slow_start.observes_sends();
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.law.on_mss_change(mss_bytes);
        self.slow_start.on_mss_change(mss_bytes);
    }

    fn on_send(&mut self, sent: &SendEvent) {
        if sent.prior_in_flight == 0 {
            let idle = self.last_sent_at.map_or(Span::ZERO, |last| sent.now.since(last));
            self.law.on_flight_start(&mut self.window, sent.now, idle);
        }
        self.last_sent_at = Some(sent.now);
        if self.observes_sends {
            self.slow_start.on_send(&mut self.window, sent);
        }
    }

    fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        self.next_to_send = measurement.next_to_send;
        self.law.on_ack_before_loss_detection(&mut self.window, measurement);
        self.slow_start.on_ack_before_loss_detection(&mut self.window, measurement);
    }

    fn on_ecn_feedback(&mut self, marks: &EcnMarks) {
        self.law.on_ecn_feedback(&mut self.window, marks);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.law.on_ack(&mut self.window, ack);
        self.slow_start.on_ack(&mut self.window, ack);
        if ack.can_increase_cwnd {
            let before = self.window.cwnd;
            self.law.on_cwnd_limited_ack(&mut self.window, self.slow_start.as_mut(), ack);
            // Half of the window is enough: pacing can prevent that a flight fills it.
            let used = ack.cwnd_limited || ack.prior_in_flight >= before.div_ceil(2);
            if !used && self.law.keeps_unused_window() {
                self.window.cwnd = self.window.cwnd.min(before);
            }
        }
        self.check();
    }

    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        self.next_to_send = congestion.next_to_send;
        self.prior_cwnd = self.window.cwnd;
        self.prior_ssthresh = match congestion.signal {
            // Linux never undoes a response to ECN or to a module (`tcp_input.c::tcp_enter_cwr`).
            CongestionSignal::Ecn | CongestionSignal::Request => 0,
            CongestionSignal::Loss | CongestionSignal::Timeout => self.current_ssthresh(),
        };
        self.slow_start.before_congestion_event(&mut self.window, congestion);
        let left = self.abe.cwnd_after_mark(&self.window, congestion);
        self.window.ssthresh = self.law.ssthresh_after(&self.window, congestion).max(left).max(2);
        self.window.count = 0;
        self.slow_start.on_congestion_event(&mut self.window, congestion);
        self.check();
    }

    fn take_cwr_request(&mut self) -> bool {
        self.law.take_cwr_request()
    }

    fn on_cwr_complete(&mut self, now: Time) {
        self.law.on_cwr_complete(&mut self.window, now);
        self.check();
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.law.on_idle_restart(&mut self.window, now);
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        self.state = state;
        self.law.on_recovery_state(&mut self.window, now, state);
        if state == RecoveryState::Loss {
            // Not in `on_congestion_event`, because only the first of several consecutive timeouts
            // signals.
            self.window.count = 0;
            self.slow_start.on_timeout(now, self.next_to_send);
        }
    }

    fn on_undo(&mut self, _now: Time) {
        if self.prior_ssthresh == 0 {
            return;
        }
        self.slow_start.on_undo();
        self.window.cwnd = self.law.cwnd_after_undo(&self.window, self.prior_cwnd).max(1);
        self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
        self.check();
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd.clamp(1, self.window.clamp);
    }

    fn set_ssthresh(&mut self, ssthresh: u32) {
        self.window.ssthresh = ssthresh.max(2);
    }

    fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        (self.window.ssthresh < INFINITE_SSTHRESH).then_some(self.window.ssthresh)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.slow_start.pacing_rate().or_else(|| self.law.pacing_rate(&self.window))
    }

    fn next_packet_gap(&self) -> Option<Span> {
        self.slow_start.next_packet_gap()
    }

    fn max_burst_packets(&self) -> Option<u32> {
        self.slow_start.max_burst_packets()
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Transport
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.slow_start.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.slow_start.on_wakeup(&mut self.window, now);
        self.check();
    }

    fn mode(&self) -> &'static str {
        if self.window.in_slow_start() { self.slow_start.mode() } else { self.law.mode() }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        self.law.observe(observer);
    }

    fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
        Some(self)
    }

    fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
        Some(self)
    }
}

impl<L: CongestionAvoidance> TcpExtension for WindowBasedController<L> {
    fn quick_start_request(&self) -> QuickStartRate {
        self.slow_start.rate_request()
    }

    fn ignores_receive_window(&self) -> bool {
        false
    }

    fn wants_ack_events(&self) -> bool {
        self.law.wants_ack_events()
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        self.law.on_ack_event(&mut self.window, now, slow_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reno(cwnd: u32) -> WindowBasedController<crate::algorithms::Reno> {
        let mut reno = WindowBasedController::new(
            crate::algorithms::Reno,
            Box::new(crate::slow_start::Standard),
        );
        reno.set_cwnd(cwnd);
        reno
    }

    fn signal(controller: &mut dyn CongestionController, signal: CongestionSignal) {
        controller.on_congestion_event(&CongestionEvent {
            now: Time::ZERO,
            signal,
            in_flight: 0,
            next_to_send: 0,
        });
    }

    #[test]
    fn undo_restores_the_window_and_three_quarters_of_it_as_threshold() {
        let mut controller = reno(100);
        signal(&mut controller, CongestionSignal::Loss);
        controller.set_cwnd(50);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (50, Some(50)));
        controller.on_undo(Time::ZERO);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (100, None));
        controller.set_ssthresh(60);
        signal(&mut controller, CongestionSignal::Timeout);
        controller.set_cwnd(1);
        controller.on_undo(Time::ZERO);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (100, Some(75)));
    }

    #[test]
    fn the_answer_to_a_mark_cannot_be_undone() {
        let mut controller = reno(100);
        signal(&mut controller, CongestionSignal::Loss);
        signal(&mut controller, CongestionSignal::Ecn);
        controller.set_cwnd(50);
        controller.on_undo(Time::ZERO);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (50, Some(50)));
    }

    #[test]
    fn a_timeout_during_recovery_keeps_the_reduced_threshold_for_undo() {
        let mut controller = reno(100);
        signal(&mut controller, CongestionSignal::Loss);
        controller.on_recovery_state(Time::ZERO, RecoveryState::Recovery);
        signal(&mut controller, CongestionSignal::Timeout);
        controller.on_undo(Time::ZERO);
        assert_eq!(controller.ssthresh(), Some(50));
    }

    /// Counts what its controller tells it.
    #[derive(Default)]
    struct CallCounter {
        flights: Vec<Span>,
    }

    impl CongestionAvoidance for CallCounter {
        fn on_flight_start(&mut self, _window: &mut CongestionWindow, _now: Time, idle: Span) {
            self.flights.push(idle);
        }

        fn increase_cwnd(&mut self, _window: &mut CongestionWindow, _acked: u32, _ack: &AckSample) {
        }

        fn ssthresh_after(
            &mut self,
            _window: &CongestionWindow,
            _congestion: &CongestionEvent,
        ) -> u32 {
            2
        }
    }

    #[test]
    fn a_flight_starts_when_nothing_is_in_flight() {
        let mut controller = WindowBasedController::new(
            CallCounter::default(),
            Box::new(crate::slow_start::Standard),
        );
        for (at_ms, prior_in_flight) in [(10, 0), (20, 10), (500, 0)] {
            controller.on_send(&SendEvent {
                now: Time::ZERO + Span::from_ms(at_ms),
                packets: 1,
                total_sent: 1,
                next_to_send: 1,
                prior_in_flight,
                after_idle: false,
            });
        }
        assert_eq!(controller.law.flights, [Span::ZERO, Span::from_ms(480)]);
    }
}
