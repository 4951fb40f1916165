"""The ratio of two means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jostle.stats.mean_difference import freedom_of_sum
from jostle.stats.mean_estimate import Estimate, moments
from jostle.stats.student_t import t_quantile

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats

__all__ = ["ratio"]


def ratio(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    confidence: float = 0.95,
    *,
    paired: bool = False,
    least: float | None = None,
) -> Estimate:
    """Estimate the mean of `first` divided by the mean of `second`.

    Fieller (1954): the interval has all ratios r for which the mean of `first` − r · `second` is
    not significantly different from 0.

    Parameters
    ----------
    first, second
        One value per run.
    confidence
        Probability that the interval covers the ratio, between 0 and 1.
    paired
        Whether the values at a position are from the same run, which correlates them: flows that
        compete have a negative correlation.
    least
        Smallest possible ratio.

    Returns
    -------
    Estimate
        `n` is the size of the smaller sample. Without two values on both sides there is no
        interval, without one on both sides, or with a mean of 0 in `second`, no value. An end is
        infinite if `second` may be 0.

    Examples
    --------
    >>> from jostle.stats import ratio
    >>> ratio([5.0, 6.0, 7.0], [1.0, 2.0, 3.0]).value
    3.0
    """
    first, second = list(map(float, first)), list(map(float, second))
    n, other_n = len(first), len(second)
    fewest = min(n, other_n)
    if fewest == 0:
        return Estimate(None, None, None, 0, "×", "no value on one side")
    (mean, variance), (other_mean, other_variance) = moments(first), moments(second)
    if other_mean == 0.0:
        return Estimate(None, None, None, fewest, "×", "a mean of 0 on the right side")
    value = mean / other_mean
    if fewest == 1:
        return Estimate(value, None, None, 1, "×", "one run on one side, no interval")
    words = f"ratio of means, Fieller {confidence * 100:g} % interval"
    if variance == other_variance == 0.0:
        return Estimate(value, value, value, fewest, "×", words)
    other_error = other_variance / other_n
    covariance, freedom = 0.0, n - 1.0
    if paired:
        covariance = _covariance(first, second, mean, other_mean) / n
    else:
        parts = (variance / n, n - 1), (value * value * other_error, other_n - 1)
        freedom = freedom_of_sum(*parts)
    squared_t = t_quantile(freedom, 0.5 + confidence / 2) ** 2 if freedom < math.inf else 0.0
    low, high = _ends(
        value,
        other_mean**2 - squared_t * other_error,
        mean * other_mean - squared_t * covariance,
        mean**2 - squared_t * variance / n,
    )
    if least is not None:
        low = max(low, min(least, value))
    return Estimate(value, low, high, fewest, "×", words)


def _covariance(
    first: Sequence[float], second: Sequence[float], mean: float, other_mean: float
) -> float:
    products = [(a - mean) * (b - other_mean) for a, b in zip(first, second, strict=True)]
    return sum(products) / (len(products) - 1)


def _ends(value: float, a: float, b: float, c: float) -> tuple[float, float]:
    """Return the ends of the interval around `value` in which a r² − 2 b r + c ≤ 0.

    It has one end or none if the mean of the second side is not significantly different from 0.
    """
    root = math.sqrt(max(b * b - a * c, 0.0))
    if a > 0.0:
        return min((b - root) / a, value), max((b + root) / a, value)
    if a == 0.0 or b * b < a * c:
        return -math.inf, math.inf
    low, high = (b + root) / a, (b - root) / a
    return (high, math.inf) if value >= high else (-math.inf, low)
