"""Ctrl-C and SIGTERM: the first stops orderly, the second at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from jostle.errors import InterruptedRunError, JostleError

if TYPE_CHECKING:
    from jostle.running.executors.local import Executor

GOES_ON = "interrupted; give the same command again to go on from there"
"""What is said where the work that was done is kept."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def orderly_interruption(said: str = "interrupted") -> Iterator[None]:
    """Turn the first signal into KeyboardInterrupt; let the second end the process at once.

    Ending at once is safe: runs enter the store by a rename. An orderly stop is an error, with the
    exit status by which shells report a program that the signal ended: 130 for Ctrl-C, 143 for
    SIGTERM.

    Parameters
    ----------
    said
        What the error says, unless it is one of runs, which know how many they were.

    Raises
    ------
    JostleError
        When a signal came.
    """
    came = 0

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came:
            os._exit(128 + number)
        came = number
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        # Python delivers signals to the main thread only, which is somebody else's here.
        yield
        return
    before = [signal.signal(number, handle) for number in _SIGNALS]
    try:
        yield
    except InterruptedRunError as error:
        error.exit_status = 128 + (came or signal.SIGINT)
        raise
    except KeyboardInterrupt as interrupt:
        stopped = JostleError(said)
        stopped.exit_status = 128 + (came or signal.SIGINT)
        raise stopped from interrupt
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def interruptible(executor: Executor) -> Iterator[None]:
    """Let an executor carry runs out; when it ends, or a signal comes, nothing more is begun."""
    with orderly_interruption():
        try:
            yield
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
