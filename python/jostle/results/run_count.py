"""How many runs of a condition finished, and why the others failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_REASONS = 3
"""Number of reasons that a text names; the remaining ones are counted."""


@dataclass(frozen=True)
class RunCount:
    """Runs of a condition or of several.

    Attributes
    ----------
    finished
        Number of runs that finished.
    errors
        Error message of each run that failed.

    Examples
    --------
    >>> str(RunCount(15, ("stalled", "stalled", "reset", "stalled", "stalled")))
    '15 of 20 runs, 5 failed: stalled (4), reset (1)'
    """

    finished: int
    errors: tuple[str, ...] = ()

    @classmethod
    def sum_of(cls, counts: Iterable[RunCount]) -> RunCount:
        """Return the runs of several conditions together."""
        every = list(counts)
        errors = tuple(error for one in every for error in one.errors)
        return cls(sum(one.finished for one in every), errors)

    @property
    def failed(self) -> int:
        """Number of runs that failed."""
        return len(self.errors)

    @property
    def total(self) -> int:
        """Number of runs."""
        return self.finished + self.failed

    @property
    def reason(self) -> str:
        """Why runs failed, the most frequent reason first; empty if none failed."""
        reasons = Counter(" ".join(error.split()) for error in self.errors).most_common()
        if len(reasons) == 1:
            return reasons[0][0]
        told = [f"{reason} ({number})" for reason, number in reasons[:_REASONS]]
        more = sum(number for _, number in reasons[_REASONS:])
        return ", ".join([*told, *([f"other reasons ({more})"] if more else [])])

    @property
    def incomplete(self) -> str:
        """The text if a run failed; empty otherwise."""
        return str(self) if self.errors else ""

    def __str__(self) -> str:
        """Return the number of runs and, if some failed, how many and why."""
        if not self.errors:
            return f"{self.finished} {_runs(self.finished)}"
        runs = f"{self.finished} of {self.total} {_runs(self.total)}"
        return f"{runs}, {self.failed} failed: {self.reason}"


def _runs(number: int) -> str:
    # number_format has this for any noun, but would load NumPy for every command.
    return "run" if number == 1 else "runs"
