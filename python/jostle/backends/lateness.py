"""How late a real-time run was: what a busy machine does to its results.

In real time, a kernel that waits for a processor delays packets, ACKs and timers. The guest program
sleeps until fixed times and records when it woke up; the difference is the delay of that machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.backends.base import Run

BOUND_S: Final = 0.005
"""Delay that at most one sample in a hundred of a valid run exceeds."""
KEY: Final = "lateness"
"""Key of a summary; runs in virtual time do not have it."""


def lateness(time_ns: NDArray[np.int64], moments_ns: Sequence[int]) -> dict[str, float]:
    """Return the entry of a summary.

    Parameters
    ----------
    time_ns
        Times at which the samples were taken.
    moments_ns
        Times at which they were due.
    """
    import numpy as np

    late_s = (time_ns - np.asarray(moments_ns[: len(time_ns)], dtype=np.int64)) / 1e9
    median, p99 = np.percentile(late_s, (50, 99))
    return {
        "p50_s": float(median),
        "p99_s": float(p99),
        "max_s": float(late_s.max()),
        "bound_s": BOUND_S,
    }


def is_measured(run: Run) -> bool:
    """Return whether a run was in real time; a summary that is text need not be decoded for it."""
    text: str | None = getattr(run, "summary_text", None)
    return (text is None or f'"{KEY}":' in text) and KEY in run.summary


def exceeds_bound(summary: Mapping[str, Any]) -> bool:
    """Return whether the machine was too busy for a run in real time."""
    found = summary.get(KEY)
    return found is not None and found["p99_s"] > found["bound_s"]
