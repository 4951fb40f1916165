"""Whether somebody carries out what was given to an executor whose workers are elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from jostle.running.executors import Executor
    from jostle.running.progress import Progress

__all__ = ["Attention", "Remote"]

ASK_EVERY_S = 2.0
PATIENCE_S = 5.0
"""How long nobody may be there: a worker that died is started again in less."""


@runtime_checkable
class Remote(Protocol):
    """An executor whose workers come and go."""

    def about(self) -> str:
        """Say how many workers there are, and where one can see what they do."""

    def lack(self) -> str | None:
        """Say what it lacks to carry anything out; None if nothing, or if that is not known."""


class Attention:
    """Tells those who wait that nobody carries runs out, and when somebody does again.

    Parameters
    ----------
    executor
        Where runs are carried out.
    progress
        Told of it.
    clock
        Seconds from any origin.
    """

    def __init__(
        self,
        executor: Executor,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executor = executor
        self._progress = progress
        self._clock = clock
        self._asked_s = self._fine_s = clock()
        self._told = False

    def begin(self) -> None:
        """Say where runs go."""
        if isinstance(self._executor, Remote):
            self._progress.says(self._executor.about())

    def look(self) -> None:
        """Look, now that nothing has ended for a while, whether anything can."""
        now_s = self._clock()
        if not isinstance(self._executor, Remote) or now_s - self._asked_s < ASK_EVERY_S:
            return
        lack = self._executor.lack()
        self._asked_s = self._clock()
        if lack is None:
            if self._told:
                self._progress.says(self._executor.about())
            self._fine_s, self._told = now_s, False
        elif not self._told and now_s - self._fine_s >= PATIENCE_S:
            self._progress.says(lack)
            self._told = True
