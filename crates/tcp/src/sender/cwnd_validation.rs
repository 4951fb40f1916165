//! Congestion window validation: reduction of an unused window (`tcp_output.c::tcp_cwnd_validate`,
//! RFC 2861).

use jostle_congestion::RecoveryState;
use jostle_units::Time;

use super::Sender;

impl Sender {
    /// `tcp.h::tcp_is_cwnd_limited`.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        let slow_start = self.owns_window() && self.cwnd < self.ssthresh;
        self.usage.is_limit(self.cwnd, slow_start)
    }

    /// Checks whether the flow is cwnd-limited and reduces an unused window
    /// (`tcp_output.c::tcp_cwnd_validate`, RFC 2861).
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

    /// Reduces the window after an RTO in which it was not used: cwnd becomes the mean of cwnd and
    /// its used part (`tcp_output.c::tcp_cwnd_application_limited`). Does not apply to unlimited
    /// data, because the application then fills its socket buffer and is not the limit.
    #[cold]
    #[inline(never)]
    fn shrink_unused(&mut self, now: Time) {
        if self.recovery.state() == RecoveryState::Open && self.queue.limit().is_some() {
            let used = self.usage.take_max_in_flight().max(self.options.initial_window);
            if used < self.cwnd {
                self.keep_threshold();
                self.set_cwnd((self.cwnd + used) / 2);
            }
        }
        self.usage.since = now;
    }

    /// Sets ssthresh to at least ¾ of cwnd before an unused cwnd is reduced
    /// (`tcp.h::tcp_current_ssthresh`).
    fn keep_threshold(&mut self) {
        let threshold = if self.recovery.in_reduction() {
            self.ssthresh
        } else {
            self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
        };
        self.controller.set_ssthresh(threshold);
        self.copy_controller_outputs();
    }

    /// Reduces cwnd after an idle time: it is halved for each RTO of idle time, down to the initial
    /// window (`tcp.h::tcp_slow_start_after_idle_check`, RFC 5681 §4.1, RFC 2861).
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
