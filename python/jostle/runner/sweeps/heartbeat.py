"""Records the progress of a sweep that this process carries out, and stops it on request."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jostle.errors import InputError, InterruptedRunError
from jostle.runner.progress import Progress
from jostle.runner.sweeps.state_folder import LOG, remove_record, write_record
from jostle.runner.sweeps.sweep_files import (
    COMMAND,
    FOLDER,
    LOCK,
    STOP,
    SweepCommand,
    SweepProgress,
    open_sweep_folder,
    write_command,
    write_progress,
)
from jostle.safe_io.folder_lock import LOCKS_ARE_SHARED, LockFile
from jostle.safe_io.open_folder import OpenFolder

if TYPE_CHECKING:
    from jostle.results import Failure

__all__ = ["SweepHeartbeat"]

_WRITE_EVERY_S = 1.0
_WINDOW_S = 60.0
"""Time over which the rate is averaged."""
_LOOK_EVERY_S = 0.5
_PATIENCE_S = 1.0
"""How long to wait for the lock: a process that shows the sweep holds it for an instant."""


def _interrupt() -> None:
    """Stop as SIGTERM does, which the command line handles."""
    signal.raise_signal(signal.SIGTERM)


class SweepHeartbeat:
    """A sweep that this process carries out, in the store and in the user's state folder.

    It is recorded while runs are left to do. A record that an earlier process left of the same
    command is reused, and removed at the end. If the store cannot be written to, or another process
    carries out the same command, nothing is recorded. If the state folder cannot be used, the sweep
    is shown in the store, but cannot be resumed.

    Parameters
    ----------
    store
        Its folder.
    command
        The command that is recorded.
    plans
        Title of each of its plans, and how many runs it has.
    detached
        Whether it is recorded from its beginning, even if no run is left to do.
    stop
        Called, in a separate thread, when a user asks the sweep to stop.
    clock
        Seconds since 1970.
    """

    def __init__(
        self,
        store: Path,
        command: SweepCommand,
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
        self._lock: LockFile | None = None
        self._folder: OpenFolder | None = None
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None
        self._record: Path | None = None
        self._progress = SweepProgress(titles=[title for title, _ in plans])
        self._known: deque[tuple[float, int]] = deque()
        self._written_s = 0.0

    def __enter__(self) -> SweepHeartbeat:
        if self._detached or os.path.exists(self.place / COMMAND):
            self._begin()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, *_: object) -> None:
        if self._lock is None or self._folder is None:
            return
        self._over.set()
        if self._watcher is not None:
            self._watcher.join()
        ended: Literal["finished", "stopped", "failed"] = "finished"
        if error is not None:
            orderly = isinstance(error, InterruptedRunError | KeyboardInterrupt)
            ended = "stopped" if orderly else "failed"
            self._progress.why = "" if orderly else str(error)
        self._progress.ended = ended
        with contextlib.suppress(OSError):
            self._folder.remove(STOP)
        self._write()
        # A finished sweep needs no record: its runs are in the store. A log is kept.
        done = ended == "finished" and not self._progress.failed
        done = done and (self._record is None or not (self._record / LOG).exists())
        if done:
            self._remove(self._folder)
            if self._record is not None:
                remove_record(self._command.name)
        self._lock.release()
        if done and not LOCKS_ARE_SHARED:
            # Windows does not remove a file that is open.
            self._remove(self._folder)
        self._folder.close()

    def progress(self, position: int, shown: Progress) -> Progress:
        """Return progress of the plan at `position`, which is recorded and passed to `shown`."""
        return _RecordedProgress(self, position, shown)

    def _begin(self) -> None:
        """Record the sweep, if that is possible."""
        if self._lock is not None:
            return
        try:
            folder = open_sweep_folder(self.place, make=True)
        except OSError:
            return
        with contextlib.suppress(OSError):
            self._lock = LockFile.take(folder, LOCK, wait_s=_PATIENCE_S)
        if self._lock is None:
            folder.close()
            return
        # It stays open: if it is replaced by a link meanwhile, nothing is written through the link.
        self._folder = folder
        with contextlib.suppress(OSError):
            folder.remove(STOP)
            # The progress of an earlier process is never shown with this process.
            self._write()
            write_command(folder, self._command)
            # Runs are worth more than the ability to resume them by a short command.
            with contextlib.suppress(InputError):
                self._record = write_record(self._command)
        self._watcher = threading.Thread(
            target=self._watch, args=[folder], name="jostle-sweep", daemon=True
        )
        self._watcher.start()

    def _watch(self, folder: OpenFolder) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            with contextlib.suppress(OSError):
                if folder.has(STOP):
                    self._stop()
                    return

    def _remove(self, folder: OpenFolder) -> None:
        """Remove the record in the store, unless another folder is in its place."""
        store, name = self.place.parents[1], self.place.name
        with contextlib.suppress(OSError):
            folder.clear()
            with OpenFolder.below(store, FOLDER) as parent:
                parent.remove_empty(name)

    def on_plan_stored(self, position: int, plan: str) -> None:
        """Record the name of a plan in the store."""
        self._names[position] = plan
        self._progress.plans = list(self._names)

    def began(self, position: int, total: int, stored: int) -> None:
        """Record how many runs a plan has, and how many of them are stored."""
        progress = self._progress
        if not self._begun[position]:
            self._begun[position] = True
            # Rounds of repeats are added to the runs that were known beforehand.
            self._expected[position] = 0
        self._expected[position] += total
        progress.total = sum(self._expected)
        progress.stored += stored
        if total > stored:
            self._begin()
        self._write()

    def advanced(self, failure: str | None = None, *, quarantined: bool = False) -> None:
        """Record that a run ended, and the error of one that failed."""
        self._progress.done += 1
        if failure is not None:
            self._progress.failed += 1
            self._progress.failure = failure
        self._progress.quarantined += quarantined
        if time.monotonic() - self._written_s >= _WRITE_EVERY_S:
            self._write()

    def _write(self) -> None:
        if self._folder is None:
            return
        progress = self._progress
        progress.at_s = self._clock()
        self._known.append((progress.at_s, progress.done))
        while len(self._known) > 1 and progress.at_s - self._known[0][0] > _WINDOW_S:
            self._known.popleft()
        progress.since_s, progress.since_done = self._known[0]
        self._written_s = time.monotonic()
        # Runs are worth more than their progress.
        with contextlib.suppress(OSError):
            write_progress(self._folder, progress)
        if self._record is not None:
            # Records without progress are removed after some months.
            with contextlib.suppress(OSError):
                os.utime(self._record)


class _RecordedProgress(Progress):
    """Progress of one plan of a sweep."""

    def __init__(self, recording: SweepHeartbeat, position: int, shown: Progress) -> None:
        self._recording = recording
        self._position = position
        self._shown = shown

    def on_message(self, text: str) -> None:
        """Pass on; see `Progress`."""
        self._shown.on_message(text)

    def on_plan_stored(self, plan: str) -> None:
        """Record the name of the plan; see `Progress`."""
        self._recording.on_plan_stored(self._position, plan)

    def begin(self, total: int, stored: int) -> None:
        """Begin; see `Progress`."""
        self._recording.began(self._position, total, stored)
        self._shown.begin(total, stored)

    def advance(self) -> None:
        """Record that a run finished; see `Progress`."""
        self._recording.advanced()
        self._shown.advance()

    def failed(self, failure: Failure) -> None:
        """Record that a run failed; see `Progress`."""
        self._recording.advanced(failure.error)
        self._shown.failed(failure)

    def quarantined(self, failure: Failure) -> None:
        """Record that a run was set aside; see `Progress`."""
        self._recording.advanced(failure.error, quarantined=True)
        self._shown.quarantined(failure)

    def end(self) -> None:
        """End; see `Progress`."""
        self._shown.end()
