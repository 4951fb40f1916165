//! Delay filters of LEDBAT and LEDBAT++.

use jostle_units::{Span, Time};

/// One-minute minima (`BASE_HISTORY`): "BASE_HISTORY SHOULD be 10".
const BASE_HISTORY: usize = 10;
/// Number of samples whose minimum is the current delay (`CURRENT_FILTER`).
const CURRENT_FILTER: usize = 4;
const MINUTE_NS: u64 = 60_000_000_000;

/// Base delay and current delay. Only differences of delays are used, so that delays may have any
/// origin and come from clocks that are not synchronised.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// Minimum delay of each of the last minutes with samples, newest last.
    minima_ns: [i64; BASE_HISTORY],
    /// Minimum of `minima_ns`.
    base_ns: i64,
    minute: u64,
    current_ns: [i64; CURRENT_FILTER],
    next: usize,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            minima_ns: [i64::MAX; BASE_HISTORY],
            base_ns: i64::MAX,
            minute: 0,
            current_ns: [i64::MAX; CURRENT_FILTER],
            next: 0,
        }
    }
}

impl Delays {
    /// Adds a sample (RFC 6817 §2.4.2: `update_base_delay`, `update_current_delay`).
    pub fn take(&mut self, now: Time, delay_ns: i64) {
        let minute = now.as_ns() / MINUTE_NS;
        let newest = BASE_HISTORY - 1;
        if minute == self.minute {
            self.minima_ns[newest] = self.minima_ns[newest].min(delay_ns);
            self.base_ns = self.base_ns.min(delay_ns);
        } else {
            // One step for any number of minutes without samples, as in the RFC.
            self.minute = minute;
            self.minima_ns.rotate_left(1);
            self.minima_ns[newest] = delay_ns;
            self.base_ns = self.minima_ns.iter().copied().fold(i64::MAX, i64::min);
        }
        self.current_ns[self.next] = delay_ns;
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// Minimum delay of the last ten minutes; `None` before a sample.
    pub fn base_ns(&self) -> Option<i64> {
        (self.base_ns < i64::MAX).then_some(self.base_ns)
    }

    /// Queueing delay: current delay minus base delay; `None` before a sample.
    pub fn queueing(&self) -> Option<Span> {
        let base_ns = self.base_ns()?;
        let current_ns = self.current_ns.iter().copied().fold(i64::MAX, i64::min);
        Some(Span::from_ns(current_ns.saturating_sub(base_ns).max(0).unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn the_current_delay_is_the_least_of_four() {
        let mut delays = Delays::default();
        assert_eq!(delays.queueing(), None);
        for (delay_ms, queueing_ms) in [(-20, 0), (10, 0), (15, 0), (20, 0), (25, 30), (30, 35)] {
            delays.take(at(1), delay_ms * MS);
            assert_eq!(delays.queueing(), Some(Span::from_ms(queueing_ms)), "at {delay_ms}");
        }
    }

    /// What a route had that was left ten minutes ago no longer counts.
    #[test]
    fn a_base_delay_lives_for_ten_minutes() {
        let mut delays = Delays::default();
        delays.take(at(0), 20 * MS);
        for minute in 1..BASE_HISTORY as u64 {
            delays.take(at(60 * minute), 50 * MS);
            assert_eq!(delays.base_ns(), Some(20 * MS), "in minute {minute}");
        }
        delays.take(at(600), 60 * MS);
        assert_eq!(delays.base_ns(), Some(50 * MS));
    }
}
