//! Whether the window is what limits the flow, and what becomes of one that is not used
//! (`tcp_cwnd_validate`, RFC 2861).

use jostle_control::RecoveryState;
use jostle_units::Time;

use super::Sender;

/// How far the window is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowUse {
    /// `is_cwnd_limited`: in the round that is watched the window held packets back.
    limited: bool,
    /// `max_packets_out`: most that was outstanding in it.
    most: u32,
    /// `cwnd_usage_seq`: it ends when this segment is acknowledged.
    until: u32,
    /// `snd_cwnd_used`: most that was outstanding since the window was last filled.
    used: u32,
    /// `snd_cwnd_stamp`: when the window was last filled, or changed for want of data.
    pub since: Time,
}

impl WindowUse {
    pub const fn new() -> Self {
        Self { limited: false, most: 0, until: 0, used: 0, since: Time::ZERO }
    }

    /// Packets were sent, or could not be: what is outstanding then, and whether the window was the
    /// limit. A round begins anew when it is over, and with whatever says more.
    #[inline]
    pub const fn note(&mut self, first: u32, next: u32, limited: bool) {
        let outstanding = next - first;
        if first >= self.until || limited || (!self.limited && outstanding > self.most) {
            self.limited = limited;
            self.most = outstanding;
            self.until = next;
        }
    }

    /// `tcp_is_cwnd_limited`: in slow start a window is used that is half full.
    #[inline]
    pub const fn is_limit(&self, cwnd: u32, slow_start: bool) -> bool {
        self.limited || (slow_start && cwnd < 2 * self.most)
    }

    /// The window is the limit, or has just been changed: what was used is counted from here on.
    #[inline]
    pub const fn restart(&mut self, now: Time) {
        self.used = 0;
        self.since = now;
    }

    /// The window is not the limit.
    #[inline]
    pub fn note_unused(&mut self, outstanding: u32) {
        self.used = self.used.max(outstanding);
    }

    /// What was used since the last [`restart`](Self::restart), after which it is forgotten.
    pub const fn take_used(&mut self) -> u32 {
        std::mem::replace(&mut self.used, 0)
    }
}

impl Sender {
    /// `tcp_is_cwnd_limited`.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        let slow_start = self.owns_window() && self.cwnd < self.ssthresh;
        self.usage.is_limit(self.cwnd, slow_start)
    }

    /// `tcp_cwnd_validate`, RFC 2861: was the window the limit?
    pub(super) fn validate_window(&mut self, now: Time, cwnd_limited: bool) {
        let (first, next) = (self.board.first(), self.board.next());
        self.usage.note(first, next, cwnd_limited);
        if self.is_cwnd_limited() {
            self.usage.restart(now);
            return;
        }
        self.usage.note_unused(next - first);
        if now.since(self.usage.since) >= self.rto.span() && self.owns_window() {
            self.shrink_unused(now);
        }
    }

    /// `tcp_cwnd_application_limited`: after an RTO of under-use the window moves half-way to what
    /// was used. An application that fills its socket buffer is exempt: it is not the limit.
    #[cold]
    #[inline(never)]
    fn shrink_unused(&mut self, now: Time) {
        if self.state == RecoveryState::Open && self.written < u32::MAX {
            let used = self.usage.take_used().max(self.options.initial_window);
            if used < self.cwnd {
                self.keep_threshold();
                self.set_cwnd((self.cwnd + used) / 2);
            }
        }
        self.usage.since = now;
    }

    /// `tcp_current_ssthresh`: a window that shrinks for want of data is remembered by ¾ of it.
    fn keep_threshold(&mut self) {
        let threshold = if self.in_reduction() {
            self.ssthresh
        } else {
            self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
        };
        self.controller.set_ssthresh(threshold);
        self.take_answers();
    }

    /// `tcp_slow_start_after_idle_check`, RFC 5681 §4.1 as refined by RFC 2861: the window halves
    /// for every RTO of silence, down to the initial window.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_send);
        if self.board.outstanding() > 0 || !self.owns_window() || idle <= self.rto.span() {
            return;
        }
        self.controller.on_idle_restart(now);
        self.keep_threshold();
        let least = self.options.initial_window.min(self.cwnd);
        let mut cwnd = self.cwnd;
        let mut left = idle - self.rto.span();
        while !left.is_zero() && cwnd > least {
            cwnd /= 2;
            left = left - self.rto.span();
        }
        self.set_cwnd(cwnd.max(least));
        self.usage.restart(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_is_the_limit_for_a_round() {
        let mut usage = WindowUse::new();
        usage.note(0, 10, true);
        assert!(usage.is_limit(10, false));
        // Less is outstanding within the round: it stays so.
        usage.note(4, 12, false);
        assert!(usage.is_limit(10, false));
        // The round is over.
        usage.note(10, 14, false);
        assert!(!usage.is_limit(10, false));
    }

    #[test]
    fn slow_start_may_double_what_is_used() {
        let mut usage = WindowUse::new();
        usage.note(0, 6, false);
        assert!(usage.is_limit(11, true));
        assert!(!usage.is_limit(12, true));
        assert!(!usage.is_limit(11, false));
        // More outstanding than before begins a round.
        usage.note(2, 10, false);
        assert!(usage.is_limit(12, true));
    }

    #[test]
    fn what_was_used_counts_from_the_last_time_that_the_window_was_full() {
        let mut usage = WindowUse::new();
        usage.note_unused(9);
        usage.restart(Time::from_ns(5));
        usage.note_unused(3);
        usage.note_unused(2);
        assert_eq!((usage.take_used(), usage.take_used()), (3, 0));
        assert_eq!(usage.since, Time::from_ns(5));
    }
}
