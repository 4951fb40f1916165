//! The kernel's clock as time of the run.

use jostle_units::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads CLOCK_MONOTONIC: in a kernel in virtual time, the virtual one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    pub(crate) const fn new(start_ns: u64) -> Self {
        Self { start_ns }
    }

    /// Now; before the run begins it is its beginning.
    pub(crate) fn now(self) -> Time {
        let read = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(read.tv_sec).unwrap_or(0);
        let ns = seconds * 1_000_000_000 + u64::try_from(read.tv_nsec).unwrap_or(0);
        Time::from_ns(ns.saturating_sub(self.start_ns))
    }

    /// How long it is until `time`; none if that never comes.
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
