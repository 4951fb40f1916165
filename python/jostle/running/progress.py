"""Progress over runs: told to nobody, or on stderr as a bar or now and then a line."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from jostle.printable import echo, printable, single_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostle.results import Failure

PATIENCE_S = 2.0
"""How long a single run may last before anything is shown."""
LINE_EVERY_S = 5.0


class Progress:
    """Told how a plan goes; this one says nothing.

    Every method is called from the thread that carries the plan out.
    """

    def noted(self, plan: str) -> None:
        """Hear the name of the plan's file in the store; in every round of repeats anew."""

    def says(self, text: str) -> None:
        """Hear something that those who wait should know."""

    def begin(self, total: int, stored: int) -> None:
        """`total` different runs are needed, `stored` of them are there already."""

    def advance(self) -> None:
        """One more run finished."""

    def failed(self, failure: Failure) -> None:
        """Hear that a run failed."""

    def quarantined(self, failure: Failure) -> None:
        """Hear that a run failed because it kills whatever carries it out."""
        self.failed(failure)

    def end(self) -> None:
        """Nothing more will be told, whether or not the plan was carried out."""


class _Told(Progress):
    """Says what both kinds of progress say: what was stored, and what failed."""

    def __init__(self, labels: Sequence[str], what: str) -> None:
        self._labels = labels
        self._what = what
        self._failed = 0

    def says(self, text: str) -> None:
        """Say it; see `Progress`."""
        self._say(text)

    def begin(self, total: int, stored: int) -> None:
        """Begin to show; see `Progress`."""
        if stored:
            are = "run is" if total == 1 else "runs are"
            echo(f"{stored} of {total} {are} in the store", err=True)

    def failed(self, failure: Failure) -> None:
        """Say which run failed, and why."""
        label = single_line(self._labels[failure.condition])
        where = f"{label}, seed {failure.seed}" if label else f"seed {failure.seed}"
        self._failed += 1
        self._say(f"run failed ({where}): {failure.error}")

    def _say(self, text: str) -> None:
        echo(text, err=True)

    def _pace(self, rate: float, left: int) -> str:
        words = pace_words(rate, left, self._what.split()[0])
        return ", ".join([*words, *([f"{self._failed} failed"] if self._failed else [])])


class LineProgress(_Told):
    """A line every few seconds.

    Parameters
    ----------
    labels
        Names of the conditions.
    clock
        Seconds from any origin.
    what
        What is counted.
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
        """Begin to show; see `Progress`."""
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
        """Say which run failed, and why."""
        super().failed(failure)
        self.advance()


class BarProgress(_Told):
    """A bar with the time left.

    Parameters
    ----------
    labels
        Names of the conditions.
    what
        What is counted.
    patient
        Whether nothing is shown of what lasts less than `PATIENCE_S`; of a single run, never.
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
        """Begin to show; see `Progress`."""
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
        """Say which run failed, and why."""
        super().failed(failure)
        self.advance()

    def end(self) -> None:
        """Take the bar away."""
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
                # Above the bar, which is drawn anew below.
                shown = printable(text)
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
    """Say how fast something goes, and how long what is left takes, if that is known."""
    if not rate:
        return []
    fast = f"{rate:.1f}" if rate < 10 else f"{rate:.0f}"
    return [f"{fast} {what}/s", *([f"about {lasting(left / rate)} left"] if left else [])]


def lasting(seconds: float) -> str:
    """Say how long something lasts, in two units at most."""
    whole = round(seconds)
    for name, below, unit, smaller in (("d", "h", 86_400, 3_600), ("h", "min", 3_600, 60),
                                       ("min", "s", 60, 1)):  # fmt: skip
        if whole >= unit:
            rest = whole % unit // smaller
            return f"{whole // unit} {name} {rest} {below}" if rest else f"{whole // unit} {name}"
    return f"{whole} s"


def on_stderr(labels: Sequence[str] = (), *, what: str = "runs", patient: bool = False) -> Progress:
    """Choose the progress that suits stderr: a bar on a terminal, lines elsewhere."""
    if sys.stderr.isatty():
        return BarProgress(labels, what=what, patient=patient)
    return LineProgress(labels, what=what)
