"""Time limits for the phases of a measurement, and sockets that keep them.

The other end of a transfer may send a byte a second, or headers without end. Each single wait is
short then, so a timeout per read never expires. A `Limit` holds for a whole phase.
"""

from __future__ import annotations

import errno
import io
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from jostle.measurements.live.transfer import Tick

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["Limit", "LimitedSocket", "connect", "pause"]

_ASK_EVERY_S: Final = 0.2
"""Longest single wait: a signal is noticed between two of them."""
_TICK_EVERY_S: Final = 0.05
"""Shortest time between two ticks: they may redraw a progress bar."""

_Result = TypeVar("_Result")


class Limit:
    """The time until which a phase has to end.

    Parameters
    ----------
    seconds
        Length of the phase, from now on.
    tick
        Called now and then while the phase waits. An exception of it ends the phase.
    """

    def __init__(self, seconds: float, tick: Tick) -> None:
        self._due_s = time.monotonic() + seconds
        self._tick = tick
        self._ticked_s = float("-inf")

    def is_over(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() >= self._due_s

    def wait_s(self) -> float:
        """Return how long to wait before the next call of this method.

        Raises
        ------
        TimeoutError
            When the time is over.
        """
        now_s = time.monotonic()
        if now_s - self._ticked_s >= _TICK_EVERY_S:
            self._ticked_s = now_s
            self._tick()
        if now_s >= self._due_s:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return min(self._due_s - now_s, _ASK_EVERY_S)


def pause(seconds: float, tick: Tick) -> None:
    """Wait, with ticks."""
    limit = Limit(seconds, tick)
    with suppress(TimeoutError):
        while True:
            time.sleep(limit.wait_s())


def connect(made: socket.socket, address: str, port: int, limit: Limit) -> None:
    """Connect a TCP socket.

    Raises
    ------
    OSError
        When the connection is refused, or not accepted in time.
    """
    made.setblocking(False)
    failed = made.connect_ex((address, port))
    if failed == errno.EINPROGRESS:
        while not select.select((), (made,), (), limit.wait_s())[1]:
            pass
        failed = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failed:
        raise OSError(failed, os.strerror(failed))


class LimitedSocket:
    """A connected socket whose waits all end at the present limit: the part that http.client uses.

    Attributes
    ----------
    limit
        Of the present phase.
    """

    def __init__(self, wrapped: socket.socket, limit: Limit) -> None:
        self.limit = limit
        self._wrapped = wrapped

    def wait(self, call: Callable[[], _Result]) -> _Result:
        """Repeat a call of the socket until it succeeds.

        Raises
        ------
        TimeoutError
            When the limit is over.
        """
        while True:
            self._wrapped.settimeout(self.limit.wait_s())
            with suppress(TimeoutError):
                return call()

    def sendall(self, content: ReadableBuffer) -> None:
        """Send all of it."""
        left = memoryview(content)
        while left:
            left = left[self.wait(partial(self._wrapped.send, left)) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Open what arrives as a file."""
        return io.BufferedReader(_Arriving(self, self._wrapped))

    def close(self) -> None:
        """Leave the socket open: http.client calls this while an answer is still being read."""


class _Arriving(io.RawIOBase):
    """The bytes that arrive at a socket."""

    def __init__(self, limited: LimitedSocket, wrapped: socket.socket) -> None:
        self._limited = limited
        self._wrapped = wrapped

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        return self._limited.wait(partial(self._wrapped.recv_into, buffer))
