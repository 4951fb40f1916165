"""Evaluation of a suite on runs: deciding value, bound and verdict of each criterion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from jostle.results.measures import measure
from jostle.results.number_format import digits
from jostle.stats import Expectation
from jostle.studies import Runs
from jostle.studies.evaluate import evaluate, value_estimate
from jostle.studies.models import ClaimPart, Value
from jostle.suites.models import Criterion, SuitePart, SuiteValue
from jostle.suites.suite import Cell, Labels

Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True)
class ComparisonResult:
    """A comparison for one combination of labels.

    Attributes
    ----------
    where
        The labels.
    part
        Position of the comparison in the criterion.
    tested
        The value, its interval, the bound.
    what
        Difference from the values of the other comparisons of the criterion, in words.
    measured
        The quantity and what it is compared with, in words.
    """

    where: Labels
    part: int
    tested: Expectation
    what: str = ""
    measured: str = ""

    @property
    def verdict(self) -> Verdict:
        """Verdict; unknown if the value is beyond the bound but the interval contains the bound."""
        if self.tested.holds:
            return "pass"
        return "fail" if self.tested.verdict == "fails" else "unknown"

    @property
    def is_doubtful(self) -> bool:
        """Whether the bound is missed, but with too few runs to be certain."""
        tested = self.tested
        return tested.holds is False and not tested.certain and tested.ours.finite is not None


_ORDER: Final[Mapping[Verdict, int]] = {"fail": 2, "unknown": 1, "pass": 0}


@dataclass(frozen=True)
class CriterionResult:
    """A criterion and its result.

    Attributes
    ----------
    criterion
        The criterion.
    verdict
        `fail` if a comparison fails, else `unknown` if one has no value, has failed runs or is a
        miss whose interval contains the bound, else `pass`.
    comparisons
        All comparisons.
    reason
        Reason why it is unknown; empty otherwise.
    """

    criterion: Criterion
    verdict: Verdict
    comparisons: tuple[ComparisonResult, ...] = ()
    reason: str = ""

    @property
    def deciding(self) -> ComparisonResult | None:
        """The comparison with the largest excess; None without comparisons."""
        return max(
            self.comparisons, key=lambda one: (_ORDER[one.verdict], one.tested.excess), default=None
        )


@dataclass(frozen=True)
class SuiteResult:
    """Result of a suite for a controller.

    Attributes
    ----------
    suite, title, controller, baseline, backend
        Names.
    quick
        Whether it was a quick run.
    rows
        The criteria, in the order of the suite.
    version
        Version of the backend.
    runs
        Number of runs.
    failures
        One line for each failed run.
    words
        Words of the command that reproduces the card, without `jostle suite`.
    assumptions
        Sentences on what was left out of the suite, and why.
    """

    suite: str
    title: str
    controller: str
    baseline: str
    backend: str
    quick: bool
    rows: tuple[CriterionResult, ...]
    version: str = ""
    runs: int = 0
    failures: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    def failed(self, levels: Sequence[str]) -> list[CriterionResult]:
        """Return the criteria of some levels that are not met."""
        return [one for one in self.rows if one.verdict == "fail" and one.criterion.level in levels]


def evaluate_suite(
    runs: Runs,
    criteria: Sequence[Criterion],
    cells: Sequence[Cell],
    refused: Mapping[int, Sequence[str]],
) -> tuple[CriterionResult, ...]:
    """Evaluate criteria on runs.

    Parameters
    ----------
    runs
        Runs of the study that `Suite.study` created from `cells`.
    criteria, cells
        Criteria and cells of the suite.
    refused
        Position of a criterion → descriptions of runs that were not possible.
    """
    rows = evaluate(runs).claims
    differences = [distinguishing_labels(criterion) for criterion in criteria]
    found: dict[int, list[ComparisonResult]] = {}
    seen: set[tuple[object, ...]] = set()
    for cell, claim, row in zip(cells, runs.study.file.claims, rows, strict=True):
        said = differences[cell.criterion]
        for at, (placed, tested) in enumerate(zip(claim.parts, row.parts, strict=True)):
            part = criteria[cell.criterion].parts[at]
            where = _judged_labels(cell.where, part)
            # Cells that differ in other labels have the same comparison.
            if (key := (cell.criterion, at, *where.items())) in seen:
                continue
            seen.add(key)
            read = _as_read(runs, placed, tested)
            result = ComparisonResult(where, at, read, said[at], measured_quantity(part))
            found.setdefault(cell.criterion, []).append(result)
    return tuple(
        _judged(criterion, tuple(found.get(at, ())), refused.get(at, ()))
        for at, criterion in enumerate(criteria)
    )


def _judged_labels(where: Labels, part: SuitePart) -> Labels:
    """Return the labels of a cell that a comparison's values do not choose themselves."""
    return {
        key: label
        for key, label in where.items()
        if any(key not in value.where for value in part.values)
    }


def distinguishing_labels(criterion: Criterion) -> list[str]:
    """Return the differences between the values of a criterion's comparisons; empty if equal.

    If a value has two bounds, its texts are equal.
    """
    values = [part.left for part in criterion.parts]
    said: list[list[str]] = [[] for _ in values]
    for key in _TOLD:
        words = [_word(getattr(value, key, "")) for value in values]
        if len(set(words)) > 1:
            for one, word in zip(said, words, strict=True):
                one.extend([word] if word else [])
    return [", ".join(words) for words in said]


_TOLD: Final = ("experiment", "where", "flow", "measure", "quantity", "mode", "then", "window")
"""Keys of a value that identify it for a reader."""


def measured_quantity(part: SuitePart) -> str:
    """Return the quantity of a comparison: `throughput of there compared with the baseline's`."""
    if part.left is None:
        return ""
    text = _quantity(part.left)
    if not isinstance(part.right, SuiteValue):
        return text
    other = _quantity(part.right)
    if part.right.of != part.left.of:
        return text + f" compared with the {part.right.of}'s" + f" {other}" * (other != text)
    if other != text:
        return f"{text} compared with {other}"
    differing = [key for key in _TOLD if getattr(part.left, key) != getattr(part.right, key)]
    words = [(key, _word(getattr(part.right, key))) for key in differing]
    place = ", ".join(word if key == "where" else f"{key} {word}" for key, word in words)
    return f"{text} compared with {place}" if place else text


def _quantity(value: Value) -> str:
    """Return the measure, its summaries over time and runs, and the flow or link."""
    name = value.quantity or measure(value.measure).title
    if value.mode:
        name += f" ({value.mode})"
    if value.percentile is not None:
        name = f"p{value.percentile:g} of {name}"
    elif value.bins_above is not None:
        name = f"time with {name} ≥ {value.bins_above:g}"
    name = f"{name} of {value.flow}" if value.flow else name
    if value.summary == "share":
        return f"share of runs with {name} in the limits"
    return name if value.summary == "mean" else f"{value.summary} over the runs of {name}"


def _word(given: str | Mapping[str, str]) -> str:
    if isinstance(given, str):
        return given
    return ", ".join(f"{key} {label}" for key, label in given.items())


def _is_decided_by_worst_run(part: ClaimPart) -> bool:
    """Return whether the worst run alone is compared with a number."""
    worst = {"below": "max", "above": "min"}.get(part.relation)
    return (
        part.left is not None and part.left.summary == worst and not isinstance(part.right, Value)
    )


def _as_read(runs: Runs, part: ClaimPart, tested: Expectation) -> Expectation:
    """Convert a difference of two values to the first value and the bound that the second gives.

    If the worst run decides, its interval does not.
    """
    if _is_decided_by_worst_run(part):
        return tested.for_worst_run()
    if not isinstance(part.right, Value) or not (part.margin or part.within):
        return tested
    other = value_estimate(runs, part.right).value
    ours = tested.ours
    if other is None or math.isinf(other) or ours.value is None:
        return tested
    by = part.factor * other
    bound = tested.target + by
    low, high = (None if end is None else end + by for end in (ours.low, ours.high))
    ends = ours.possible
    possible = None if ends is None else (ends[0] + by, ends[1] + by)
    sign = tested.relation.split()[0]
    return replace(
        tested,
        relation=f"{sign} {digits(bound)} {ours.unit}".strip(),
        target=bound,
        ours=replace(ours, value=ours.value + by, low=low, high=high, possible=possible),
    )


def _judged(
    criterion: Criterion, comparisons: tuple[ComparisonResult, ...], refused: Sequence[str]
) -> CriterionResult:
    if criterion.unknown:
        return CriterionResult(criterion, "unknown", reason=criterion.unknown)
    if not comparisons:
        reason = "; ".join(refused) or "it was not asked for in this run of the suite"
        return CriterionResult(criterion, "unknown", reason=reason)
    worst = max((one.verdict for one in comparisons), key=lambda verdict: _ORDER[verdict])
    return CriterionResult(criterion, worst, comparisons, _reason(comparisons, worst, refused))


def _reason(comparisons: Sequence[ComparisonResult], worst: Verdict, refused: Sequence[str]) -> str:
    """Return the reason why a criterion is unknown; empty if it is known."""
    if worst != "unknown":
        return ""
    doubts = [one for one in comparisons if one.verdict == "unknown"]
    if any(one.tested.ours.incomplete for one in doubts):
        return "; ".join(["not judged, because runs failed", *refused])
    early = next((one for one in doubts if one.tested.ended_early), None)
    if early is not None:
        return "; ".join([early.tested.ours.method, *refused])
    missing = next((one for one in doubts if one.tested.ours.value is None), None)
    if missing is not None:
        return "; ".join([missing.tested.ours.method, *refused])
    most = max(one.tested.ours.n for one in doubts)
    return f"beyond its bound, by less than {most} runs can tell: more --repeats may decide"
