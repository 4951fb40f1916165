"""Conformance: overlap of the Performance Envelopes of a flow and of a reference.

The reference may be the same controller on another backend, in another implementation, or with
other parameters. The first run of one side is compared with the first run of the other, and so on,
which gives a confidence interval. The reference's runs are also compared with each other as a
baseline, because two runs with different seeds never have the same points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError, unknown
from jostle.figures.data import Cloud, Multiples, ScatterData
from jostle.results import condition_names
from jostle.results.condition_names import Condition
from jostle.results.frames import table
from jostle.results.measures import measure
from jostle.results.number_format import ABSENT, count, decimals, plain, with_interval
from jostle.results.operating_points import (
    DELAY_AXIS,
    ENVELOPE_CAPTION,
    RATE_AXIS,
    RTTS,
    OperatingPoints,
    operating_points,
)
from jostle.results.run_count import RunCount
from jostle.results.text_table import Table
from jostle.stats import Estimate, Method, conformance, deviation, estimate, mean

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run
    from jostle.results.finished_runs import FinishedRuns

NAMES: Final = ("conformance", "deviation", "throughput_shift", "delay_shift")
"""Measures of a pair of runs."""


@dataclass(frozen=True)
class Pair:
    """Operating points of a flow and of its reference, of one run each."""

    test: OperatingPoints
    reference: OperatingPoints

    def value(self, name: str) -> float | None:
        """Return a measure of pairs, in its unit; None if a side has no envelope."""
        test, reference = self.test.envelope, self.reference.envelope
        if test is None or reference is None:
            return None
        match name:
            case "conformance":
                return conformance(test, reference)
            case "deviation":
                return deviation(test, reference)
            case "throughput_shift":
                return test.y - reference.y
            case "delay_shift":
                return test.x - reference.x
        raise ValueError(name)


def repeatabilities(runs: Sequence[OperatingPoints]) -> list[float | None]:
    """Return the mean conformance of each run of a flow to its other runs; None if undefined."""
    return [
        mean(Pair(one, other).value("conformance") for other in runs if other is not one)
        for one in runs
    ]


@dataclass(frozen=True)
class ConformanceResult:
    """Conformance of a flow to a reference under one condition.

    Attributes
    ----------
    condition
        Keys and values that both sides have.
    flow, reference
        Names of the two flows.
    pairs
        One pair for each run.
    incomplete
        See `Estimate`; of both sides.
    """

    condition: Condition
    flow: str
    reference: str
    pairs: tuple[Pair, ...]
    incomplete: str = ""

    def values(self, name: str) -> list[float | None]:
        """Return a measure of pairs for each run, in its unit."""
        return [pair.value(name) for pair in self.pairs]

    def estimate(self, name: str, method: Method = "t", confidence: float = 0.95) -> Estimate:
        """Estimate a measure of pairs over the runs."""
        shown = measure(name)
        found = estimate(self.values(name), shown.unit, method, confidence, bounds=shown.bounds)
        return replace(found, incomplete=self.incomplete)

    @cached_property
    def itself(self) -> float | None:
        """Mean conformance of the reference's runs to each other; None if there is one run."""
        return mean(repeatabilities([pair.reference for pair in self.pairs]))


def conformance_results(
    test: FinishedRuns,
    reference: FinishedRuns,
    flows: Sequence[str] = (),
    *,
    against: str = "",
    phase: str = "",
    rtts: float = RTTS,
) -> list[ConformanceResult]:
    """Compute the conformance of flows of one side to flows of the other.

    Parameters
    ----------
    test, reference
        The two sides. Conditions are compared if their keys and values are equal, or if each side
        has one condition.
    flows
        Names of flows; all flows of both sides if empty.
    against
        Name of the reference's flow, if it differs.
    phase, rtts
        See `operating_points`.

    Raises
    ------
    InputError
        When a flow or a phase is not known, nothing is common to both sides, or a series is too
        coarse.
    """
    found = []
    for at, other, condition in _common(test, reference):
        names = _names(_controlled(test, at), _controlled(reference, other), flows, against)
        for name, theirs in names:
            pairs = [
                Pair(*(operating_points(run, who, phase, rtts)
                       for run, who in ((one, name), (two, theirs))))
                for one, two in zip(_runs(test, at), _runs(reference, other), strict=False)
            ]  # fmt: skip
            sides = (test.run_count(at), reference.run_count(other))
            incomplete = RunCount.sum_of(sides).incomplete
            found.append(ConformanceResult(condition, name, theirs, tuple(pairs), incomplete))
    return found


def conformance_frame(
    found: Sequence[ConformanceResult], method: Method = "t", confidence: float = 0.95
) -> pl.DataFrame:
    """Return all values, unrounded; see `ResultSet.conformance`."""
    keys = list(dict.fromkeys(key for one in found for key in one.condition))
    labels = condition_names.labels([one.condition for one in found])
    numbers = ("conformance", "low", "high", "itself", *NAMES[1:])
    rows = []
    for label, one in zip(labels, found, strict=True):
        main = one.estimate("conformance", method, confidence)
        rows.append(
            {"condition": label, "flow": one.flow, "reference": one.reference}
            | {key: one.condition.get(key) for key in keys}
            | {"conformance": main.value, "low": main.low, "high": main.high, "itself": one.itself}
            | {name: one.estimate(name).value for name in NAMES[1:]}
            | {"n": main.n, "unit": main.unit, "method": main.method}
            | {"incomplete": one.incomplete or None}
        )
    columns = [
        "condition", *keys, "flow", "reference", *numbers, "n", "unit", "method", "incomplete",
    ]  # fmt: skip
    return table(rows, columns, numbers)


def conformance_figure(found: Sequence[ConformanceResult], names: tuple[str, str]) -> Multiples:
    """Return the envelopes of both sides, one chart per flow and condition.

    Parameters
    ----------
    found
        Results of the comparison.
    names
        Names of the test and of the reference.
    """
    parts = []
    labels = condition_names.labels([one.condition for one in found])
    several = len({one.flow for one in found}) > 1
    for label, one in zip(labels, found, strict=True):
        first = one.pairs[0]
        clouds = tuple(
            Cloud(name, points.delay, points.throughput, points.envelope)
            for name, points in zip(names, (first.test, first.reference), strict=True)
        )
        value = one.estimate("conformance").value
        said = "" if value is None else f"conformance {value:.2f}"
        words = [label, one.flow if several else "", said]
        parts.append((", ".join(filter(None, words)), ScatterData(DELAY_AXIS, RATE_AXIS, clouds)))
    runs = count(max(len(one.pairs) for one in found), "run")
    several_runs = "" if runs == "1 run" else f" Conformance: mean over {runs}; drawn is the first."
    failed = "".join(f" {note}." for note in _failure_notes(found))
    return Multiples(tuple(parts), f"{ENVELOPE_CAPTION}{several_runs}{failed}")


def conformance_table(found: Sequence[ConformanceResult]) -> Table:
    """Return a table of the measures of pairs, one row per flow and condition."""
    labels = condition_names.labels([one.condition for one in found])
    header = ("condition", "flow", "reference")
    columns = []
    for name in NAMES:
        shown = measure(name)
        estimates = [one.estimate(name) for one in found]
        places = decimals(estimates, shown)
        # The other three show means only: with intervals a row would not fit a terminal.
        written = with_interval if name == "conformance" else _mean
        columns.append([written(one, shown.factor, places) for one in estimates])
    itself = [ABSENT if one.itself is None else f"{one.itself:.2f}" for one in found]
    rows = [
        (label, one.flow, one.reference, *cells)
        for label, one, *cells in zip(labels, found, columns[0], itself, *columns[1:], strict=True)
    ]
    wanted = [at for at, name in enumerate(header) if _distinguishes_rows(name, rows, at)]
    picked = [*wanted, *range(len(header), len(header) + len(_HEADINGS))]
    names = (*header, *_HEADINGS)
    return Table(
        tuple(names[at] for at in picked),
        tuple(tuple(row[at] for at in picked) for row in rows),
        (),
        len(wanted),
        notes=_failure_notes(found),
    )


def _failure_notes(found: Sequence[ConformanceResult]) -> tuple[str, ...]:
    """Return remarks on failed runs of both sides."""
    labels = condition_names.labels([one.condition for one in found])
    told = (
        f"{label}: {one.incomplete}" if label else one.incomplete
        for label, one in zip(labels, found, strict=True)
        if one.incomplete
    )
    return tuple(dict.fromkeys(told))


def _mean(found: Estimate, factor: float, places: int) -> str:
    return plain(found.value, factor, places)


def _distinguishes_rows(name: str, rows: Sequence[tuple[str, ...]], at: int) -> bool:
    """Return whether a text column is needed to distinguish the rows."""
    if name == "reference":
        return any(row[1] != row[2] for row in rows)
    return name == "flow" or any(row[at] for row in rows)


_HEADINGS: Final = (
    "conformance", "reference\nto itself", "deviation", "throughput\nshift, %", "delay\nshift, %",
)  # fmt: skip

CONFORMANCE_NOTE: Final = (
    "Conformance: share of the points of both that lie inside the other's Performance Envelope, "
    "run by run. “Reference to itself”: the same between the reference's runs. Deviation and "
    "shifts compare the mean points, in units of the path's rate and base RTT."
)


def _common(test: FinishedRuns, reference: FinishedRuns) -> list[tuple[int, int, Condition]]:
    """Return the positions and keys of the conditions that both sides ran."""
    ours = [at for at in range(len(test.conditions)) if test.runs_of(at)]
    theirs = [at for at in range(len(reference.conditions)) if reference.runs_of(at)]
    common: list[tuple[int, int, Condition]] = [
        (at, other, test.conditions[at])
        for at in ours
        for other in theirs
        if test.conditions[at] == reference.conditions[other]
    ]
    if not common and len(ours) == len(theirs) == 1:
        common = [(ours[0], theirs[0], {})]
    if not common:
        for name, side in (("tested side", test), ("reference", reference)):
            if side.failures and not side.results:
                raise side.unfinished_error(f"{name}: ")
        raise InputError("the two sides have no condition in common that ran on both")
    return common


def _controlled(side: FinishedRuns, condition: int) -> list[str]:
    """Return the names of the flows with a controller; datagrams have no envelope."""
    flows = side.runs_of(condition)[0].run.summary["flows"]
    return [flow["name"] for flow in flows if flow["controller"] != "none"]


def _names(
    ours: Sequence[str], theirs: Sequence[str], flows: Sequence[str], against: str
) -> list[tuple[str, str]]:
    """Return the pairs of flow and reference to compare."""
    for name in flows:
        if name not in ours:
            raise InputError(unknown("flow", name, ours))
    if against:
        if against not in theirs:
            raise InputError(unknown("flow", against, theirs))
        return [(name, against) for name in flows or ours if flows or name != against]
    for name in flows:
        if name not in theirs:
            raise InputError(unknown("flow of the reference", name, theirs))
    common = [name for name in flows or ours if name in theirs]
    if not common:
        raise InputError(
            "the two sides have no flow in common: say which one is the reference by its name"
        )
    return [(name, name) for name in common]


def _runs(side: FinishedRuns, condition: int) -> Iterable[Run]:
    return [one.run for one in sorted(side.runs_of(condition), key=lambda one: one.seed)]
