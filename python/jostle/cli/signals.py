"""Ctrl-C, SIGTERM and SIGHUP: the first stops orderly, the second at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from jostle.errors import InterruptedRunError, JostleError

if TYPE_CHECKING:
    from jostle.running.executors.local import Executor

GOES_ON = "interrupted; give the same command again to go on from there"
"""What is said where the work that was done is kept."""
_STOPPING = (signal.SIGINT, signal.SIGTERM)
# Windows has no SIGHUP.
_SIGNALS = (*_STOPPING, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@contextmanager
def orderly_interruption(
    said: str = "interrupted", *, deferred: bool = False
) -> Iterator[Callable[[], None]]:
    """Turn the first signal into KeyboardInterrupt; let the second end the process at once.

    Ending at once is safe: runs enter the store by a rename. An orderly stop is an error, with the
    exit status by which shells report a program that the signal ended: 130 for Ctrl-C, 143 for
    SIGTERM, 129 for SIGHUP. A SIGHUP that `nohup` ignores remains ignored.

    Parameters
    ----------
    said
        What the error says, unless it is one of runs, which know how many they were.
    deferred
        Whether KeyboardInterrupt is raised only where the yielded function is called, and further
        signals are ignored. A signal then never interrupts code that makes or removes a folder, or
        starts or ends a program.

    Yields
    ------
    Callable
        Raises KeyboardInterrupt if a signal came.

    Raises
    ------
    JostleError
        When a signal came.
    """
    came = 0

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came and not deferred:
            os._exit(128 + number)
        came = came or number
        if not deferred:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        # Python delivers signals to the main thread only, which is somebody else's here.
        yield check
        return
    before = {
        number: signal.signal(number, handle)
        for number in _SIGNALS
        if number in _STOPPING or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield check
    except InterruptedRunError as error:
        error.exit_status = 128 + (came or signal.SIGINT)
        raise
    except KeyboardInterrupt as interrupt:
        stopped = JostleError(said)
        stopped.exit_status = 128 + (came or signal.SIGINT)
        raise stopped from interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible(executor: Executor) -> Iterator[None]:
    """Let an executor carry runs out; when it ends, or a signal comes, nothing more is begun."""
    with orderly_interruption():
        try:
            yield
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
