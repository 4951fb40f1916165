"""Where finished runs go: gathered, and written to the store many at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from jostle.running.segments.content import Keep, PackedRun, packed

if TYPE_CHECKING:
    from jostle.backends import RunRecord
    from jostle.running.store import Store

MOST_RUNS = 1_000
"""Of a segment."""
MOST_BYTES = 64_000_000
"""Of the runs of a segment, in memory."""
MOST_WAIT_S = 2.0
"""How long a finished run waits for others: what is lost, at most, when the process is killed."""


class Writer:
    """Takes finished runs, from any thread, and writes them to a store in segments.

    A run is stored when `flush` has returned after it was put. Captures have folders of their own,
    and are stored at once.

    A writer may be sent to another process: there it writes what it was given at each `settle`.

    Parameters
    ----------
    store
        Where to.
    keep
        Whether series are kept, or the summary alone.
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

    def put(self, record: RunRecord) -> None:
        """Take a run; it may be written with others later.

        Raises
        ------
        StoreError
            When runs cannot be stored.
        """
        if record.captured is not None:
            self.store.put(record)
            return
        run = packed(record, self.keep)
        with self._lock:
            if not self._waiting:
                self._first_s = self._clock()
            self._waiting[run.name] = run
            self._bytes += run.size_bytes
            full = len(self._waiting) >= MOST_RUNS or self._bytes >= MOST_BYTES
        if full:
            self.flush()

    def flush_if_due(self) -> None:
        """Write what waits if the first of it has waited long enough."""
        with self._lock:
            due = self._waiting and self._clock() - self._first_s >= MOST_WAIT_S
        if due:
            self.flush()

    def settle(self) -> None:
        """End a piece of work: in another process than the one that made it, write what waits."""
        if self._elsewhere:
            self.flush()

    def flush(self) -> None:
        """Write everything that was put.

        Raises
        ------
        StoreError
            When it cannot be stored; then none of it is.
        """
        # Whoever flushes waits until what others took before is written, too.
        with self._writing:
            runs: dict[str, PackedRun] = {}
            try:
                with self._lock:
                    runs, self._waiting, self._bytes = self._waiting, {}, 0
                if runs:
                    self.store.put_all(list(runs.values()))
            except BaseException:
                # Ctrl-C comes anywhere, and what had finished is written all the same, by the next.
                with self._lock:
                    self._waiting = runs | self._waiting
                    self._bytes += sum(run.size_bytes for run in runs.values())
                raise


def _elsewhere(store: Store, keep: Keep) -> Writer:
    writer = Writer(store, keep)
    writer._elsewhere = True
    return writer
