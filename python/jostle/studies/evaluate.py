"""Evaluation of a study's numbers and claims on runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.results.measures import measure
from jostle.results.number_format import count, digits
from jostle.stats import Estimate, estimate, ratio, t_test
from jostle.stats import difference as mean_difference
from jostle.stats.descriptive import Floats, means, variances
from jostle.stats.expectation import (
    Expectation,
    Relation,
    Verdict,
    expect,
    expect_between,
    joint_verdict,
)
from jostle.stats.student_t import t_quantile
from jostle.studies.controller_states import internal_unit
from jostle.studies.models import Claim, ClaimPart, Number, Value
from jostle.studies.runs import NEVER, Runs

RESAMPLES = 2000
"""Number of bootstrap resamples."""
_BOOTSTRAP = "expanded percentile bootstrap 95 % interval"
_LEVEL = 0.05
"""Significance level of tests; divided by the number of a table's comparisons (Bonferroni)."""


@dataclass(frozen=True)
class NumberRow:
    """A published number and our estimate, or our estimate alone.

    Attributes
    ----------
    id, text
        Name and description.
    ours
        Our estimate.
    expected
        Comparison with the published number. It holds if the number is inside our interval, or our
        value is within the study's tolerance of it. For p-values: if both are significant or both
        are not, with Bonferroni's correction for the numbers of the table. None if nothing is
        published.
    published_sd
        Published standard deviation, if any.
    finding
        Explanation for the report.
    """

    id: str
    text: str
    ours: Estimate
    expected: Expectation | None
    published_sd: float | None
    finding: str

    @property
    def published(self) -> float | None:
        """Published value, if any."""
        return None if self.expected is None else self.expected.target

    @property
    def holds(self) -> bool | None:
        """Whether the published value is confirmed; None if that is unknown."""
        return None if self.expected is None else self.expected.holds


@dataclass(frozen=True)
class RankingRow:
    """The order of a published table's values, and our order.

    Attributes
    ----------
    published, ours
        Labels from the largest value to the smallest.
    published_text, ours_text
        The orders as text, with `=` between values that are printed equal.
    holds
        Whether the orders are equal, except for pairs whose difference is within our confidence
        intervals; None if a value is missing or a run failed.
    """

    id: str
    text: str
    published: tuple[str, ...]
    ours: tuple[str, ...]
    published_text: str
    ours_text: str
    holds: bool | None
    finding: str


@dataclass(frozen=True)
class ClaimRow:
    """A claim and its comparisons; the claim holds if all of them do."""

    id: str
    text: str
    parts: tuple[Expectation, ...]
    finding: str

    @property
    def verdict(self) -> Verdict | None:
        """Verdict; `open` if an interval allows both, None without a value or with failed runs."""
        return joint_verdict(part.verdict for part in self.parts)

    @property
    def holds(self) -> bool | None:
        """Whether the means satisfy the claim, without their intervals; None if not judged."""
        found = [part.holds for part in self.parts]
        return False if False in found else None if None in found else True

    @property
    def certain(self) -> bool:
        """Whether the claim is judged, and the complete confidence intervals agree."""
        return self.holds is not None and all(part.certain for part in self.parts)

    @property
    def incomplete(self) -> str:
        """How many runs failed, and why; empty if none failed."""
        return next((part.ours.incomplete for part in self.parts if part.ours.incomplete), "")

    @property
    def deciding(self) -> int:
        """Position of the decisive comparison: the first with the verdict of the claim."""
        return next(at for at, part in enumerate(self.parts) if part.verdict == self.verdict)

    @property
    def decisive(self) -> Expectation:
        """The decisive comparison."""
        return self.parts[self.deciding]


@dataclass(frozen=True)
class Evaluation:
    """Everything that a study states, evaluated on the runs of one backend."""

    numbers: tuple[NumberRow, ...]
    rankings: tuple[RankingRow, ...]
    claims: tuple[ClaimRow, ...]


def evaluate(runs: Runs) -> Evaluation:
    """Evaluate a study on runs."""
    file = runs.study.file
    groups = [(number, list(_numbers(runs, number))) for number in file.numbers]
    return Evaluation(
        tuple(row for _, rows in groups for row in rows),
        tuple(_ranking(number, rows) for number, rows in groups if number.ranking),
        tuple(_claim(runs, claim) for claim in file.claims),
    )


def value_estimate(runs: Runs, value: Value) -> Estimate:
    """Estimate a value from its runs with the summary that it requests.

    Means and shares have Student's t interval. The others have a bootstrap interval, because their
    distribution is not known; see `_interval`.
    """
    found = _value_estimate(runs, value)
    return replace(found, incomplete=runs.incomplete(value), possible=_possible(runs, value))


def _possible(runs: Runs, value: Value) -> tuple[float, float] | None:
    """Return the smallest and largest possible value, if runs ended before its event."""
    ranges = runs.possible(value)
    if not ranges:
        return None
    if value.summary == "sd":
        return 0.0, math.inf
    if value.summary == "share":
        low = -math.inf if value.above is None else value.above
        high = math.inf if value.below is None else value.below
        surely = sum(low <= least and most <= high for least, most in ranges)
        maybe = sum(least <= high and most >= low for least, most in ranges)
        return _if_different(100.0 * surely / len(ranges), 100.0 * maybe / len(ranges))
    ends = np.array(ranges)
    return _if_different(float(_summed(value, ends[:, 0])), float(_summed(value, ends[:, 1])))


def _if_different(least: float, most: float) -> tuple[float, float] | None:
    return (least, most) if least != most else None


def _value_estimate(runs: Runs, value: Value) -> Estimate:
    wanted = measure(value.measure)
    divided = bool(value.relative_to) and wanted.name != "harm"
    unit = "×" if divided else _unit(value)
    unit = "% of runs" if value.summary == "share" else unit
    sample = runs.summary(value)
    if value.summary != "share" and np.isinf(sample).any():
        words = _never(value, sample)
        if value.summary == "sd":
            return Estimate(None, None, None, len(sample), unit, words)
        # Such a value has no interval: the sample has no finite variance.
        whole = float(_summed(value, np.array(sample)))
        return Estimate(whole, None, None, len(sample), unit, words)
    if value.summary == "share" or (value.summary == "mean" and value.bins_above is not None):
        return estimate(sample, unit, bounds=(0.0, 100.0))
    if value.summary == "mean":
        least, most = (
            (None, None)
            if divided
            else (None if end is None else end * wanted.factor for end in runs.bounds(value))
        )
        return estimate(sample, unit, bounds=(least, most))
    array = np.array(sample)
    if not array.size or (value.summary == "sd" and array.size < 2):
        return Estimate(None, None, None, len(sample), unit, "no value in any run")
    low, high = None, None
    if array.size > 1:
        low, high = _interval(_resampled(value, array, 0), array.size)
    words = f"{value.summary} over runs, {_BOOTSTRAP}"
    return Estimate(float(_summed(value, array)), low, high, len(sample), unit, words)


def _never(value: Value, sample: Sequence[float | None] | Floats) -> str:
    """Return in how many runs the event of a value never occurred; empty if it always did."""
    absent = sum(one is not None and math.isinf(one) for one in sample)
    event = NEVER.get(value.measure, "had a finite value")
    return f"{absent} of {count(len(sample), 'run')} never {event}" if absent else ""


def _valueless(value: Value, sample: Sequence[float | None]) -> str:
    """Return how many runs have no value; empty if all have one."""
    absent = sample.count(None)
    title = measure(value.measure).title
    return f"{absent} of {count(len(sample), 'run')} have no {title}" if absent else ""


def _unit(value: Value) -> str:
    """Return the unit of a value of one run."""
    if value.quantity:
        return internal_unit(value.quantity)[0]
    return "%" if value.bins_above is not None else measure(value.measure).display_unit


def _numbers(runs: Runs, number: Number) -> Iterator[NumberRow]:
    if isinstance(number.published, dict):
        table: dict[str, float | None] = dict(number.published)
    elif number.measured_by is not None:
        table = dict.fromkeys(runs.study.labels(number, number.measured_by))
    else:
        yield _number(runs, number, number, "", number.published)
        return
    for label, published in table.items():
        one = number.model_copy(update={"where": {**number.where, str(number.measured_by): label}})
        yield _number(runs, number, one, label, published)


def _number(
    runs: Runs, number: Number, value: Number, label: str, published: float | None
) -> NumberRow:
    """Compare `number` with runs, for one label of its key or without label."""
    name = f"{number.id}.{label}" if label else number.id
    text = number.text.replace(f"{{{number.measured_by}}}", label)
    plain = value.statistic == "value"
    ours = value_estimate(runs, value) if plain else _statistic(runs, value)
    expected = None
    if published is not None:
        margin = runs.study.file.tolerance * abs(published)
        expected = _near_or_inside(ours, published, margin)
        if value.statistic == "p" and ours.value is not None and expected.holds is not None:
            level = _LEVEL / len(number.published) if isinstance(number.published, dict) else _LEVEL
            expected = replace(expected, holds=(ours.value <= level) == (published <= level))
        expected = _with_advice(runs, expected, value)
        ours = expected.ours
    return NumberRow(name, text, ours, expected, number.published_sd.get(label), number.finding)


def _near_or_inside(ours: Estimate, published: float, margin: float) -> Expectation:
    """Judge a value that should be near a published number, or have it inside its interval."""
    under = over = margin
    if ours.value is not None and ours.low is not None and ours.high is not None:
        under, over = max(margin, ours.high - ours.value), max(margin, ours.value - ours.low)
    return expect_between(ours, published, under, over, f"about {published:g}")


def _statistic(runs: Runs, value: Number) -> Estimate:
    other = value.model_copy(update={"where": {**value.where, **value.against}})
    ours, others = runs.per_run(value), runs.per_run(other)
    never = "; ".join(filter(None, (_never(value, ours), _never(other, others))))
    found = None if never else t_test(ours, others)
    n, incomplete = len(ours), runs.incomplete(value, other)
    if found is None:
        words = never or "two samples that vary are needed"
        return Estimate(None, None, None, n, "", words, incomplete)
    words = f"Student's t on {found.freedom} degrees of freedom, p = {found.p:.2g}"
    given = {
        "t": (abs(found.t), words),
        "p": (found.p, words),
        "d": (abs(found.d), "Cohen's d, pooled deviation"),
    }
    result, method = given[value.statistic]
    return Estimate(result, None, None, n, "", method, incomplete)


def _ranking(number: Number, rows: list[NumberRow]) -> RankingRow:
    def labels(key: str) -> tuple[str, ...]:
        def size(row: NumberRow) -> float:
            return (row.published if key == "published" else row.ours.value) or 0.0

        ordered = sorted(rows, key=size, reverse=True)
        return tuple(row.id.removeprefix(f"{number.id}.") for row in ordered)

    published, ours = labels("published"), labels("ours")
    by_label = dict(zip((row.id.removeprefix(f"{number.id}.") for row in rows), rows, strict=True))
    missing = any(row.ours.value is None or row.ours.incomplete for row in rows)
    published_values = {label: row.published for label, row in by_label.items()}
    our_values = {label: row.ours.value for label, row in by_label.items()}
    wrong = any(
        _above(by_label[lower].ours, by_label[upper].ours)
        for at, upper in enumerate(published)
        for lower in published[at + 1 :]
        if by_label[upper].published != by_label[lower].published
    )
    return RankingRow(
        number.id,
        number.text.replace(f"{{{number.measured_by}}}", "…"),
        published,
        ours,
        order_text(published, published_values),
        order_text(ours, our_values),
        None if missing else not wrong,
        number.finding,
    )


def order_text(labels: Sequence[str], values: Mapping[str, float | None]) -> str:
    """Write labels in the order of their values, with `=` between values that are printed equal."""
    text = labels[0] if labels else ""
    for label, following in itertools.pairwise(labels):
        texts = [None if values.get(one) is None else digits(values[one] or 0.0)
                 for one in (label, following)]  # fmt: skip
        is_equal = texts[0] is not None and texts[0] == texts[1]
        text += f"{' = ' if is_equal else ' > '}{following}"
    return text


def _above(one: Estimate, other: Estimate) -> bool:
    """Return whether one estimate is larger than another and their intervals do not overlap."""
    if one.value is None or other.value is None or one.value <= other.value:
        return False
    if one.possible is not None or other.possible is not None:
        least = one.value if one.possible is None else one.possible[0]
        return least > (other.value if other.possible is None else other.possible[1])
    return one.low is None or other.high is None or one.low > other.high


def _claim(runs: Runs, claim: Claim) -> ClaimRow:
    parts = tuple(
        _compared(runs, left, right, part, relation)
        for part in claim.parts
        for left, right, relation in comparisons(part)
    )
    return ClaimRow(claim.id, claim.text, parts, claim.finding)


def comparisons(part: ClaimPart) -> list[tuple[Value, float | Value, Relation]]:
    """Return the comparisons of a part: left, right, relation; one for each neighbours in order."""
    if part.relation == "order":
        return [(a, b, "above") for a, b in itertools.pairwise(part.order)]
    assert part.left is not None
    assert part.right is not None
    return [(part.left, part.right, part.relation)]


def values_digest(part: ClaimPart) -> str:
    """Return a digest of what a comparison measures, without the accepted range."""
    difference = bool(part.margin or part.within) and isinstance(part.right, Value)
    # The conditions are in `where`; `pool` confirms that they are one sample.
    measured = [
        value.model_dump(mode="json", exclude_defaults=True, exclude={"pool"})
        for value in part.values
    ]
    text = json.dumps([measured, difference, part.factor if difference else 1], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _compared(
    runs: Runs, left: Value, right: float | Value, part: ClaimPart, relation: Relation
) -> Expectation:
    if not isinstance(right, Value):
        ours, bound = value_estimate(runs, left), right * part.factor + part.margin
    else:
        difference = bool(part.margin or part.within)
        ours = _combined(runs, left, right, difference=difference, factor=part.factor)
        possible = _possible_of_two(runs, left, right, part.factor if difference else None)
        ours = replace(ours, incomplete=runs.incomplete(left, right), possible=possible)
        bound = part.margin if difference else part.factor
    if part.times is not None:
        under, over = bound * (1 - 1 / part.times), bound * (part.times - 1)
        words = f"about {bound:g} {ours.unit} (× or ÷ {part.times:g})"
        return _with_advice(runs, expect_between(ours, bound, under, over, words), left, right)
    margin = part.within or part.tolerance * abs(bound)
    return _with_advice(runs, expect(ours, relation, bound, margin), left, right)


def _with_advice(runs: Runs, found: Expectation, *values: float | Value) -> Expectation:
    """Say in how many runs the event did not occur, and to extend them, if that leaves it open."""
    if not found.ended_early:
        return found
    of_sides = [(value, runs.per_run(value)) for value in values if isinstance(value, Value)]
    never = [text for side in of_sides if (text := _never(*side))]
    words = [f"{'; '.join(never)}: extend `duration`"] if never else []
    words += [text for side in of_sides if (text := _valueless(*side))]
    return replace(found, ours=replace(found.ours, method="; ".join(words)))


def _possible_of_two(
    runs: Runs, left: Value, right: Value, factor: float | None
) -> tuple[float, float] | None:
    """Return the possible ratios of two values, or with a factor of the right their differences."""
    sides = [_possible(runs, value) for value in (left, right)]
    if sides == [None, None]:
        return None
    ends = []
    for value, possible in zip((left, right), sides, strict=True):
        sample = np.array(runs.summary(value))
        if possible is None and not sample.size:
            return None
        ends.append(possible or (float(_summed(value, sample)),) * 2)
    (low, high), (least, most) = ends
    if factor is not None:
        return low - factor * most, high - factor * least
    return low / most if most else math.inf, high / least if least else math.inf


def _combined(
    runs: Runs, left: Value, right: Value, *, difference: bool, factor: float = 1.0
) -> Estimate:
    """Return the ratio or difference of two values, with an interval; see `value_estimate`."""
    a, b = np.array(runs.summary(left)), np.array(runs.summary(right))
    unit = _unit(left) if difference else "×"
    n = int(min(a.size, b.size))
    if n == 0:
        return Estimate(None, None, None, 0, unit, "no value on one side")
    one, other = float(_summed(left, a)), float(_summed(right, b))
    words = "difference" if difference else "ratio"
    if difference:
        value = one - factor * other
    elif other == 0.0:
        # The right side is zero: a positive left side exceeds any multiple of it.
        value = float("inf") if one > 0 else 1.0
    else:
        value = one / other
    never = "; ".join(filter(None, (_never(left, a), _never(right, b))))
    if never:
        # Without an event on both sides there is no ratio or difference.
        return Estimate(None if np.isnan(value) else value, None, None, n, unit, never)
    if n < 2 or not np.isfinite(value) or (other == 0.0 and not difference):
        return Estimate(value, None, None, n, unit, f"{words}, no interval")
    combine = _of_means if _is_mean(left) and _is_mean(right) else _of_resamples
    found = combine(runs, left, right, difference=difference, factor=factor)
    return replace(found, value=value, unit=unit, n=n)


def _of_means(
    runs: Runs, left: Value, right: Value, *, difference: bool, factor: float
) -> Estimate:
    """Return the ratio or difference of two means."""
    a, b = np.array(runs.summary(left)), np.array(runs.summary(right))
    paired = runs.are_of_same_runs(left, right)
    if difference:
        return estimate(a - factor * b, "") if paired else mean_difference(a, factor * b, "")
    ends = (runs.bounds(side)[0] for side in (left, right))
    least = 0.0 if all(end is not None and end >= 0.0 for end in ends) else None
    return ratio(a, b, paired=paired, least=least)


def _of_resamples(
    runs: Runs, left: Value, right: Value, *, difference: bool, factor: float
) -> Estimate:
    """Return the interval of the ratio or difference of two values by resampling."""
    a, b = np.array(runs.summary(left)), np.array(runs.summary(right))
    # Equal streams draw the same runs on both sides.
    paired = runs.are_of_same_runs(left, right)
    many, others = _resampled(left, a, 1), _resampled(right, b, 1 if paired else 2)
    if difference:
        spread = many - factor * others
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = many / others
        spread = spread[np.isfinite(spread)]
    words, n = "difference" if difference else "ratio", min(a.size, b.size)
    if not spread.size:
        return Estimate(None, None, None, n, "", f"{words}, no interval")
    low, high = _interval(spread, n)
    return Estimate(None, low, high, n, "", f"{words}, {_BOOTSTRAP}")


def _is_mean(value: Value) -> bool:
    return value.summary in ("mean", "share")


def _interval(spread: Floats, n: int) -> tuple[float, float]:
    """Return the expanded percentile interval of resamples of `n` values.

    Percentiles of resamples are as narrow as an interval with the normal quantile instead of
    Student's, and the variance with n instead of n − 1. Hesterberg (2015), section 3.3, therefore
    takes those at which the normal distribution has the ends of Student's interval.
    """
    end = t_quantile(n - 1, 0.975) * math.sqrt(n / (n - 1))
    tail = 50.0 * math.erfc(end / math.sqrt(2.0))
    low, high = np.percentile(spread, [tail, 100.0 - tail])
    return float(low), float(high)


def _resampled(value: Value, sample: Floats, stream: int) -> Floats:
    """Return summaries of resamples, reproducible for a sample; shape (RESAMPLES,)."""
    random = np.random.default_rng([len(sample), stream])
    drawn = sample[random.integers(0, sample.size, (RESAMPLES, sample.size))]
    return _summed(value, drawn)


def _summed(value: Value, samples: Floats) -> Floats:
    """Summarise over the last axis."""
    found: Floats
    match value.summary:
        case "sd":
            found = np.sqrt(variances(samples))
        case "median":
            found = np.median(samples, axis=-1)
        case "min":
            found = np.min(samples, axis=-1)
        case "max":
            found = np.max(samples, axis=-1)
        case _:
            found = means(samples)
    return found
