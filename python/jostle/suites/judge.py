"""A suite held against runs: of each criterion the value that decides, its bound, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from jostle.studies import Runs, evaluate
from jostle.studies.evaluate import Tested, value_estimate
from jostle.studies.models import Part, Value
from jostle.studies.windows import RunView, Span
from jostle.studies.wording import digits
from jostle.suites.models import Criterion
from jostle.suites.suite import Cell, Labels

Verdict = Literal["pass", "fail", "unknown"]

NEVER: Final = ("completion", "download_time")
"""Measures without a value in a run by whose end they had not come: they count as never."""


class SuiteRuns(Runs):
    """Runs of a suite, in which what never came is later than any bound."""

    def _one(self, value: Value, run: RunView, span: Span) -> float | None:
        found = super()._one(value, run, span)
        return math.inf if found is None and value.measure in NEVER else found


@dataclass(frozen=True)
class Decided:
    """A comparison of one combination of labels.

    Attributes
    ----------
    where
        The labels.
    part
        Position of the comparison among those of the criterion.
    tested
        The value, its interval, the bound.
    what
        In what its value differs from those of the criterion's other comparisons, in words.
    by_one
        Whether a single run that is beyond the bound decides, as “all runs end within 5 s” has it.
    """

    where: Labels
    part: int
    tested: Tested
    what: str = ""
    by_one: bool = False

    @property
    def verdict(self) -> Verdict:
        """What the value says: nothing, if it is beyond the bound and its interval is not."""
        holds = self.tested.holds
        return _VERDICTS[None if holds is False and self.is_open else holds]

    @property
    def is_certain(self) -> bool:
        """Whether the whole interval says the same, or a run that is enough."""
        return self.tested.certain or (self.by_one and self.tested.holds is False)

    @property
    def is_open(self) -> bool:
        """Whether the interval allows the other verdict as well."""
        return self.tested.ours.low is not None and not self.is_certain

    @property
    def is_doubtful(self) -> bool:
        """Whether it is a miss of which a run or two say too little."""
        value = self.tested.ours.value
        never = value is None or math.isinf(value)
        return self.tested.holds is False and not self.is_certain and not never

    @property
    def excess(self) -> float:
        """By how much of the bound the value is on its wrong side; below 0 on its right side."""
        value, bound = self.tested.ours.value, self.tested.bound
        if value is None:
            return -math.inf
        beyond = abs(value - bound) if self.tested.relation.startswith("about") else value - bound
        if self.tested.relation.startswith("≥"):
            beyond = -beyond
        return beyond / (abs(bound) or 1.0)


_VERDICTS: Final[Mapping[bool | None, Verdict]] = {True: "pass", False: "fail", None: "unknown"}
_ORDER: Final[Mapping[Verdict, int]] = {"fail": 2, "unknown": 1, "pass": 0}


@dataclass(frozen=True)
class Judged:
    """A criterion and what runs say of it.

    Attributes
    ----------
    criterion
        The criterion.
    verdict
        `fail` if a comparison fails, else `unknown` if one has no value or is a miss that its
        interval leaves open, else `pass`.
    comparisons
        All of them.
    reason
        Why it is unknown; empty otherwise.
    """

    criterion: Criterion
    verdict: Verdict
    comparisons: tuple[Decided, ...] = ()
    reason: str = ""

    @property
    def deciding(self) -> Decided | None:
        """The comparison that is worst off; None where there is none."""
        return max(
            self.comparisons, key=lambda one: (_ORDER[one.verdict], one.excess), default=None
        )


@dataclass(frozen=True)
class Card:
    """What a suite says of a controller.

    Attributes
    ----------
    suite, title, controller, baseline, backend
        Names.
    quick
        Whether it was a quick look.
    rows
        The criteria, in the order of the suite.
    version
        Of the backend.
    runs
        How many runs it is made of.
    failures
        Runs that failed, in a line each.
    words
        Words of the command that gives the card again, from the suite on.
    """

    suite: str
    title: str
    controller: str
    baseline: str
    backend: str
    quick: bool
    rows: tuple[Judged, ...]
    version: str = ""
    runs: int = 0
    failures: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def failed(self, levels: Sequence[str]) -> list[Judged]:
        """Criteria of some levels that are not met."""
        return [one for one in self.rows if one.verdict == "fail" and one.criterion.level in levels]


def judge(
    runs: Runs,
    criteria: Sequence[Criterion],
    cells: Sequence[Cell],
    refused: Mapping[int, Sequence[str]],
) -> tuple[Judged, ...]:
    """Hold criteria against runs.

    Parameters
    ----------
    runs
        Of the study that `Suite.study` has made of `cells`.
    criteria, cells
        Of the suite.
    refused
        Position of a criterion → what could not be run of it, in words.
    """
    rows = evaluate(runs).claims
    differences = [told_apart(criterion) for criterion in criteria]
    found: dict[int, list[Decided]] = {}
    for cell, claim, row in zip(cells, runs.study.file.claims, rows, strict=True):
        said = differences[cell.criterion]
        found.setdefault(cell.criterion, []).extend(
            Decided(cell.where, at, _as_read(runs, part, tested), said[at], _by_one(part))
            for at, (part, tested) in enumerate(zip(claim.parts, row.parts, strict=True))
        )
    return tuple(
        _judged(criterion, tuple(found.get(at, ())), refused.get(at, ()))
        for at, criterion in enumerate(criteria)
    )


def told_apart(criterion: Criterion) -> list[str]:
    """Say in what the values of a criterion's comparisons differ; empty where in nothing.

    Two bounds of one value are told apart by what they are.
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
"""Keys of a value that tell a reader which one it is."""


def _word(given: str | Mapping[str, str]) -> str:
    if isinstance(given, str):
        return given
    return ", ".join(f"{key} {label}" for key, label in given.items())


def _by_one(part: Part) -> bool:
    """Whether the worst run alone is held against a number."""
    worst = {"below": "max", "above": "min"}.get(part.relation)
    return (
        part.left is not None and part.left.summary == worst and not isinstance(part.right, Value)
    )


def _as_read(runs: Runs, part: Part, tested: Tested) -> Tested:
    """Give a difference of two values as the one of them, beside what the other allows it."""
    if not isinstance(part.right, Value) or not (part.margin or part.within):
        return tested
    other = value_estimate(runs, part.right).value
    ours = tested.ours
    if other is None or ours.value is None:
        return tested
    by = part.factor * other
    bound = tested.bound + by
    low, high = (None if end is None else end + by for end in (ours.low, ours.high))
    sign = tested.relation.split()[0]
    return replace(
        tested,
        relation=f"{sign} {digits(bound)} {ours.unit}".strip(),
        bound=bound,
        ours=replace(ours, value=ours.value + by, low=low, high=high),
    )


def _judged(
    criterion: Criterion, comparisons: tuple[Decided, ...], refused: Sequence[str]
) -> Judged:
    if criterion.unknown:
        return Judged(criterion, "unknown", reason=criterion.unknown)
    if not comparisons:
        reason = "; ".join(refused) or "it was not asked for in this run of the suite"
        return Judged(criterion, "unknown", reason=reason)
    worst = max((one.verdict for one in comparisons), key=lambda verdict: _ORDER[verdict])
    return Judged(criterion, worst, comparisons, _reason(comparisons, worst, refused))


def _reason(comparisons: Sequence[Decided], worst: Verdict, refused: Sequence[str]) -> str:
    """Say why a criterion is unknown; empty if it is not."""
    if worst != "unknown":
        return ""
    doubts = [one for one in comparisons if one.verdict == "unknown"]
    missing = next((one for one in doubts if one.tested.ours.value is None), None)
    if missing is not None:
        return "; ".join([missing.tested.ours.method, *refused])
    most = max(one.tested.ours.n for one in doubts)
    return f"beyond its bound, by less than {most} runs can tell: more --repeats may decide"
