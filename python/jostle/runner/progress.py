"""Progress of runs: hidden, or on stderr as a bar or as occasional lines."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from jostle.safe_io.terminal_text import echo, escape_control_characters, single_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostle.results import Failure

PATIENCE_S = 2.0
"""Time that a single run takes before progress is shown."""
LINE_EVERY_S = 5.0


class Progress:
    """Receives events of a plan's execution; this class ignores them.

    All methods are called from the thread that carries out the plan.
    """

    def on_plan_stored(self, plan: str) -> None:
        """Receive the name of the plan's file in the store, in every round of repeats."""

    def on_message(self, text: str) -> None:
        """Receive a message for the user."""

    def begin(self, total: int, stored: int) -> None:
        """Receive the number of distinct runs, and the number of them that are already stored."""

    def advance(self) -> None:
        """Receive that a run finished."""

    def failed(self, failure: Failure) -> None:
        """Receive that a run failed."""

    def quarantined(self, failure: Failure) -> None:
        """Receive that a run failed because it kills its process."""
        self.failed(failure)

    def end(self) -> None:
        """Receive the end of the plan, whether or not it succeeded."""


class _TextProgress(Progress):
    """Common output of both kinds of progress: stored runs, and failures."""

    def __init__(self, labels: Sequence[str], what: str) -> None:
        self._labels = labels
        self._what = what
        self._failed = 0
        self._reasons: set[str] = set()
        self._repeated = 0

    def on_message(self, text: str) -> None:
        """Print the message; see `Progress`."""
        self._say(text)

    def begin(self, total: int, stored: int) -> None:
        """Show the start; see `Progress`."""
        if stored:
            are = "run is" if total == 1 else "runs are"
            echo(f"{stored} of {total} {are} in the store", err=True)

    def failed(self, failure: Failure) -> None:
        """Print which run failed, and why; a reason that was printed before is only counted."""
        self._failed += 1
        if failure.error in self._reasons:
            self._repeated += 1
            return
        self._reasons.add(failure.error)
        label = single_line(self._labels[failure.condition])
        where = f"{label}, seed {failure.seed}" if label else f"seed {failure.seed}"
        self._say(f"run failed ({where}): {failure.error}")

    def end(self) -> None:
        """Print how many more runs failed for reasons that were printed before."""
        if self._repeated:
            runs = "run" if self._repeated == 1 else "runs"
            reason = "the same reason" if len(self._reasons) == 1 else "one of these reasons"
            self._say(f"{self._repeated} more {runs} failed for {reason}")
        self._repeated = 0

    def _say(self, text: str) -> None:
        echo(text, err=True)

    def _pace(self, rate: float, left: int) -> str:
        words = pace_words(rate, left, self._what.split()[0])
        return ", ".join([*words, *([f"{self._failed} failed"] if self._failed else [])])


class LineProgress(_TextProgress):
    """Prints a line every few seconds.

    Parameters
    ----------
    labels
        Names of the conditions.
    clock
        Seconds from any origin.
    what
        Plural noun of the counted objects.
    """

    def __init__(
        self,
        labels: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        *,
        what: str = "runs",
    ) -> None:
        super().__init__(labels, what)
        self._clock = clock
        self._done = 0
        self._to_do = 0
        self._began_s = self._spoke_s = clock()

    def begin(self, total: int, stored: int) -> None:
        """Show the start; see `Progress`."""
        super().begin(total, stored)
        self._to_do = total - stored
        self._began_s = self._spoke_s = self._clock()

    def advance(self) -> None:
        """Show that one more run finished."""
        self._done += 1
        now_s = self._clock()
        if now_s - self._spoke_s < LINE_EVERY_S or self._done == self._to_do:
            return
        self._spoke_s = now_s
        pace = self._pace(self._done / (now_s - self._began_s), self._to_do - self._done)
        echo(f"{self._done} of {self._to_do} {self._what}, {pace}", err=True)

    def failed(self, failure: Failure) -> None:
        """Print which run failed, and why."""
        super().failed(failure)
        self.advance()


class BarProgress(_TextProgress):
    """Shows a bar with the remaining time.

    Parameters
    ----------
    labels
        Names of the conditions.
    what
        Plural noun of the counted objects.
    patient
        Whether work that takes less than `PATIENCE_S` is hidden; a single run always is.
    """

    def __init__(self, labels: Sequence[str], *, what: str = "runs", patient: bool = False) -> None:
        super().__init__(labels, what)
        self._patient = patient
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Any = None
        self._task: Any = None
        self._to_do = 0
        self._done = 0
        self._began_s = time.monotonic()
        self._over = False

    def begin(self, total: int, stored: int) -> None:
        """Show the start; see `Progress`."""
        super().begin(total, stored)
        self._to_do = total - stored
        self._began_s = time.monotonic()
        if self._to_do > 1 and not self._patient:
            self._show()
        elif self._to_do > 0:
            self._timer = threading.Timer(PATIENCE_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def advance(self) -> None:
        """Show that one more run finished."""
        with self._lock:
            self._done += 1
            if self._bar is not None:
                self._bar.update(self._task, completed=self._done, pace=self._now())

    def failed(self, failure: Failure) -> None:
        """Print which run failed, and why."""
        super().failed(failure)
        self.advance()

    def end(self) -> None:
        """Remove the bar; see `Progress`."""
        super().end()
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _now(self) -> str:
        took_s = time.monotonic() - self._began_s
        return self._pace(self._done / took_s, 0) if self._done and took_s > 0 else ""

    def _say(self, text: str) -> None:
        with self._lock:
            if self._bar is not None:
                # Print above the bar, which is drawn again below.
                shown = escape_control_characters(text)
                self._bar.console.print(shown, markup=False, highlight=False, soft_wrap=True)
                return
        super()._say(text)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress

        with self._lock:
            if self._over:
                return
            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[pace]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(
                self._what, total=self._to_do, completed=self._done, pace=self._now()
            )
            self._bar.start()


def pace_words(rate: float | None, left: int, what: str = "runs") -> list[str]:
    """Return the rate and the remaining time in words, if known."""
    if not rate:
        return []
    fast = f"{rate:.1f}" if rate < 10 else f"{rate:.0f}"
    return [f"{fast} {what}/s", *([f"about {lasting(left / rate)} left"] if left else [])]


def lasting(seconds: float) -> str:
    """Format a duration with at most two units."""
    whole = round(seconds)
    for name, below, unit, smaller in (("d", "h", 86_400, 3_600), ("h", "min", 3_600, 60),
                                       ("min", "s", 60, 1)):  # fmt: skip
        if whole >= unit:
            rest = whole % unit // smaller
            return f"{whole // unit} {name} {rest} {below}" if rest else f"{whole // unit} {name}"
    return f"{whole} s"


def on_stderr(labels: Sequence[str] = (), *, what: str = "runs", patient: bool = False) -> Progress:
    """Return the progress that suits stderr: a bar on a terminal, else lines."""
    if sys.stderr.isatty():
        return BarProgress(labels, what=what, patient=patient)
    return LineProgress(labels, what=what)
