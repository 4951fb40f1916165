"""Ctrl-C and SIGTERM: the first stops orderly, the second at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from jostle.errors import InterruptedRunError

if TYPE_CHECKING:
    from jostle.running.executors.local import Executor

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interruption:
    """Which signal came, if any."""

    number: int = 0

    @property
    def exit_status(self) -> int:
        """As shells report a program that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + (self.number or signal.SIGINT)


@contextmanager
def orderly_interruption() -> Iterator[Interruption]:
    """Turn the first signal into KeyboardInterrupt; let the second end the process at once.

    Ending at once is safe: runs enter the store by a rename.
    """
    interruption = Interruption()

    def handle(number: int, _frame: FrameType | None) -> None:
        if interruption.number:
            os._exit(128 + number)
        interruption.number = number
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        # Python delivers signals to the main thread only, which is somebody else's here.
        yield interruption
        return
    before = [signal.signal(number, handle) for number in _SIGNALS]
    try:
        yield interruption
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def interruptible(executor: Executor) -> Iterator[None]:
    """Let an executor carry runs out; when it ends, or a signal comes, nothing more is begun.

    Runs that were interrupted end the command with the status that their signal asks for.
    """
    with orderly_interruption() as interruption:
        try:
            yield
        except InterruptedRunError as error:
            error.exit_status = interruption.exit_status
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
