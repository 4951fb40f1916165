"""Precise waiting on the monotonic clock."""

from __future__ import annotations

import ctypes
import time

_PR_SET_TIMERSLACK = 29

libc = ctypes.CDLL(None, use_errno=True)
"""C library, for system calls that Python 3.11 does not offer."""


def fine_timers() -> None:
    """Set the timer slack from 50 µs to 1 ns (prctl(2), PR_SET_TIMERSLACK).

    New threads inherit it.
    """
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def sleep_until(moment_ns: int) -> None:
    """Sleep until the monotonic clock shows `moment_ns`."""
    while (left_ns := moment_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)


def clock_offset_ns() -> int:
    """Return the offset of the calendar clock, which packets are stamped with."""
    before_ns = time.monotonic_ns()
    clock_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
    after_ns = time.monotonic_ns()
    return clock_ns - (before_ns + after_ns) // 2
