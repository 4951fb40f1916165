"""Ends a worker process whose run hangs, because native code cannot be interrupted otherwise."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Final

__all__ = ["STUCK", "HangWatchdog"]

STUCK: Final = 75
"""Exit status of a worker that ended itself (`EX_TEMPFAIL` of sysexits.h)."""
_LOOK_EVERY_S: Final = 1.0


class HangWatchdog:
    """Ends this process if an operation exceeds its permitted duration.

    It is used in processes that a supervisor restarts, such as Dask's nanny. Their work is given
    to other processes.
    """

    def __init__(self) -> None:
        self._until_s = float("inf")
        self._allowed_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="jostle-watch", daemon=True)

    def __enter__(self) -> HangWatchdog:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()

    def allow(self, seconds: float) -> None:
        """Permit the given real time for the present operation; replaces the last limit."""
        self._allowed_s = seconds
        self._until_s = time.monotonic() + seconds

    def _look(self) -> None:
        while not self._over.wait(min(_LOOK_EVERY_S, self._allowed_s or _LOOK_EVERY_S)):
            if time.monotonic() > self._until_s:
                text = (
                    f"jostle: a run has not ended after {self._allowed_s:.0f} s: this worker ends"
                )
                print(text, file=sys.stderr, flush=True)
                os._exit(STUCK)
