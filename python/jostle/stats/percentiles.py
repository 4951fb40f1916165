"""Percentiles over independent runs, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jostle.stats.estimate import Estimate


def percentile_estimate(
    values: Iterable[float | None],
    percent: float,
    unit: str,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate a percentile from one value per run; a run without value counts as the largest.

    The interval's ends are order statistics, so there is no assumption about the distribution: the
    number of values below the percentile is binomial (Hahn and Meeker, "Statistical Intervals",
    1991, section 5.2). If the sample is too small there is no interval: a median needs 6 values at
    95 %, the 95th percentile 72.

    Parameters
    ----------
    values
        One per independent run; None for an unfinished transfer.
    percent
        0 … 100.
    unit
        Unit of the values.
    confidence
        Minimum probability that the interval covers the percentile.

    Returns
    -------
    Estimate
        `value` by linear interpolation (Hyndman and Fan's type 7), None if it depends on runs
        without a value; `n` includes these runs.

    Examples
    --------
    >>> from jostle.stats import percentile_estimate
    >>> found = percentile_estimate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 50, "s")
    >>> found.value, found.low, found.high, found.n
    (4.0, 1.0, 7.0, 7)
    >>> percentile_estimate([1.0, None], 95, "s").value is None
    True
    """
    sample = np.sort(
        np.array([np.inf if v is None or np.isnan(v) else v for v in values], dtype=np.float64)
    )
    n = int(sample.size)
    if not np.isfinite(sample).any():
        return Estimate(None, None, None, 0, unit, "no value in any run")
    words = f"{percent:g} % percentile over runs"
    value = _interpolated(sample, percent / 100)
    ranks = _ranks(n, percent / 100, confidence)
    if value is None or ranks is None or not np.isfinite(sample[ranks[1]]):
        return Estimate(value, None, None, n, unit, f"{words}, no interval")
    low, high = (float(sample[rank]) for rank in ranks)
    return Estimate(
        value, low, high, n, unit, f"{words}, order statistics {confidence * 100:g} % interval"
    )


def _interpolated(sample: np.ndarray[tuple[int], np.dtype[np.float64]], p: float) -> float | None:
    rank = p * (sample.size - 1)
    below = int(rank)
    share = rank - below
    found = sample[below] if share == 0 else sample[below] * (1 - share) + sample[below + 1] * share
    return float(found) if np.isfinite(found) else None


def _ranks(n: int, p: float, confidence: float) -> tuple[int, int] | None:
    """Return the positions of the interval's ends in the sorted sample; None if it is too small."""
    from scipy.special import bdtr

    tail = (1 - confidence) / 2
    # P(at most k of n lie below the percentile).
    up_to = bdtr(np.arange(n, dtype=np.float64), n, p)
    low = int(np.searchsorted(up_to, tail, side="right")) - 1
    high = int(np.searchsorted(up_to, 1 - tail, side="left"))
    return (low, high) if low >= 0 and high < n else None
