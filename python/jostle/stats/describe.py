"""Descriptive statistics of samples. What is not there (None, NaN) is left out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def present(values: Iterable[float | None]) -> Floats:
    """Drop None and NaN; returns an array of shape (n,)."""
    array = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return array[~np.isnan(array)]


def mean(values: Iterable[float | None]) -> float | None:
    """Arithmetic mean, in the unit of the values; None if there are none.

    Examples
    --------
    >>> from jostle.stats import mean
    >>> mean([1.0, None, 3.0])
    2.0
    """
    sample = present(values)
    return float(sample.mean()) if sample.size else None


def sd(values: Iterable[float | None]) -> float | None:
    """Sample standard deviation (n − 1), in the unit of the values; None for fewer than two.

    Examples
    --------
    >>> from jostle.stats import sd
    >>> sd([1.0, 2.0, 3.0])
    1.0
    """
    sample = present(values)
    return float(sample.std(ddof=1)) if sample.size > 1 else None


def percentile(values: Iterable[float | None], percent: float) -> float | None:
    """Percentile by linear interpolation (Hyndman and Fan's type 7); None if there is no value.

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
    sample = present(values)
    return float(np.percentile(sample, percent)) if sample.size else None
