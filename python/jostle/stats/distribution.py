"""Distributions as figures show them: boxes and empirical distribution functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from jostle.stats.descriptive import Floats, drop_missing, means

WHISKERS_IQR = 1.4
"""Reach of the whiskers in interquartile ranges, as in Claypool, Chung and Claypool, PAM 2021."""


@dataclass(frozen=True)
class Box:
    """A box plot's numbers, in the unit of the sample.

    Attributes
    ----------
    low, high
        Smallest and largest value within reach of the box: ends of the whiskers.
    q1, median, q3
        Quartiles, by linear interpolation.
    mean
        Arithmetic mean.
    outliers
        Shape (k,): the values beyond the whiskers, in rising order.
    values
        Shape (n,): the sample, in rising order; empty if it is not known.
    """

    low: float
    q1: float
    median: float
    q3: float
    high: float
    mean: float
    outliers: Floats
    values: Floats = field(default_factory=lambda: np.empty(0))


def box(values: Iterable[float | None], reach_iqr: float = WHISKERS_IQR) -> Box | None:
    """Summarise a sample as a box; None for an empty one.

    Parameters
    ----------
    values
        The sample, in any order; None and NaN are left out.
    reach_iqr
        How far whiskers may reach from the quartiles, in interquartile ranges.

    Examples
    --------
    >>> from jostle.stats import box
    >>> box([1.0, 2.0, 3.0, 4.0, 5.0]).median
    3.0
    """
    sample = np.sort(drop_missing(values))
    if not sample.size:
        return None
    q1, median, q3 = (float(q) for q in np.percentile(sample, [25, 50, 75]))
    reach = reach_iqr * (q3 - q1)
    inside = (sample >= q1 - reach) & (sample <= q3 + reach)
    kept = sample[inside]
    return Box(
        float(kept[0]), q1, median, q3, float(kept[-1]), float(means(sample)), sample[~inside],
        sample,
    )  # fmt: skip


def ecdf(values: Iterable[float | None]) -> tuple[Floats, Floats]:
    """Empirical cumulative distribution function.

    Parameters
    ----------
    values
        The sample, in any order; None and NaN are left out.

    Returns
    -------
    x, share
        Shape (n,) each: the values in rising order, and the share of the sample that is not larger.

    Examples
    --------
    >>> from jostle.stats import ecdf
    >>> values, shares = ecdf([3.0, 1.0])
    >>> values.tolist(), shares.tolist()
    ([1.0, 3.0], [0.5, 1.0])
    """
    sample = np.sort(drop_missing(values))
    return sample, np.arange(1, sample.size + 1) / max(sample.size, 1)
