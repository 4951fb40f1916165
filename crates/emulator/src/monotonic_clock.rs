//! Monotonic clock and timer.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use jostle_units::Time;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

const NS_PER_S: u64 = 1_000_000_000;

/// Time since the start of an emulation, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Creates a clock that starts now.
    pub fn start() -> Self {
        Self { start_ns: monotonic_ns() }
    }

    /// Returns the current time.
    #[inline]
    pub fn now(self) -> Time {
        Time::from_ns(monotonic_ns() - self.start_ns)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both fields are non-negative on this clock.
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

/// A descriptor that becomes readable at a given time.
///
/// A timeout of `poll` would save a system call, but Linux adds a slack of a thousandth of the
/// timeout (`select_estimate_accuracy` in fs/select.c): 0.5 ms at 0.5 s. A timerfd has no slack.
pub(crate) struct Timer {
    descriptor: OwnedFd,
    clock: Clock,
    /// Current setting. [`Time::NEVER`] if the timer is off.
    set_to: Time,
}

impl Timer {
    pub fn new(clock: Clock) -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { descriptor, clock, set_to: Time::NEVER })
    }

    /// Makes the descriptor readable from `at` on. Setting the timer also clears a previous
    /// expiration.
    pub fn set(&mut self, at: Time) -> Result<(), Errno> {
        if at == self.set_to {
            return Ok(());
        }
        // 0 disarms the timer. No valid time is 0, because times count from the boot of the
        // machine.
        let at_ns =
            if at == Time::NEVER { 0 } else { at.as_ns().saturating_add(self.clock.start_ns) };
        let it_value =
            Timespec { tv_sec: (at_ns / NS_PER_S) as i64, tv_nsec: (at_ns % NS_PER_S) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let new = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &new)?;
        self.set_to = at;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
