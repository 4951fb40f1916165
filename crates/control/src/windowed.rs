//! Window-based controllers: a window law composed with a slow-start method.

mod abe;
mod law;

use jostle_catalogue::Values;
use jostle_units::{Rate, Span, Time};

pub(crate) use abe::{Abe, BETA_ECN};
pub use law::WindowLaw;
pub(crate) use law::{grow_as_reno, instead_of_slow_start, past_slow_start};

use crate::controller::{
    AckSample, Congestion, Controller, EcnFeedback, Established, Marks, Measurement, Observer,
    RecoveryOwner, RecoveryState, Sent, Signal, TcpExtension,
};
use crate::rate_code::RateCode;
use crate::slow_start::SlowStart;
use crate::window::{INFINITE_SSTHRESH, Window};

/// A [`Controller`] made of a law and a slow-start method.
pub struct Windowed<L> {
    window: Window,
    law: L,
    slow_start: Box<dyn SlowStart>,
    state: RecoveryState,
    /// cwnd before the last congestion signal.
    prior_cwnd: u32,
    /// ssthresh to return to if that signal was spurious; 0 if it cannot be undone.
    prior_ssthresh: u32,
    last_sent_at: Option<Time>,
    next_to_send: u64,
    /// The slow start is told of what is sent.
    spaces_packets: bool,
    /// How much less than a loss a mark costs.
    abe: Abe,
}

impl<L: WindowLaw> Windowed<L> {
    /// Composes `law` with `slow_start`.
    pub fn new(law: L, slow_start: Box<dyn SlowStart>) -> Self {
        Self {
            window: Window::default(),
            law,
            slow_start,
            state: RecoveryState::Open,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            last_sent_at: None,
            next_to_send: 0,
            spaces_packets: false,
            abe: Abe::default(),
        }
    }

    /// Answers marks as the parameter [`BETA_ECN`] says.
    pub(crate) fn with_abe(mut self, values: &Values) -> Self {
        self.abe = Abe::new(values);
        self
    }

    /// What holds after every call, and before it.
    #[inline]
    fn check(&self) {
        let Window { cwnd, ssthresh, clamp, .. } = self.window;
        debug_assert!(cwnd >= 1 && cwnd <= clamp, "cwnd {cwnd}, of at most {clamp}");
        debug_assert!(ssthresh >= 1, "ssthresh {ssthresh}");
    }

    /// ssthresh for a window about to shrink (`tcp_current_ssthresh` in Linux): three quarters of
    /// cwnd at least, unless a reduction is under way.
    fn current_ssthresh(&self) -> u32 {
        match self.state {
            RecoveryState::Cwr | RecoveryState::Recovery => self.window.ssthresh,
            _ => self.window.three_quarters().max(self.window.ssthresh),
        }
    }
}

impl<L: WindowLaw> Controller for Windowed<L> {
    fn needs_ecn(&self) -> EcnFeedback {
        self.law.needs_ecn()
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.law.on_ecn_negotiated(feedback);
    }

    fn on_established(&mut self, established: &Established) {
        self.window = Window { cwnd: established.initial_window.max(1), ..Window::default() };
        self.law.on_established(&mut self.window, established);
        self.slow_start.on_established(&mut self.window, established);
        self.spaces_packets = self.slow_start.packet_gap().is_some();
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.law.on_packet_size(mss_bytes);
        self.slow_start.on_packet_size(mss_bytes);
    }

    fn on_send(&mut self, sent: &Sent) {
        if sent.prior_in_flight == 0 {
            let idle = self.last_sent_at.map_or(Span::ZERO, |last| sent.now.since(last));
            self.law.on_flight_start(&mut self.window, sent.now, idle);
        }
        self.last_sent_at = Some(sent.now);
        if self.spaces_packets {
            self.slow_start.on_send(&mut self.window, sent);
        }
    }

    fn on_measurement(&mut self, measurement: &Measurement) {
        self.next_to_send = measurement.next_to_send;
        self.law.on_measurement(&mut self.window, measurement);
        self.slow_start.on_measurement(&mut self.window, measurement);
    }

    fn on_marks(&mut self, marks: &Marks) {
        self.law.on_marks(&mut self.window, marks);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.law.on_any_ack(&mut self.window, ack);
        self.slow_start.on_ack(&mut self.window, ack);
        if ack.may_grow {
            self.law.grow(&mut self.window, self.slow_start.as_mut(), ack);
        }
        self.check();
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.next_to_send = congestion.next_to_send;
        self.prior_cwnd = self.window.cwnd;
        self.prior_ssthresh = match congestion.signal {
            // Linux never takes back an answer to ECN or to a module (`tcp_enter_cwr`).
            Signal::Ecn | Signal::Request => 0,
            Signal::Loss | Signal::Timeout => self.current_ssthresh(),
        };
        let left = self.abe.left_by(&self.window, congestion);
        self.window.ssthresh = self.law.ssthresh(&self.window, congestion).max(left).max(2);
        self.window.count = 0;
        self.slow_start.on_congestion(&mut self.window, congestion);
        self.check();
    }

    fn take_reduction_request(&mut self) -> bool {
        self.law.take_reduction_request()
    }

    fn on_reduction_end(&mut self, now: Time) {
        self.law.on_reduction_end(&mut self.window, now);
        self.check();
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.law.on_idle_restart(&mut self.window, now);
    }

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        self.state = state;
        self.law.on_state(&mut self.window, now, state);
        if state == RecoveryState::Loss {
            // Not in `on_congestion`: of several timeouts in a row only the first one signals.
            self.window.count = 0;
            self.slow_start.on_timeout(now, self.next_to_send);
        }
    }

    fn on_undo(&mut self, _now: Time) {
        if self.prior_ssthresh == 0 {
            return;
        }
        self.slow_start.on_undo();
        self.window.cwnd = self.law.undo(&self.window, self.prior_cwnd).max(1);
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

    fn packet_gap(&self) -> Option<Span> {
        self.slow_start.packet_gap()
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Transport
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

    fn observe(&self, observer: &mut dyn Observer) {
        self.law.observe(observer);
    }

    fn tcp(&self) -> Option<&dyn TcpExtension> {
        Some(self)
    }

    fn tcp_mut(&mut self) -> Option<&mut dyn TcpExtension> {
        Some(self)
    }
}

impl<L: WindowLaw> TcpExtension for Windowed<L> {
    fn rate_request(&self) -> RateCode {
        self.slow_start.rate_request()
    }

    fn overrides_receive_window(&self) -> bool {
        false
    }

    fn hears_headers(&self) -> bool {
        self.law.hears_headers()
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        self.law.on_ack_event(&mut self.window, now, slow_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reno(cwnd: u32) -> Windowed<crate::algorithms::Reno> {
        let mut reno =
            Windowed::new(crate::algorithms::Reno, Box::new(crate::slow_start::Standard));
        reno.set_cwnd(cwnd);
        reno
    }

    fn signal(controller: &mut dyn Controller, signal: Signal) {
        controller.on_congestion(&Congestion {
            now: Time::ZERO,
            signal,
            in_flight: 0,
            next_to_send: 0,
        });
    }

    #[test]
    fn undo_restores_the_window_and_three_quarters_of_it_as_threshold() {
        let mut controller = reno(100);
        signal(&mut controller, Signal::Loss);
        controller.set_cwnd(50);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (50, Some(50)));
        controller.on_undo(Time::ZERO);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (100, None));
        controller.set_ssthresh(60);
        signal(&mut controller, Signal::Timeout);
        controller.set_cwnd(1);
        controller.on_undo(Time::ZERO);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (100, Some(75)));
    }

    #[test]
    fn the_answer_to_a_mark_cannot_be_undone() {
        let mut controller = reno(100);
        signal(&mut controller, Signal::Loss);
        signal(&mut controller, Signal::Ecn);
        controller.set_cwnd(50);
        controller.on_undo(Time::ZERO);
        assert_eq!((controller.cwnd(), controller.ssthresh()), (50, Some(50)));
    }

    #[test]
    fn a_timeout_during_recovery_keeps_the_reduced_threshold_for_undo() {
        let mut controller = reno(100);
        signal(&mut controller, Signal::Loss);
        controller.on_state(Time::ZERO, RecoveryState::Recovery);
        signal(&mut controller, Signal::Timeout);
        controller.on_undo(Time::ZERO);
        assert_eq!(controller.ssthresh(), Some(50));
    }

    /// Counts what its controller tells it.
    #[derive(Default)]
    struct Listener {
        flights: Vec<Span>,
    }

    impl WindowLaw for Listener {
        fn on_flight_start(&mut self, _window: &mut Window, _now: Time, idle: Span) {
            self.flights.push(idle);
        }

        fn avoid(&mut self, _window: &mut Window, _acked: u32, _ack: &AckSample) {}

        fn ssthresh(&mut self, _window: &Window, _congestion: &Congestion) -> u32 {
            2
        }
    }

    #[test]
    fn a_flight_starts_when_nothing_is_in_flight() {
        let mut controller =
            Windowed::new(Listener::default(), Box::new(crate::slow_start::Standard));
        for (at_ms, prior_in_flight) in [(10, 0), (20, 10), (500, 0)] {
            controller.on_send(&Sent {
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
