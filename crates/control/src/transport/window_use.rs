//! Whether the window is what limits a flow (`tcp_cwnd_validate` in Linux, RFC 2861).

use jostle_units::Time;

/// How far the window is used.
#[derive(Clone, Copy, Debug)]
pub struct WindowUse {
    /// `is_cwnd_limited`: in the round that is watched the window held packets back.
    limited: bool,
    /// `max_packets_out`: most that was outstanding in it.
    most: u32,
    /// `cwnd_usage_seq`: it ends when this segment is acknowledged.
    until: u64,
    /// `snd_cwnd_used`: most that was outstanding since the window was last filled.
    used: u32,
    /// `snd_cwnd_stamp`: when the window was last filled, changed for want of data, or may have been
    /// raised by an ACK (`tcp_cong_avoid`).
    pub since: Time,
}

impl Default for WindowUse {
    fn default() -> Self {
        Self::new()
    }
}

impl WindowUse {
    /// Nothing has been sent.
    pub const fn new() -> Self {
        Self { limited: false, most: 0, until: 0, used: 0, since: Time::ZERO }
    }

    /// Packets were sent, or could not be: what is outstanding then, and whether the window was the
    /// limit. A round begins anew when it is over, and with whatever says more.
    #[inline]
    pub const fn note(&mut self, first: u64, next: u64, limited: bool) {
        let outstanding = (next - first) as u32;
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
