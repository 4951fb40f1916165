"""Tests of two samples as used in studies: t test, effect size, correction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jostle.stats.descriptive import Floats, drop_missing, means, variances
from jostle.stats.student_t import t_probability

EffectSize = Literal["small", "medium", "large", "very large"]


@dataclass(frozen=True)
class Comparison:
    """Comparison of two independent samples.

    Attributes
    ----------
    t
        Student's t; positive if the first mean is larger.
    freedom
        Degrees of freedom, n₁ + n₂ − 2.
    p
        Two-tailed probability of a t of this size or larger if the means were equal.
    d
        Cohen's d with the pooled standard deviation; it has the sign of t.
    """

    t: float
    freedom: int
    p: float
    d: float


def t_test(first: Iterable[float | None], second: Iterable[float | None]) -> Comparison | None:
    """Return the independent two-tailed t test with pooled variance (Student 1908), and Cohen's d.

    Parameters
    ----------
    first, second
        One value per independent run, in the same unit; None and NaN are ignored.

    Returns
    -------
    Comparison or None
        None if a sample has fewer than two values, or no sample varies.

    Examples
    --------
    >>> from jostle.stats import t_test
    >>> found = t_test([1.0, 2.0, 3.0], [7.0, 8.0, 9.0])
    >>> found.p < 0.01
    True
    """
    a, b = drop_missing(first), drop_missing(second)
    if not _is_testable(a, b):
        return None
    freedom = int(a.size + b.size - 2)
    squares = ((a - means(a)) ** 2).sum() + ((b - means(b)) ** 2).sum()
    pooled = float(np.sqrt(squares / freedom))
    # Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed., (2.2.1).
    d = float(means(a) - means(b)) / pooled
    t = d / float(np.sqrt(1 / a.size + 1 / b.size))
    return Comparison(t, freedom, 2 * t_probability(-abs(t), freedom), d)


def welch_test(first: Iterable[float | None], second: Iterable[float | None]) -> Comparison | None:
    """Return the independent two-tailed t test with unequal variances (Welch 1947).

    Parameters
    ----------
    first, second
        One value per independent run, in the same unit; None and NaN are ignored.

    Returns
    -------
    Comparison or None
        `freedom` is rounded down to an integer; `d` is Cohen's d with the mean of the two
        variances. None if a sample has fewer than two values, or no sample varies.

    Examples
    --------
    >>> from jostle.stats import welch_test
    >>> round(welch_test([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]).t, 3)
    -3.098
    """
    a, b = drop_missing(first), drop_missing(second)
    if not _is_testable(a, b):
        return None
    variance_a, variance_b = float(variances(a)), float(variances(b))
    squares = np.array([variance_a / a.size, variance_b / b.size])
    total = float(squares.sum())
    # Satterthwaite (1946): the degrees of freedom of the sum.
    freedom = total**2 / float((squares**2 / np.array([a.size - 1, b.size - 1])).sum())
    apart = float(means(a) - means(b))
    t = apart / total**0.5
    d = apart / float(np.sqrt((variance_a + variance_b) / 2))
    return Comparison(t, int(freedom), 2 * t_probability(-abs(t), freedom), d)


@dataclass(frozen=True)
class MannWhitneyResult:
    """Comparison of two independent samples by ranks.

    Attributes
    ----------
    u
        Mann and Whitney's U of the first sample: number of pairs in which its value is larger; a
        tie counts half.
    p
        Two-tailed probability of a U at least as far from its mean if both samples had the same
        distribution.
    exact
        Whether p is exact, by enumeration of all orders (few values, no ties), or from the normal
        approximation with corrections for ties and continuity.
    """

    u: float
    p: float
    exact: bool


def mann_whitney(
    first: Iterable[float | None], second: Iterable[float | None]
) -> MannWhitneyResult | None:
    """Return Mann and Whitney's U test (1947): whether one sample tends to have larger values.

    It makes no assumption about the distributions, and outliers have no special influence. With
    fewer than four values each, no difference can be significant at 5 %.

    Parameters
    ----------
    first, second
        One value per independent run, in the same unit; None and NaN are ignored.

    Returns
    -------
    MannWhitneyResult or None
        None if a sample has fewer than two values, or no sample varies.

    Examples
    --------
    >>> from jostle.stats import mann_whitney
    >>> found = mann_whitney([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])
    >>> found.u, round(found.p, 4), found.exact
    (0.0, 0.0286, True)
    """
    a, b = drop_missing(first), drop_missing(second)
    if not _is_testable(a, b):
        return None
    every = np.concatenate([a, b])
    exact = np.unique(every).size == every.size and max(a.size, b.size) <= _EXACT
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(a, b, method="exact" if exact else "asymptotic")
    return MannWhitneyResult(float(found.statistic), float(found.pvalue), exact)


_EXACT = 20
"""Largest sample size for which all orders are enumerated."""


def _is_testable(a: Floats, b: Floats) -> bool:
    """Return whether both samples have two values and one varies.

    Equal values on each side are copies of two outcomes without randomness, not independent runs.
    A variance does not show that, because rounding errors of the mean make it larger than 0.
    """
    return min(a.size, b.size) >= 2 and bool(np.ptp(a) > 0.0 or np.ptp(b) > 0.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979), in the given order.

    The smallest is multiplied by the number of tests, the next by one less, and so on; none becomes
    smaller than the one before it, or larger than 1. All with an adjusted p below α are significant
    with a probability of at most α that a single one of them is so by chance. The method makes no
    assumption about the dependence of the tests, and rejects all hypotheses that Bonferroni's
    correction rejects.

    Examples
    --------
    >>> from jostle.stats import holm
    >>> holm([0.04, 0.01, 0.02])
    [0.04, 0.03, 0.04]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def effect_size(d: float) -> EffectSize:
    """Return Cohen's d in words: small below 0.2, medium to 0.5, large to 0.8, then very large.

    The terms are from Claypool, Chung and Claypool, PAM 2021.

    Examples
    --------
    >>> from jostle.stats import effect_size
    >>> effect_size(0.6)
    'large'
    """
    size = abs(d)
    if size < 0.2:
        return "small"
    if size <= 0.5:
        return "medium"
    return "large" if size <= 0.8 else "very large"
