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
    """Arithmetic mean, in the unit of the values; None if there are none."""
    sample = present(values)
    return float(sample.mean()) if sample.size else None


def sd(values: Iterable[float | None]) -> float | None:
    """Sample standard deviation (n − 1), in the unit of the values; None for fewer than two."""
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
    """
    sample = present(values)
    return float(np.percentile(sample, percent)) if sample.size else None


def jain(shares: Iterable[float]) -> float | None:
    """Jain's fairness index, (Σx)² ÷ (n Σx²): 1/n (one has all) … 1 (all have the same).

    Jain, Chiu, Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984.

    Parameters
    ----------
    shares
        What each of n flows got, never negative, in any unit.

    Returns
    -------
    float or None
        The index; None without flows or when nobody got anything.

    Raises
    ------
    ValueError
        When a share is negative or not finite.
    """
    array = np.array(list(shares), dtype=np.float64)
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError("shares must be finite and not negative")
    largest = array.max(initial=0.0)
    if largest == 0.0:
        return None
    # The index does not depend on the unit; scaling keeps the squares within range.
    scaled = array / largest
    return float(scaled.sum() ** 2 / (scaled.size * (scaled**2).sum()))
