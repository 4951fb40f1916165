"""Ends a worker whose run does not end: what is stuck in native code hears of nothing else."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Final

__all__ = ["STUCK", "Watch"]

STUCK: Final = 75
"""Exit status of a worker that ended itself (`EX_TEMPFAIL` of sysexits.h)."""
_LOOK_EVERY_S: Final = 1.0


class Watch:
    """Ends this process when what it was told of lasts too long.

    For processes that are started anew by whoever looks after them, as Dask's nannies do, and whose
    work is given to others.
    """

    def __init__(self) -> None:
        self._until_s = float("inf")
        self._allowed_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="jostle-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()

    def allow(self, seconds: float) -> None:
        """Allow what begins now so many seconds of real time; what was allowed before is over."""
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
