"""An estimate from independent runs: a value and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jostle.stats.describe import Floats, present

Method = Literal["t", "bootstrap"]

Ints = npt.NDArray[np.int64]

RESAMPLES = 9999
"""Resamples of a bootstrap."""


@dataclass(frozen=True)
class Estimate:
    """Mean over runs, with a confidence interval if there are two runs or more.

    Attributes
    ----------
    value
        Mean of the runs that have a value; None if none has.
    low, high
        Ends of the interval; None with fewer than two values, because one run says nothing about
        how far another may lie from it.
    n
        Runs that have a value.
    unit
        Unit of value, low and high.
    method
        How value and interval were computed, in words.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    method: str


@dataclass(frozen=True)
class Estimates:
    """Means over runs of m samples; every array has shape (m,), NaN where there is no number.

    Attributes
    ----------
    value, low, high, n
        As those of an `Estimate`.
    """

    value: Floats
    low: Floats
    high: Floats
    n: Ints


def estimate(
    values: Iterable[float | None],
    unit: str,
    method: Method = "t",
    confidence: float = 0.95,
    *,
    seed: int = 0,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Estimate:
    """Estimate the mean from one value per run.

    Parameters
    ----------
    values
        One value per independent run; None and NaN are left out.
    unit
        Unit of the values.
    method
        `t`: mean ± t(n − 1) · s/√n, exact for normal values. `bootstrap`: bias-corrected and
        accelerated bootstrap of the mean (Efron 1987), for skewed ones.
    confidence
        Probability that the interval covers the mean, between 0 and 1.
    seed
        Seed of the bootstrap's resamples: the same values give the same interval.
    bounds
        Smallest and largest value that there can be, in `unit`. An interval that goes beyond is cut
        there, and `method` says so: Student's t knows no ends, and of two values it is wide.

    Examples
    --------
    >>> from jostle.stats import estimate
    >>> found = estimate([9.0, 10.0, 11.0], "Mbit/s")
    >>> round(found.low, 2), found.value, round(found.high, 2), found.n
    (7.52, 10.0, 12.48, 3)
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence must lie between 0 and 1")
    sample = present(values)
    n = int(sample.size)
    if n == 0:
        return Estimate(None, None, None, 0, unit, "no value in any run")
    value = float(sample.mean())
    if n == 1:
        return Estimate(value, None, None, 1, unit, "one run, no interval")
    percent = f"{confidence * 100:g} %"
    if method == "t":
        half = float(half_widths(sample[np.newaxis], confidence)[0])
        low = float(within(value - half, value, *bounds))
        high = float(within(value + half, value, *bounds))
        cut = (low, high) != (value - half, value + half)
        words = f"mean, Student t {percent} interval" + (", cut at its bounds" if cut else "")
        return Estimate(value, low, high, n, unit, words)
    low, high = _bootstrap(sample, confidence, seed)
    words = f"mean, BCa bootstrap {percent} interval ({RESAMPLES} resamples)"
    return Estimate(value, low, high, n, unit, words)


def estimates(
    samples: Floats,
    sizes: Ints,
    least: Floats | float | None = None,
    most: Floats | float | None = None,
    confidence: float = 0.95,
) -> Estimates:
    """Estimate many means at once, each as `estimate` does by Student's t, to the last bit.

    Parameters
    ----------
    samples
        Values of all samples, one sample behind the other; NaN where a run has none.
    sizes
        How many of these each sample has, shape (m,).
    least, most
        Bounds as those of `estimate`: of all samples, or of each, shape (m,).
    confidence
        As that of `estimate`.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import estimates
    >>> found = estimates(np.array([9.0, 10.0, 11.0, 3.0]), np.array([3, 1]))
    >>> found.value.tolist(), found.n.tolist(), found.low.round(2).tolist()
    ([10.0, 3.0], [3, 1], [7.52, nan])
    """
    whose = np.repeat(np.arange(sizes.size), sizes)[there := ~np.isnan(samples)]
    there_samples, n = samples[there], np.bincount(whose, minlength=sizes.size)
    value, low, high = (np.full(sizes.size, np.nan) for _ in range(3))
    for size in np.unique(n[n > 0]):
        of_size = n == size
        alike = there_samples[of_size[whose]].reshape(-1, size)
        value[of_size] = alike.mean(axis=1)
        if size > 1:
            half = half_widths(alike, confidence)
            low[of_size], high[of_size] = value[of_size] - half, value[of_size] + half
    return Estimates(value, within(low, value, least, most), within(high, value, least, most), n)


def within(
    end: Floats | float,
    value: Floats | float,
    least: Floats | float | None,
    most: Floats | float | None,
) -> Floats:
    """Move ends of intervals to the bound beyond which they lie, never past the value itself.

    Examples
    --------
    >>> from jostle.stats import within
    >>> float(within(-0.2, 0.1, least=0.0, most=1.0))
    0.0
    """
    moved = np.asarray(end, dtype=np.float64)
    if least is not None:
        moved = np.maximum(moved, np.minimum(least, value))
    if most is not None:
        moved = np.minimum(moved, np.maximum(most, value))
    return moved


def half_widths(samples: Floats, confidence: float = 0.95) -> Floats:
    """Halves of the Student t intervals of means; samples of one size, shape (m, n), to (m,)."""
    from scipy.special import stdtrit  # The quantile alone, without the weight of scipy.stats.

    n = samples.shape[1]
    wide: Floats = float(stdtrit(n - 1, 0.5 + confidence / 2)) * samples.std(axis=1, ddof=1)
    return wide / float(np.sqrt(n))


def _bootstrap(sample: Floats, confidence: float, seed: int) -> tuple[float, float]:
    if np.ptp(sample) == 0.0:
        # Every resample has the same mean; BCa's acceleration would be 0/0.
        return float(sample[0]), float(sample[0])
    from scipy.stats import bootstrap

    result = bootstrap(
        (sample,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)
