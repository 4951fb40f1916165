"""Writer that collects finished runs and stores many at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from jostle.store.segments.packing import Keep, PackedRun, packed

if TYPE_CHECKING:
    from jostle.backends import RunRecord
    from jostle.store.store import Store

MOST_RUNS = 1_000
"""Largest number of runs of a segment."""
MOST_BYTES = 64_000_000
"""Largest size in memory of the runs of a segment."""
MOST_WAIT_S = 2.0
"""Time that a finished run waits for others, and that is lost if the process is killed."""


class Writer:
    """Collects finished runs from any thread, and writes them to a store in segments.

    A run is stored after the `flush` that follows its `put`. Runs with captures are stored
    immediately, in folders.

    A writer may be sent to another process. There, `flush_in_worker` writes the runs of a job.

    Parameters
    ----------
    store
        The store.
    keep
        Whether series are kept, or the summary only.
    clock
        Seconds from any origin.
    """

    def __init__(
        self,
        store: Store,
        keep: Keep = "series",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.keep: Keep = keep
        self._clock = clock
        self._elsewhere = False
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[str, PackedRun] = {}
        self._bytes = 0
        self._first_s = 0.0

    def __reduce__(self) -> tuple[Callable[[Store, Keep], Writer], tuple[Store, Keep]]:
        return _elsewhere, (self.store, self.keep)

    def put(self, finished: RunRecord | PackedRun) -> None:
        """Add a run, which may be written later together with others.

        Raises
        ------
        StoreError
            When runs cannot be stored.
        """
        if isinstance(finished, PackedRun):
            run = finished
        elif finished.captured is not None:
            self.store.put(finished)
            return
        else:
            run = packed(finished, self.keep)
        with self._lock:
            if not self._waiting:
                self._first_s = self._clock()
            self._waiting[run.name] = run
            self._bytes += run.size_bytes
            full = len(self._waiting) >= MOST_RUNS or self._bytes >= MOST_BYTES
        if full:
            self.flush()

    def flush_if_due(self) -> None:
        """Write waiting runs if the first of them has waited long enough."""
        with self._lock:
            due = self._waiting and self._clock() - self._first_s >= MOST_WAIT_S
        if due:
            self.flush()

    def flush_in_worker(self) -> None:
        """End a job: in a process that did not create the writer, write waiting runs."""
        if self._elsewhere:
            self.flush()

    def flush(self) -> None:
        """Write all runs that were added.

        Raises
        ------
        StoreError
            When they cannot be stored; then none of them is.
        """
        # The lock also waits for runs that another thread is writing.
        with self._writing:
            runs: dict[str, PackedRun] = {}
            try:
                with self._lock:
                    runs, self._waiting, self._bytes = self._waiting, {}, 0
                if runs:
                    self.store.put_all(list(runs.values()))
            except BaseException:
                # Ctrl-C can occur anywhere; the next flush writes the finished runs.
                with self._lock:
                    self._waiting = runs | self._waiting
                    self._bytes += sum(run.size_bytes for run in runs.values())
                raise


def _elsewhere(store: Store, keep: Keep) -> Writer:
    writer = Writer(store, keep)
    writer._elsewhere = True
    return writer
