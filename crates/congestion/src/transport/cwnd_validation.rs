//! Congestion window validation: detects whether a flow is cwnd-limited
//! (`tcp_output.c::tcp_cwnd_validate` in Linux, RFC 2861).

use jostle_units::Time;

/// Utilisation of the congestion window.
#[derive(Clone, Copy, Debug)]
pub struct CwndUsage {
    /// `is_cwnd_limited`: whether the flow was cwnd-limited in the observed round.
    limited: bool,
    /// `max_packets_out`: maximum number of outstanding packets in the round.
    most: u32,
    /// `cwnd_usage_seq`: the round ends when this segment is acknowledged.
    until: u64,
    /// `snd_cwnd_used`: maximum number of outstanding packets since the window was last filled.
    used: u32,
    /// `snd_cwnd_stamp`: time at which the window was last filled, reduced because the application
    /// sent too little, or possibly increased by an ACK (`tcp_input.c::tcp_cong_avoid`).
    pub since: Time,
}

impl Default for CwndUsage {
    fn default() -> Self {
        Self::new()
    }
}

impl CwndUsage {
    /// Returns the state before the first transmission.
    pub const fn new() -> Self {
        Self { limited: false, most: 0, until: 0, used: 0, since: Time::ZERO }
    }

    /// Records the outstanding packets after a transmission attempt, and whether it was
    /// cwnd-limited. A new round begins when the last one has ended, when the attempt was
    /// cwnd-limited, or when more packets are outstanding than before in a round that was not
    /// cwnd-limited.
    #[inline]
    pub const fn note(&mut self, first: u64, next: u64, limited: bool) {
        let outstanding = (next - first) as u32;
        if first >= self.until || limited || (!self.limited && outstanding > self.most) {
            self.limited = limited;
            self.most = outstanding;
            self.until = next;
        }
    }

    /// Returns whether the flow is cwnd-limited (`tcp.h::tcp_is_cwnd_limited`). In slow start, a
    /// window that is more than half full counts as used.
    #[inline]
    pub const fn is_limit(&self, cwnd: u32, slow_start: bool) -> bool {
        self.limited || (slow_start && cwnd < 2 * self.most)
    }

    /// Restarts the measurement of the used window, because the window is full or has just been
    /// changed.
    #[inline]
    pub const fn restart(&mut self, now: Time) {
        self.used = 0;
        self.since = now;
    }

    /// Records the outstanding packets while the window is not full.
    #[inline]
    pub fn note_unused(&mut self, outstanding: u32) {
        self.used = self.used.max(outstanding);
    }

    /// Returns the maximum of outstanding packets since the last [`restart`](Self::restart), and
    /// resets it.
    pub const fn take_max_in_flight(&mut self) -> u32 {
        core::mem::replace(&mut self.used, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_is_the_limit_for_a_round() {
        let mut usage = CwndUsage::new();
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
        let mut usage = CwndUsage::new();
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
        let mut usage = CwndUsage::new();
        usage.note_unused(9);
        usage.restart(Time::from_ns(5));
        usage.note_unused(3);
        usage.note_unused(2);
        assert_eq!((usage.take_max_in_flight(), usage.take_max_in_flight()), (3, 0));
        assert_eq!(usage.since, Time::from_ns(5));
    }
}
