"""Deviations of our values from published numbers, as ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from jostle.results.number_format import ABSENT, digits, estimate_text
from jostle.results.text_table import Table
from jostle.stats import Estimate
from jostle.studies.column import Evaluations
from jostle.studies.evaluate import Evaluation
from jostle.studies.fitted_network import FITTED
from jostle.studies.models import Origin, StudyFile


@dataclass(frozen=True)
class Deviation:
    """A published number and ours.

    Attributes
    ----------
    id, text
        Name and description of the number or claim.
    origin
        Where the published value is from.
    published
        Published value.
    ours
        Our estimate, in the same unit.
    """

    id: str
    text: str
    origin: Origin
    published: float
    ours: Estimate

    @property
    def ratio(self) -> float | None:
        """Our value divided by the published one; None without a positive finite value."""
        ours = self.ours.finite
        return None if ours is None or ours <= 0 or self.ours.incomplete else ours / self.published

    @property
    def factor(self) -> float | None:
        """The ratio or its inverse, whichever is at least 1."""
        return None if self.ratio is None else max(self.ratio, 1 / self.ratio)


def deviations(file: StudyFile, evaluation: Evaluation) -> list[Deviation]:
    """Return all published numbers above zero with our values.

    They are the numbers of the study with a published value, and the comparisons of claims with a
    published number.
    """
    return [*_of_numbers(file, evaluation), *_of_claims(file, evaluation)]


def _of_numbers(file: StudyFile, evaluation: Evaluation) -> Iterator[Deviation]:
    measured = {number.id: number for number in file.numbers}
    for row in evaluation.numbers:
        number = measured[row.id if row.id in measured else row.id.partition(".")[0]]
        if row.published is not None and row.published > 0 and number.statistic == "value":
            yield Deviation(row.id, row.text, number.origin, row.published, row.ours)


def _of_claims(file: StudyFile, evaluation: Evaluation) -> Iterator[Deviation]:
    for claim, row in zip(file.claims, evaluation.claims, strict=True):
        # A part of the relation `order` is several comparisons, none with a published number.
        if any(part.relation == "order" for part in claim.parts):
            continue
        for part, tested in zip(claim.parts, row.parts, strict=True):
            if part.origin is not None and tested.target > 0:
                yield Deviation(row.id, row.text, part.origin, tested.target, tested.ours)


def headline(found: Sequence[Deviation]) -> str:
    """Return median and worst deviation in a sentence; empty without published numbers."""
    known = [(one.factor, one) for one in found if one.factor is not None]
    if not known:
        return ""
    worst, row = max(known, key=lambda pair: pair[0])
    middle = median(factor for factor, _ in known)
    return (
        f"published numbers differ by × {middle:.2f} in the median of {len(known)} and by "
        f"× {worst:.2f} at most ({row.text})"
    )


def best_setup(file: StudyFile, evaluations: Evaluations) -> tuple[str, str]:
    """Return title and headline of the plausible setup with the smallest median deviation."""
    found = {}
    for column, evaluation in evaluations.items():
        factors = [f for one in deviations(file, evaluation) if (f := one.factor) is not None]
        if factors and column.setup != FITTED:
            found[column] = median(factors)
    if not found:
        return "", ""
    # A column with few values, such as one without RTTs, is not comparable with a complete one.
    best = min(found, key=lambda one: found[one])
    return best.title, headline(deviations(file, evaluations[best]))


def deviation_rows(file: StudyFile, evaluations: Evaluations) -> Table:
    """Return the table of published numbers: the value, where it is from, and ours with ratios."""
    columns = [deviations(file, evaluation) for evaluation in evaluations.values()]
    titles = [name for one in evaluations for name in (one.title, "ratio")]
    rows = []
    for alike in zip(*columns, strict=True):
        first = alike[0]
        cells = [cell for one in alike for cell in _cells(one)]
        rows.append((first.text, digits(first.published), first.ours.unit, first.origin, *cells))
    return Table(("published number", "value", "unit", "origin", *titles), tuple(rows))


def _cells(one: Deviation) -> tuple[str, str]:
    ratio = ABSENT if one.ratio is None or not math.isfinite(one.ratio) else f"{one.ratio:.2f}"
    return estimate_text(one.ours, runs=True), ratio
