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


def means(samples: Floats) -> Floats:
    """Return means over the last axis. The mean of equal values is that value, not rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats.descriptive import means
    >>> float(means(np.full(6, 0.1)))
    0.1
    """
    if not samples.shape[-1]:
        return np.full(samples.shape[:-1], np.nan)
    found: Floats = np.clip(samples.mean(axis=-1), samples.min(axis=-1), samples.max(axis=-1))
    return found


def variances(samples: Floats) -> Floats:
    """Return sample variances (n − 1) over the last axis: exactly 0 for equal values, NaN for one.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats.descriptive import variances
    >>> float(variances(np.full(6, 0.1)))
    0.0
    """
    if samples.shape[-1] < 2:
        return np.full(samples.shape[:-1], np.nan)
    return np.where(np.ptp(samples, axis=-1) == 0.0, 0.0, samples.var(axis=-1, ddof=1))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the arithmetic mean, in the unit of the values; None if there are none.

    Examples
    --------
    >>> from jostle.stats import mean
    >>> mean([1.0, None, 3.0])
    2.0
    """
    sample = drop_missing(values)
    return float(means(sample)) if sample.size else None


def sd(values: Iterable[float | None]) -> float | None:
    """Return the sample standard deviation (n − 1); None for fewer than two values.

    Examples
    --------
    >>> from jostle.stats import sd
    >>> sd([1.0, 2.0, 3.0])
    1.0
    """
    sample = drop_missing(values)
    return float(np.sqrt(variances(sample))) if sample.size > 1 else None


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
