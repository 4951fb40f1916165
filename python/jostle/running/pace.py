"""How many runs go out at once: long ones each by itself, short ones together."""

from __future__ import annotations

__all__ = ["Pace"]

TARGET_S = 0.5
"""How long the runs of a job should take together."""
_TARGET_S_OF_A_WORKER = 2.5e-3
"""The same for each worker: Dask's scheduler needs 1.25 ms per job, and gets twice that."""
_TIMES_STORING = 4
"""How many times as long the runs of a job should take as storing them, which costs hardly more for
many: on a busy disk it takes seconds."""
_LONGEST_S = 10.0
"""Beyond which storing makes no job longer: a worker that dies takes its job with it."""
MOST_RUNS = 500
"""Of a job."""
_FIRST_AHEAD = 32
_MOST_AHEAD = 1024
"""Jobs that an executor is given before it has finished others."""
_AHEAD_OF_A_WORKER = 2
"""Jobs of each worker: one that it carries out, and one that it need not wait for."""
_SHARES = 64
"""Into how many jobs what is left is divided at least, so that all workers end together."""


class Pace:
    """Learns from jobs that ended how long runs take.

    Parameters
    ----------
    workers
        How many carry jobs out; 0 if that is not known.
    """

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers
        self._target_s = max(TARGET_S, _TARGET_S_OF_A_WORKER * workers)
        self._mean_s = 0.0
        self._storing_s = 0.0
        self._ended = 0

    @property
    def ahead(self) -> int:
        """How many jobs may be out: the more, the more have come back."""
        least = max(_FIRST_AHEAD, _AHEAD_OF_A_WORKER * self._workers)
        return max(least, min(_MOST_AHEAD, _FIRST_AHEAD + self._ended))

    def runs_of_a_job(self, left: int) -> int:
        """How many runs the next job should have, of those that are left."""
        if not self._ended:
            return 1
        worth_storing_s = min(_TIMES_STORING * self._storing_s, _LONGEST_S)
        fair = max(self._target_s, worth_storing_s) / max(self._mean_s, 1e-6)
        return max(1, min(MOST_RUNS, int(fair), -(-left // max(_SHARES, self._workers))))

    def ended(self, runs: int, took_s: float, storing_s: float = 0.0) -> None:
        """Hear of a job that ended: how long its runs took, and storing them."""
        self._ended += 1
        # Later runs of a sweep may be longer than its first.
        weight = 1.0 if self._ended == 1 else 0.2
        self._mean_s += weight * (took_s / max(runs, 1) - self._mean_s)
        self._storing_s += weight * (storing_s - self._storing_s)
