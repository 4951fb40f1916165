"""Percentiles over independent runs, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jostle.stats.mean_estimate import Estimate
from jostle.stats.student_t import binomial_ranks


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
    sample = sorted(math.inf if v is None or math.isnan(v) else float(v) for v in values)
    n = len(sample)
    if not any(map(math.isfinite, sample)):
        return Estimate(None, None, None, 0, unit, "no value in any run")
    words = f"{percent:g} % percentile over runs"
    value = _interpolated(sample, percent / 100)
    ranks = _ranks(n, percent / 100, confidence)
    if value is None or ranks is None or not math.isfinite(sample[ranks[1]]):
        return Estimate(value, None, None, n, unit, f"{words}, no interval")
    low, high = (sample[rank] for rank in ranks)
    return Estimate(
        value, low, high, n, unit, f"{words}, order statistics {confidence * 100:g} % interval"
    )


def _interpolated(sample: Sequence[float], p: float) -> float | None:
    rank = p * (len(sample) - 1)
    below = int(rank)
    share = rank - below
    found = sample[below] if share == 0 else sample[below] * (1 - share) + sample[below + 1] * share
    return found if math.isfinite(found) else None


def _ranks(n: int, p: float, confidence: float) -> tuple[int, int] | None:
    """Return the positions of the interval's ends in the sorted sample; None if it is too small."""
    # At most k of n lie below the percentile.
    below, high = binomial_ranks(n, p, (1 - confidence) / 2)
    return (below - 1, high) if below > 0 and high < n else None
