"""Tells others how far this process is with a sweep, and hears of their wish that it stops."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from jostle.errors import InterruptedRunError
from jostle.locks import FolderLock
from jostle.running.progress import Progress
from jostle.running.sweeps.records import (
    COMMAND,
    FOLDER,
    LOG,
    STOP,
    Command,
    Progressed,
    write_command,
    write_progress,
)

if TYPE_CHECKING:
    from jostle.results import Failure

__all__ = ["Recording"]

_WRITE_EVERY_S = 1.0
_WINDOW_S = 60.0
"""What the rate is a mean of."""
_LOOK_EVERY_S = 0.5
_PATIENCE_S = 1.0
"""How long to wait for the lock: whoever looks at a sweep holds it for an instant."""


def _interrupt() -> None:
    """Stop as SIGTERM does, which the command line handles."""
    signal.raise_signal(signal.SIGTERM)


class Recording:
    """A sweep that this process carries out; it is in the store while something is to be done.

    What an earlier process left of the same command is taken over, and goes with this one.
    A store that cannot be written to, or where another process carries out the same command, is
    left as it is.

    Parameters
    ----------
    store
        Its folder.
    command
        What was given.
    plans
        Title of each of its plans, and how many runs it has.
    detached
        Whether it is in the store from its beginning to its end, and beyond it.
    stop
        Called, in a thread of its own, when somebody wants the sweep to stop.
    clock
        Seconds since 1970.
    """

    def __init__(
        self,
        store: Path,
        command: Command,
        plans: Sequence[tuple[str, int]],
        *,
        detached: bool = False,
        stop: Callable[[], None] = _interrupt,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.place = store / FOLDER / command.name
        self._command = command
        self._expected = [runs for _, runs in plans]
        self._begun = [False] * len(plans)
        self._names = [""] * len(plans)
        self._detached = detached
        self._stop = stop
        self._clock = clock
        self._lock: FolderLock | None = None
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None
        self._told = Progressed(titles=[title for title, _ in plans])
        self._known: deque[tuple[float, int]] = deque()
        self._written_s = 0.0

    def __enter__(self) -> Recording:
        if self._detached or os.path.exists(self.place / COMMAND):
            self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is None:
            return
        self._over.set()
        if self._watcher is not None:
            self._watcher.join()
        ended: Literal["finished", "stopped", "failed"] = "finished"
        if error is not None:
            orderly = isinstance(error, InterruptedRunError | KeyboardInterrupt)
            ended = "stopped" if orderly else "failed"
            self._told.why = "" if orderly else str(error)
        self._told.ended = ended
        with contextlib.suppress(OSError):
            (self.place / STOP).unlink(missing_ok=True)
        self._write()
        # What is done needs no record: the runs are in the store. A log stays.
        done = ended == "finished" and not self._told.failed
        if done and not (self.place / LOG).exists():
            shutil.rmtree(self.place, ignore_errors=True)
        self._lock.release()

    def progress(self, position: int, shown: Progress) -> Progress:
        """Make what is told how the plan at `position` goes, and tells `shown` as well."""
        return _Recorded(self, position, shown)

    def _begin(self) -> None:
        """Write the sweep into the store, if it can be."""
        parent = self.place.parent
        if self._lock is not None or parent.is_symlink():
            return
        with contextlib.suppress(OSError):
            self.place.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock.take(self.place, wait_s=_PATIENCE_S)
            if self._lock is None:
                return
            (self.place / STOP).unlink(missing_ok=True)
            # Nobody reads how far it was under the name of who carries it out now.
            self._write()
            write_command(self.place, self._command)
        if self._lock is not None:
            self._watcher = threading.Thread(target=self._watch, name="jostle-sweep", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            if (self.place / STOP).exists():
                self._stop()
                return

    def noted(self, position: int, plan: str) -> None:
        """Hear what a plan is called in the store."""
        self._names[position] = plan
        self._told.plans = list(self._names)

    def began(self, position: int, total: int, stored: int) -> None:
        """Hear how many runs of a plan are wanted, and how many are there."""
        told = self._told
        if not self._begun[position]:
            self._begun[position] = True
            # Rounds of repeats come on top of those that were known beforehand.
            self._expected[position] = 0
        self._expected[position] += total
        told.total = sum(self._expected)
        told.stored += stored
        if total > stored:
            self._begin()
        self._write()

    def advanced(self, *, failed: bool = False, quarantined: bool = False) -> None:
        """Hear that a run ended."""
        self._told.done += 1
        self._told.failed += failed
        self._told.quarantined += quarantined
        if time.monotonic() - self._written_s >= _WRITE_EVERY_S:
            self._write()

    def _write(self) -> None:
        if self._lock is None:
            return
        told = self._told
        told.at_s = self._clock()
        self._known.append((told.at_s, told.done))
        while len(self._known) > 1 and told.at_s - self._known[0][0] > _WINDOW_S:
            self._known.popleft()
        told.since_s, told.since_done = self._known[0]
        self._written_s = time.monotonic()
        # Runs are worth more than what is said of them.
        with contextlib.suppress(OSError):
            write_progress(self.place, told)


class _Recorded(Progress):
    """Progress of one plan of a sweep."""

    def __init__(self, recording: Recording, position: int, shown: Progress) -> None:
        self._recording = recording
        self._position = position
        self._shown = shown

    def says(self, text: str) -> None:
        """Pass on; see `Progress`."""
        self._shown.says(text)

    def noted(self, plan: str) -> None:
        """Hear what the plan is called; see `Progress`."""
        self._recording.noted(self._position, plan)

    def begin(self, total: int, stored: int) -> None:
        """Begin; see `Progress`."""
        self._recording.began(self._position, total, stored)
        self._shown.begin(total, stored)

    def advance(self) -> None:
        """Hear that one more run finished."""
        self._recording.advanced()
        self._shown.advance()

    def failed(self, failure: Failure) -> None:
        """Hear that a run failed."""
        self._recording.advanced(failed=True)
        self._shown.failed(failure)

    def quarantined(self, failure: Failure) -> None:
        """Hear that a run was set aside."""
        self._recording.advanced(failed=True, quarantined=True)
        self._shown.quarantined(failure)

    def end(self) -> None:
        """Hear no more."""
        self._shown.end()
