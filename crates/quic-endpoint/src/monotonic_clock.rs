//! Kernel clock, as time of the run.

use jostle_units::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Clock of the run based on CLOCK_MONOTONIC, which is virtual in a kernel with virtual time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    pub(crate) const fn new(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Returns the current time. Before the start of the run it is zero.
    pub(crate) fn now(self) -> Time {
        let read = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(read.tv_sec).unwrap_or(0);
        let ns = seconds * 1_000_000_000 + u64::try_from(read.tv_nsec).unwrap_or(0);
        Time::from_ns(ns.saturating_sub(self.start_ns))
    }

    /// Returns the duration until `time`, or `None` for [`Time::NEVER`].
    pub(crate) fn until(self, time: Time) -> Option<Timespec> {
        if time == Time::NEVER {
            return None;
        }
        let read = clock_gettime(ClockId::Monotonic);
        let now_ns = i128::from(read.tv_sec) * 1_000_000_000 + i128::from(read.tv_nsec);
        let left_ns = (i128::from(self.start_ns) + i128::from(time.as_ns()) - now_ns).max(0);
        let (tv_sec, tv_nsec) = (left_ns / 1_000_000_000, left_ns % 1_000_000_000);
        Some(Timespec { tv_sec: tv_sec as i64, tv_nsec: tv_nsec as i64 })
    }
}
