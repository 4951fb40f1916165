"""Completion times of a run, with lower bounds for transfers that the end of the run interrupts.

A transfer that is not complete when the run ends takes longer than the time that it had. Without
it, a mean is too small, and means of runs with different numbers of complete transfers are not
comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.backends import Run
    from jostle.results.measures import Measure

__all__ = ["BOUNDED", "CompletionTimes", "censoring_time_s", "completion_times", "longer_run"]

BOUNDED: Final = frozenset(
    {
        "completion_time", "group_completion_time", "completion_time_p50", "completion_time_p95",
        "completion_time_p99",
    }
)  # fmt: skip
"""Measures of completion times: a run in which a transfer is not complete has a lower bound."""


@dataclass(frozen=True)
class CompletionTimes:
    """Completion times of the transfers of a flow or group in one run.

    Attributes
    ----------
    times_s
        Completion times of complete transfers, and the time that the others had.
    unfinished
        Number of transfers that were not complete.
    """

    times_s: tuple[float, ...]
    unfinished: int

    @property
    def mean_s(self) -> float:
        """Mean completion time; a lower bound of it if a transfer was not complete."""
        return sum(self.times_s) / len(self.times_s)

    def of(self, wanted: Measure) -> float:
        """Return one of `BOUNDED`; a lower bound of it if a transfer was not complete."""
        if wanted.percent is None:
            return self.mean_s
        import numpy as np

        return float(np.percentile(self.times_s, wanted.percent))


def censoring_time_s(run: Run, name: str) -> float:
    """Return the time from a flow's start to the end of the run in s; 0 if it never started.

    The completion time of an incomplete flow is longer.
    """
    for flow, entry in zip(run.spec["flows"], run.summary["flows"], strict=True):
        if flow["name"] == name:
            # Summaries of 0.1.0 have no actual start.
            start_s = entry.get("start_s", flow["start_ns"] / 1e9)
            return 0.0 if start_s is None else max(run.spec["duration_ns"] / 1e9 - start_s, 0.0)
    return 0.0


def completion_times(run: Run, names: Sequence[str]) -> CompletionTimes | None:
    """Return the completion times of some flows; None if one of them never ends by itself."""
    entries: dict[str, Any] = {entry["name"]: entry for entry in run.summary["flows"]}
    many = {flow["name"] for flow in run.spec["flows"] if flow.get("arrivals") is not None}
    length_s = run.spec["duration_ns"] / 1e9
    times: list[float] = []
    unfinished = 0
    for name in names:
        if name in many:
            frame = run.transfers
            if frame is None:
                return None
            rows = frame.filter(frame["flow"] == name)
            found = list(zip(rows["time_s"], rows["completion_time_s"], strict=True))
            times += [length_s - begin if taken is None else taken for begin, taken in found]
            unfinished += sum(taken is None for _, taken in found)
            continue
        entry = entries.get(name, {})
        if entry.get("completion_time_s") is not None:
            times.append(entry["completion_time_s"])
        elif entry.get("unfinished"):
            times.append(censoring_time_s(run, name))
            unfinished += 1
        else:
            return None
    return CompletionTimes(tuple(times), unfinished) if times else None


def longer_run(runs: Sequence[Run]) -> str:
    """Return the advice to extend runs in which a transfer was not complete."""
    longest_s = max(run.spec["duration_ns"] / 1e9 for run in runs)
    return f"extend `duration` to {2 * longest_s:g} s"
