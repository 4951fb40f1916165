"""Statistics of recordings: time-weighted distributions, and the distance of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.scenario.traces.recording import Floats, TraceExtract

__all__ = ["Summary", "autocorrelation", "distribution", "ks_distance", "quantiles", "summary"]


@dataclass(frozen=True)
class Summary:
    """Statistics of a column over time, in its base unit.

    Attributes
    ----------
    steps
        Number of steps.
    mean, deviation, least, p5, median, p95, most
        Time-weighted statistics of the value.
    """

    steps: int
    mean: float
    deviation: float
    least: float
    p5: float
    median: float
    p95: float
    most: float


def summary(part: TraceExtract) -> Summary:
    """Return time-weighted statistics of an extract."""
    share = part.lasting_s / part.length_s
    mean = float((part.values * share).sum())
    deviation = float(np.sqrt((share * (part.values - mean) ** 2).sum()))
    p5, median, p95 = quantiles(part.values, part.lasting_s, [0.05, 0.5, 0.95])
    least, most = float(part.values.min()), float(part.values.max())
    return Summary(part.values.size, mean, deviation, least, p5, median, p95, most)


def distribution(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the sorted values, and the cumulative share of their weights."""
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    return values[order], shares


def quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> list[float]:
    """Return weighted quantiles: for each share, the least value up to which it is reached."""
    ordered, below = distribution(values, weights)
    at = np.searchsorted(below, np.asarray(shares) * (1 - 1e-12))
    return [float(value) for value in ordered[np.minimum(at, ordered.size - 1)]]


def ks_distance(one: Floats, other: Floats, one_weights: Floats, other_weights: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two weighted distributions."""
    both = np.union1d(one, other)

    def below(values: Floats, weights: Floats) -> Floats:
        ordered, shares = distribution(values, weights)
        padded: Floats = np.concatenate(([0.0], shares))
        return padded[np.searchsorted(ordered, both, side="right")]

    return float(np.abs(below(one, one_weights) - below(other, other_weights)).max())


def autocorrelation(values: Floats, most: int) -> Floats:
    """Return the autocorrelation of equally spaced values at lags 0 … `most`; shape (most + 1,)."""
    centred = values - values.mean()
    variance = float((centred**2).mean())
    if variance == 0:
        return np.ones(most + 1)
    lags = range(min(most, values.size - 1) + 1)
    found = [float((centred[: values.size - lag] * centred[lag:]).sum()) for lag in lags]
    return np.array(found) / (variance * values.size)
