"""An estimate from independent runs: a value and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jostle.stats.describe import Floats, present

Method = Literal["t", "bootstrap"]

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
        half = half_width(n, float(sample.std(ddof=1)), confidence)
        low, high = within(value - half, value, *bounds), within(value + half, value, *bounds)
        cut = (low, high) != (value - half, value + half)
        words = f"mean, Student t {percent} interval" + (", cut at its bounds" if cut else "")
        return Estimate(value, low, high, n, unit, words)
    low, high = _bootstrap(sample, confidence, seed)
    words = f"mean, BCa bootstrap {percent} interval ({RESAMPLES} resamples)"
    return Estimate(value, low, high, n, unit, words)


def within(end: float, value: float, least: float | None, most: float | None) -> float:
    """Move an end of an interval to the bound beyond which it lies, never past the value itself.

    Examples
    --------
    >>> from jostle.stats import within
    >>> within(-0.2, 0.1, least=0.0, most=1.0)
    0.0
    """
    if least is not None:
        end = max(end, min(least, value))
    if most is not None:
        end = min(end, max(most, value))
    return end


def half_width(n: int, sd: float, confidence: float = 0.95) -> float:
    """Half of the Student t interval of a mean from n values with sample deviation `sd`."""
    from scipy.special import stdtrit  # The quantile alone, without the weight of scipy.stats.

    return float(stdtrit(n - 1, 0.5 + confidence / 2)) * sd / float(np.sqrt(n))


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
