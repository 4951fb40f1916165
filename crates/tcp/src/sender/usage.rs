//! What becomes of a window that is not used (`tcp_cwnd_validate`, RFC 2861).

use jostle_control::RecoveryState;
use jostle_units::Time;

use super::Sender;

impl Sender {
    /// `tcp_is_cwnd_limited`.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        let slow_start = self.owns_window() && self.cwnd < self.ssthresh;
        self.usage.is_limit(self.cwnd, slow_start)
    }

    /// `tcp_cwnd_validate`, RFC 2861: was the window the limit?
    pub(super) fn validate_window(&mut self, now: Time, cwnd_limited: bool) {
        let (first, next) = (self.board.first(), self.board.next());
        self.usage.note(u64::from(first), u64::from(next), cwnd_limited);
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
