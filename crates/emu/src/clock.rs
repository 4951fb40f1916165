//! The one clock, and the timer that follows it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use jostle_units::Time;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

const NS_PER_S: u64 = 1_000_000_000;

/// Time since the start of an emulation, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start_ns: monotonic_ns() }
    }

    /// Now.
    #[inline]
    pub fn now(self) -> Time {
        Time::from_ns(monotonic_ns() - self.start_ns)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative on this clock.
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

/// A descriptor that becomes readable at a given time.
///
/// The timeout of `poll` would save a system call, but the kernel allows itself a thousandth of the
/// wait as slack (`select_estimate_accuracy` in Linux's fs/select.c): half a millisecond on half a
/// second. A timerfd has no slack.
pub(crate) struct Timer {
    descriptor: OwnedFd,
    clock: Clock,
    /// What it is set to; [`Time::NEVER`] while it is off.
    set_to: Time,
}

impl Timer {
    pub fn new(clock: Clock) -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { descriptor, clock, set_to: Time::NEVER })
    }

    /// Makes the descriptor readable from `at` on and at no other time. Setting a timer anew also
    /// takes back that it was readable.
    pub fn set(&mut self, at: Time) -> Result<(), Errno> {
        if at == self.set_to {
            return Ok(());
        }
        // All zero switches it off; no time since the machine's start is zero.
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
