"""The ratio of two means."""

from __future__ import annotations

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

    The variance is that of the delta method, and the interval has Student's quantile.

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
        interval, without one on both sides, or with a mean of 0 in `second`, no value.

    Examples
    --------
    >>> from jostle.stats import ratio
    >>> ratio([5.0, 6.0, 7.0], [1.0, 2.0, 3.0]).value
    3.0
    """
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
    if paired:
        # The residuals have the mean 0, and contain the covariance.
        residuals = [a - value * b for a, b in zip(first, second, strict=True)]
        squared_error, freedom = moments(residuals)[1] / n, n - 1.0
    else:
        parts = (variance / n, n - 1), (value * value * other_variance / other_n, other_n - 1)
        squared_error, freedom = sum(part for part, _ in parts), freedom_of_sum(*parts)
    words = f"ratio of means, delta method, Student {confidence * 100:g} % interval"
    half = 0.0
    if squared_error > 0.0:
        half = t_quantile(freedom, 0.5 + confidence / 2) * squared_error**0.5 / abs(other_mean)
    low = value - half
    if least is not None:
        low = max(low, min(least, value))
    return Estimate(value, low, value + half, fewest, "×", words)
