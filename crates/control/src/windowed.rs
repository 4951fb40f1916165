//! Window-based controllers: a window law composed with a slow-start method.

use jostle_units::Time;

use crate::controller::{
    AckSample, Congestion, Controller, Established, Measurement, Observer, RecoveryOwner,
    RecoveryState, Sent, Signal,
};
use crate::slow_start::SlowStart;

/// `TCP_INFINITE_SSTHRESH` in Linux: no slow-start threshold yet.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The window that a law and a slow-start method share, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window, at least 1.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets acknowledged towards the next increase by one (`snd_cwnd_cnt` in Linux).
    pub count: u32,
    /// Largest cwnd (`snd_cwnd_clamp` in Linux).
    pub clamp: u32,
}

impl Default for Window {
    fn default() -> Self {
        Self { cwnd: 10, ssthresh: INFINITE_SSTHRESH, count: 0, clamp: u32::MAX }
    }
}

impl Window {
    /// Whether slow start applies.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Standard slow start (RFC 5681: "increments cwnd by at most SMSS bytes for each ACK
    /// received that cumulatively acknowledges new data", in packets and without the cap as Linux
    /// has it): one packet per packet acknowledged, up to ssthresh. Returns the packets left over
    /// for congestion avoidance.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let target = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left_over = acked - (target - self.cwnd);
        self.cwnd = target.min(self.clamp);
        left_over
    }

    /// Additive increase: one packet for every `per_increase` packets acknowledged
    /// (`tcp_cong_avoid_ai` in Linux, whose traps this keeps: credits gathered under a larger
    /// `per_increase` count at once when it falls, but only as a single packet).
    #[inline]
    pub fn additive_increase(&mut self, per_increase: u32, acked: u32) {
        let per_increase = per_increase.max(1);
        if self.count >= per_increase {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= per_increase {
            let increase = self.count / per_increase;
            self.count -= increase * per_increase;
            self.cwnd += increase;
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }
}

/// What makes one window-based controller differ from another.
pub trait WindowLaw: Send {
    /// The handshake is complete; `window` holds the initial window.
    fn on_established(&mut self, _window: &mut Window, _established: &Established) {}

    /// The connection sends again after its application was idle.
    fn on_restart_after_idle(&mut self, _window: &mut Window, _idle: &Sent) {}

    /// An ACK arrived; loss detection has not yet seen it.
    fn on_measurement(&mut self, _window: &mut Window, _measurement: &Measurement) {}

    /// An ACK was processed, whether the window may grow or not (`in_ack_event` in Linux).
    fn on_any_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// Grow the window (`cong_avoid` in Linux): slow start first, the rest by
    /// [`avoid`](Self::avoid). Laws whose slow start is their own replace this.
    fn grow(&mut self, window: &mut Window, slow_start: &mut dyn SlowStart, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            acked = slow_start.grow(window, ack);
            if acked == 0 {
                return;
            }
        }
        self.avoid(window, acked, ack);
    }

    /// Congestion avoidance for `acked` packets.
    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample);

    /// The slow-start threshold that answers a congestion signal, at least 2.
    fn ssthresh(&mut self, window: &Window, congestion: &Congestion) -> u32;

    /// Recovery went from one state to another (`set_state` in Linux).
    fn on_state(&mut self, _window: &mut Window, _now: Time, _state: RecoveryState) {}

    /// cwnd after a spurious congestion signal, given the cwnd before it.
    fn undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// Name of the mode outside slow start, for plots.
    fn mode(&self) -> &'static str {
        "avoidance"
    }

    /// Shows internal state to `observer`.
    fn observe(&self, _observer: &mut dyn Observer) {}
}

/// A [`Controller`] made of a law and a slow-start method.
pub struct Windowed<L> {
    window: Window,
    law: L,
    slow_start: Box<dyn SlowStart>,
    prior_cwnd: u32,
    prior_ssthresh: u32,
}

impl<L: WindowLaw> Windowed<L> {
    /// Composes `law` with `slow_start`.
    pub fn new(law: L, slow_start: Box<dyn SlowStart>) -> Self {
        Self { window: Window::default(), law, slow_start, prior_cwnd: 0, prior_ssthresh: 0 }
    }
}

impl<L: WindowLaw> Controller for Windowed<L> {
    fn on_established(&mut self, established: &Established) {
        self.window = Window { cwnd: established.initial_window, ..Window::default() };
        self.law.on_established(&mut self.window, established);
        self.slow_start.on_established(&mut self.window, established);
    }

    fn on_send(&mut self, sent: &Sent) {
        if sent.after_idle {
            self.law.on_restart_after_idle(&mut self.window, sent);
        }
    }

    fn on_measurement(&mut self, measurement: &Measurement) {
        self.law.on_measurement(&mut self.window, measurement);
        if self.window.in_slow_start() {
            self.slow_start.on_measurement(&mut self.window, measurement);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.law.on_any_ack(&mut self.window, ack);
        if ack.may_grow {
            self.law.grow(&mut self.window, self.slow_start.as_mut(), ack);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let window = &mut self.window;
        self.prior_cwnd = window.cwnd;
        // `tcp_current_ssthresh` in Linux: a window that shrank for want of data counts as ¾.
        self.prior_ssthresh = window.ssthresh.max(window.cwnd / 2 + window.cwnd / 4);
        window.ssthresh = self.law.ssthresh(window, congestion).max(2);
        window.count = 0;
        if congestion.signal == Signal::Timeout {
            self.slow_start.on_timeout();
        }
    }

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        self.law.on_state(&mut self.window, now, state);
    }

    fn on_undo(&mut self, _now: Time) {
        if self.prior_ssthresh == 0 {
            return;
        }
        self.window.cwnd = self.law.undo(&self.window, self.prior_cwnd).max(1);
        self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
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

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Transport
    }

    fn mode(&self) -> &'static str {
        if self.window.in_slow_start() { self.slow_start.mode() } else { self.law.mode() }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        self.law.observe(observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window { cwnd, ssthresh, ..Window::default() }
    }

    #[test]
    fn slow_start_hands_the_overshoot_to_avoidance() {
        let mut w = window(10, 14);
        assert_eq!(w.slow_start(3), 0);
        assert_eq!(w.slow_start(3), 2);
        assert_eq!(w.cwnd, 14);
    }

    #[test]
    fn additive_increase_adds_one_packet_per_window() {
        let mut w = window(10, 5);
        for _ in 0..10 {
            w.additive_increase(10, 1);
        }
        assert_eq!((w.cwnd, w.count), (11, 0));
        w.additive_increase(11, 25);
        assert_eq!((w.cwnd, w.count), (13, 3));
    }

    #[test]
    fn credit_from_a_larger_period_counts_once() {
        let mut w = window(10, 5);
        w.additive_increase(100, 60);
        w.additive_increase(20, 1);
        assert_eq!((w.cwnd, w.count), (11, 1));
    }

    #[test]
    fn the_clamp_holds() {
        let mut w = Window { clamp: 12, ..window(11, 100) };
        w.slow_start(50);
        assert_eq!(w.cwnd, 12);
        w.additive_increase(1, 50);
        assert_eq!(w.cwnd, 12);
    }
}
