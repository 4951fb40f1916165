"""Detects whether any worker of a remote executor is available."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from jostle.runner.executors import Executor
    from jostle.runner.progress import Progress

__all__ = ["RemoteExecutor", "WorkerLivenessMonitor"]

ASK_EVERY_S = 2.0
PATIENCE_S = 5.0
"""Time without workers before the user is informed; a dead worker is restarted in less time."""


@runtime_checkable
class RemoteExecutor(Protocol):
    """An executor whose workers join and leave."""

    def describe(self) -> str:
        """Return the number of workers, and where to monitor them."""

    def missing_workers(self) -> str | None:
        """Return why no worker can carry out runs; None if one can, or if that is unknown."""


class WorkerLivenessMonitor:
    """Informs the user when no worker carries out runs, and when workers are available again.

    Parameters
    ----------
    executor
        Executor of the runs.
    progress
        Receives the messages.
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
        """Report the executor."""
        if isinstance(self._executor, RemoteExecutor):
            self._progress.on_message(self._executor.describe())

    def look(self) -> None:
        """Check the workers; called when no job has ended for a while."""
        now_s = self._clock()
        if not isinstance(self._executor, RemoteExecutor) or now_s - self._asked_s < ASK_EVERY_S:
            return
        lack = self._executor.missing_workers()
        self._asked_s = self._clock()
        if lack is None:
            if self._told:
                self._progress.on_message(self._executor.describe())
            self._fine_s, self._told = now_s, False
        elif not self._told and now_s - self._fine_s >= PATIENCE_S:
            self._progress.on_message(lack)
            self._told = True
