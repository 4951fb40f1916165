"""Descriptive statistics of samples. Missing values (None, NaN) are ignored."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def drop_missing(values: Iterable[float | None]) -> Floats:
    """Return the values without None and NaN, as an array of shape (n,)."""
    array = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return array[~np.isnan(array)]


def mean(values: Iterable[float | None]) -> float | None:
    """Return the arithmetic mean, in the unit of the values; None if there are none.

    Examples
    --------
    >>> from jostle.stats import mean
    >>> mean([1.0, None, 3.0])
    2.0
    """
    sample = drop_missing(values)
    return float(sample.mean()) if sample.size else None


def sd(values: Iterable[float | None]) -> float | None:
    """Return the sample standard deviation (n − 1); None for fewer than two values.

    Examples
    --------
    >>> from jostle.stats import sd
    >>> sd([1.0, 2.0, 3.0])
    1.0
    """
    sample = drop_missing(values)
    return float(sample.std(ddof=1)) if sample.size > 1 else None


def percentile(values: Iterable[float | None], percent: float) -> float | None:
    """Return a percentile by linear interpolation (Hyndman and Fan's type 7); None if empty.

    Parameters
    ----------
    values
        The sample, in any order.
    percent
        0 … 100.

    Examples
    --------
    >>> from jostle.stats import percentile
    >>> percentile([10.0, 20.0, 30.0], 50)
    20.0
    """
    sample = drop_missing(values)
    return float(np.percentile(sample, percent)) if sample.size else None
