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
        """Our value divided by the published one; None without a positive value of all runs."""
        ours = self.ours.finite
        partial = self.ours.incomplete or self.ours.possible is not None
        return None if ours is None or ours <= 0 or partial else ours / self.published

    @property
    def factor(self) -> float | None:
        """The ratio, or its inverse if the ratio is below 1."""
        return None if self.ratio is None else max(self.ratio, 1 / self.ratio)


def deviations(file: StudyFile, evaluation: Evaluation) -> list[Deviation]:
    """Return all published numbers above zero with our values.

    They are the numbers of the study with a published value, and the comparisons of claims with a
    published number.
    """
    return [*_of_numbers(file, evaluation), *_of_claims(file, evaluation)]


def _of_numbers(file: StudyFile, evaluation: Evaluation) -> Iterator[Deviation]:
    rows = {row.id: row for row in evaluation.numbers}
    for number in file.numbers:
        if number.published is None or number.statistic != "value":
            continue
        published = number.published
        table = published if isinstance(published, dict) else {"": published}
        for label in table:
            row = rows[f"{number.id}.{label}" if label else number.id]
            origin = number.origin[label] if isinstance(number.origin, dict) else number.origin
            if row.published is not None and row.published > 0:
                yield Deviation(row.id, row.text, origin, row.published, row.ours)


def _of_claims(file: StudyFile, evaluation: Evaluation) -> Iterator[Deviation]:
    for claim, row in zip(file.claims, evaluation.claims, strict=True):
        # A part of the relation `order` is several comparisons, none with a published number.
        if any(part.relation == "order" for part in claim.parts):
            continue
        for part, tested in zip(claim.parts, row.parts, strict=True):
            if part.origin is not None and tested.target > 0:
                yield Deviation(row.id, row.text, part.origin, tested.target, tested.ours)


@dataclass(frozen=True)
class DeviationSummary:
    """Median and worst factor between published numbers and ours.

    Attributes
    ----------
    median, worst
        Factors of at least 1.
    worst_text
        Description of the number with the worst factor.
    n
        Number of published numbers with a value.
    """

    median: float
    worst: float
    worst_text: str
    n: int

    def __str__(self) -> str:
        """Return the headline as a clause."""
        return (
            f"published numbers differ by × {self.median:.2f} in the median of {self.n} and by "
            f"× {self.worst:.2f} at most ({self.worst_text})"
        )


def summarize(found: Sequence[Deviation]) -> DeviationSummary | None:
    """Return the summary of deviations; None without a value."""
    known = [(one.factor, one.text) for one in found if one.factor is not None]
    if not known:
        return None
    worst, text = max(known)
    return DeviationSummary(median(factor for factor, _ in known), worst, text, len(known))


def best_setup(file: StudyFile, evaluations: Evaluations) -> tuple[str, DeviationSummary] | None:
    """Return title and deviations of the plausible setup with the smallest median.

    A column with few values, such as recorded results without RTTs, cannot be compared with others.
    """
    found = {
        column.title: summary
        for column, evaluation in evaluations.items()
        if not column.is_fitted and (summary := summarize(deviations(file, evaluation))) is not None
    }
    most = max((one.n for one in found.values()), default=0)
    complete = {title: one for title, one in found.items() if one.n >= 0.9 * most}
    return min(complete.items(), key=lambda pair: pair[1].median, default=None)


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
