"""The difference of two means from independent samples."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jostle.stats.mean_estimate import Estimate, moments, present
from jostle.stats.student_t import t_quantile


def difference(
    first: Iterable[float | None],
    second: Iterable[float | None],
    unit: str,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate the mean of `first` less the mean of `second`, with Welch's interval.

    Parameters
    ----------
    first, second
        One value per independent run; None and NaN are left out. The two may differ in number and
        in spread.
    unit
        Unit of the values.
    confidence
        Probability that the interval covers the difference, between 0 and 1.

    Returns
    -------
    Estimate
        `n` is the size of the smaller sample. Without two values on both sides there is no
        interval, without one on both sides no value.

    Examples
    --------
    >>> from jostle.stats import difference
    >>> difference([5.0, 6.0, 7.0], [1.0, 2.0, 3.0], "ms").value
    4.0
    """
    samples = present(first), present(second)
    n = min(map(len, samples))
    if n == 0:
        return Estimate(None, None, None, 0, unit, "no value on one side")
    (mean_a, variance_a), (mean_b, variance_b) = map(moments, samples)
    value = mean_a - mean_b
    if n == 1:
        return Estimate(value, None, None, 1, unit, "one run on one side, no interval")
    words = f"difference of means, Welch {confidence * 100:g} % interval"
    a, b = variance_a / len(samples[0]), variance_b / len(samples[1])
    total = a + b
    if total == 0.0:
        # Neither side varies: the difference is exact.
        return Estimate(value, value, value, n, unit, words)
    freedom = freedom_of_sum((a, len(samples[0]) - 1), (b, len(samples[1]) - 1))
    half = t_quantile(freedom, 0.5 + confidence / 2) * total**0.5
    return Estimate(value, value - half, value + half, n, unit, words)


def freedom_of_sum(*variances: tuple[float, int]) -> float:
    """Return the degrees of freedom of a sum of variances, given with their degrees of freedom.

    Satterthwaite (1946); Welch (1947), equation 28. Infinite if nothing varies.
    """
    total = sum(variance for variance, _ in variances)
    if total == 0.0:
        return math.inf
    return total**2 / sum(variance * variance / freedom for variance, freedom in variances)
