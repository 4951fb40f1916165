"""Number of runs per job: one for long runs, several for short ones."""

from __future__ import annotations

__all__ = ["BatchSizer"]

TARGET_S = 0.5
"""Target duration of a job's runs."""
_TARGET_S_OF_A_WORKER = 2.5e-3
"""Target duration per worker: Dask's scheduler needs 1.25 ms per job, and gets twice that."""
_TIMES_STORING = 4
"""Minimum ratio of a job's run time to its storing time. Storing takes hardly longer for many runs,
but it takes seconds on a busy disk."""
_LONGEST_S = 10.0
"""Duration up to which storing lengthens a job; a worker that dies loses its complete job."""
MOST_RUNS = 500
"""Largest number of runs of a job."""
_FIRST_AHEAD = 32
_MOST_AHEAD = 1024
"""Largest number of jobs that an executor gets before it has finished others."""
_AHEAD_OF_A_WORKER = 2
"""Jobs per worker: one that it runs, and one that is waiting for it."""
_SHARES = 64
"""Smallest number of jobs for the remaining runs, so that all workers end at the same time."""


class BatchSizer:
    """Estimates the duration of runs from finished jobs.

    Parameters
    ----------
    workers
        Number of workers; 0 if unknown.
    """

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers
        self._target_s = max(TARGET_S, _TARGET_S_OF_A_WORKER * workers)
        self._mean_s = 0.0
        self._storing_s = 0.0
        self._ended = 0

    @property
    def ahead(self) -> int:
        """Largest number of submitted jobs, which grows with the number of finished jobs."""
        least = max(_FIRST_AHEAD, _AHEAD_OF_A_WORKER * self._workers)
        return max(least, min(_MOST_AHEAD, _FIRST_AHEAD + self._ended))

    def runs_of_a_job(self, left: int) -> int:
        """Return the number of runs of the next job, given the number of remaining runs."""
        if not self._ended:
            return 1
        worth_storing_s = min(_TIMES_STORING * self._storing_s, _LONGEST_S)
        fair = max(self._target_s, worth_storing_s) / max(self._mean_s, 1e-6)
        return max(1, min(MOST_RUNS, int(fair), -(-left // max(_SHARES, self._workers))))

    def ended(self, runs: int, took_s: float, storing_s: float = 0.0) -> None:
        """Record the duration of a finished job: of its runs, and of storing them."""
        self._ended += 1
        # Later runs of a sweep may be longer than its first.
        weight = 1.0 if self._ended == 1 else 0.2
        self._mean_s += weight * (took_s / max(runs, 1) - self._mean_s)
        self._storing_s += weight * (storing_s - self._storing_s)
