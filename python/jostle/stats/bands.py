"""Means of time series over runs, with an interval for each bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.stats.descriptive import Floats
from jostle.stats.student_t import t_quantile


@dataclass(frozen=True)
class Band:
    """Mean over runs per bin; every array has shape (bins,), NaN where there is no value.

    Attributes
    ----------
    mean
        Mean of the runs that have a value in the bin.
    low, high
        Ends of the Student t interval, cut at the bounds; NaN in bins in which fewer than two runs
        have a value.
    n
        Runs that have a value in the bin.
    """

    mean: Floats
    low: Floats
    high: Floats
    n: np.ndarray[tuple[int], np.dtype[np.int64]]


def series_band(
    values: Floats,
    confidence: float = 0.95,
    *,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Band:
    """Mean and Student t interval per bin.

    Parameters
    ----------
    values
        Shape (runs, bins); NaN where a run has no value.
    confidence
        Probability that the interval of one bin covers its mean (per bin, not for all at once).
    bounds
        Smallest and largest possible value, at which the intervals end; None if there is no limit.
        An interval always contains its mean.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import series_band
    >>> series_band(np.array([[1.0, 2.0], [3.0, 2.0]])).mean.tolist()
    [2.0, 2.0]
    """
    if values.ndim != 2:
        raise ValueError("values must have the shape (runs, bins)")
    has_value = ~np.isnan(values)
    n = has_value.sum(axis=0)
    total = np.where(has_value, values, 0.0).sum(axis=0)
    mean = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    # The mean of equal values is that value, without a rounding error.
    least = np.where(has_value, values, np.inf).min(axis=0, initial=np.inf)
    most = np.where(has_value, values, -np.inf).max(axis=0, initial=-np.inf)
    mean = np.where(n > 0, np.minimum(np.maximum(mean, least), most), np.nan)
    deviations = np.where(has_value, values - mean, 0.0)
    variance = np.divide(
        (deviations**2).sum(axis=0), n - 1, out=np.full(n.shape, np.nan), where=n > 1
    )
    freedom = np.maximum(n - 1, 1)
    sizes, which = np.unique(freedom, return_inverse=True)
    quantiles = np.array([t_quantile(int(size), 0.5 + confidence / 2) for size in sizes])
    half = quantiles[which] * np.sqrt(variance / np.maximum(n, 1))
    low, high = mean - half, mean + half
    smallest, largest = bounds
    if smallest is not None:
        low = np.maximum(low, np.minimum(mean, smallest))
    if largest is not None:
        high = np.minimum(high, np.maximum(mean, largest))
    return Band(mean, low, high, n)
