"""Distance of two flows, computed from their curves of queueing delay and bytes in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.inference.dynamic_time_warping import warped_distances

if TYPE_CHECKING:
    from jostle.inference.observed_flow import ObservedFlow
    from jostle.stats.descriptive import Floats

__all__ = ["curve_distances", "level_and_change_distances"]

_POINTS: Final = 300
"""Maximum number of points of a curve; finer curves are averaged. 300 points are 200 ms each for a
flow of one minute."""
_FINE: Final = 1_000
"""Maximum number of points of a curve whose changes are compared."""
_LAGS: Final = (1, 3, 10, 30)
"""Points between two values whose difference is a change: growth and reductions of cwnd show at
different scales."""
_SHARES: Final = np.linspace(0.02, 0.98, 49)
"""Quantiles at which changes are compared."""
_BAND: Final = 0.04
"""Maximum warping of two curves, as a share of their length."""
_SHIFT: Final = 1 / 3
"""Maximum shift of a complete curve, as a share of its length. The state after the first loss
determines the phase of all later sawteeth, and it differs between two runs of the same kernel."""
_STEPS: Final = 100
"""Number of shifts tried in each direction."""
_FLAT: Final = 0.01
"""Share of the minimum RTT that is the least unit of queueing delays. Without it, a flow that never
queues would be compared in units of its noise."""
_LEAST: Final = 1e-4
"""Minimum distance. Smaller distances occur for the same run, or for controllers that act alike."""


def curve_distances(observed: ObservedFlow, others: Sequence[ObservedFlow]) -> Floats:
    """Return the geometric mean of `level_and_change_distances`, shape (len(others),)."""
    distances: Floats = np.sqrt(level_and_change_distances(observed, others).prod(axis=1))
    return distances


def level_and_change_distances(observed: ObservedFlow, others: Sequence[ObservedFlow]) -> Floats:
    """Return the distances of a flow to other flows with the same sampling interval.

    Two curves are compared, each relative to the largest value of the observed flow: queueing delay
    (as in CCAnalyzer: Ware et al., SIGCOMM 2024) and bytes in flight (as in Nebby: Mishra et al.,
    SIGCOMM 2024). The first part of a distance is about the curves, the second about the
    distribution of their changes; each is the geometric mean of both curves. On a path with a small
    queue, random losses move the curve, but not the way it grows. The distance does not depend on
    the other flows. If the observed flow was captured at the receiver, cwnd and bytes in flight are
    unknown; throughput × RTT replaces them for all flows.

    Parameters
    ----------
    observed
        Flow of the unknown sender.
    others
        Flows to compare. Shorter curves are extended by their last value.

    Returns
    -------
    Array of shape (len(others), 2), without unit, at least 0.0001.
    """
    size = observed.rtt_s.size
    parts = np.ones((len(others), 2))
    flight = "in_flight_bytes" if observed.knows_flight else "carried_bytes"
    for name, least in (("queueing_delay_s", _FLAT * np.nanmin(observed.rtt_s)), (flight, 1.0)):
        full = getattr(observed, name)
        every = [_of_length(getattr(one, name), size) for one in others]
        curve, curves = _coarse(full), np.stack([_coarse(one) for one in every])
        largest = max(float(curve.max()), least)
        parts[:, 0] *= np.maximum(_shifted(curve / largest, curves / largest), _LEAST)
        largest = max(float(full.max()), least)
        changes = _changes(full / largest)
        apart = [np.abs(_changes(one / largest) - changes).mean() for one in every]
        parts[:, 1] *= np.maximum(apart, _LEAST)
    root: Floats = np.sqrt(parts)
    return root


def _changes(curve: Floats) -> Floats:
    """Return quantiles of the changes of a curve over each lag; 0 if the curve is too short."""
    points = _coarse(curve, _FINE)
    quantiles = np.zeros((len(_LAGS), _SHARES.size))
    for row, lag in enumerate(_LAGS):
        if points.size > lag + 5:
            quantiles[row] = np.quantile(points[lag:] - points[:-lag], _SHARES)
    return quantiles


def _of_length(curve: Floats, size: int) -> Floats:
    return np.pad(curve[:size], (0, max(0, size - curve.size)), mode="edge")


def _coarse(curve: Floats, most: int = _POINTS) -> Floats:
    """Average neighbouring points until the curve has at most `most`."""
    size = max(1, -(-curve.size // most))
    points = np.pad(curve, (0, -curve.size % size), mode="edge")
    averaged: Floats = points.reshape(-1, size).mean(axis=1)
    return averaged


def _shifted(curve: Floats, others: Floats) -> Floats:
    """Return the least distances over all shifts, computed on the overlap of the curves."""
    length = curve.size
    band = round(_BAND * length)
    found = warped_distances(curve, others, band)
    most = int(_SHIFT * length)
    shifts = np.unique(np.linspace(-most, most, 2 * _STEPS + 1).round().astype(int))
    # The point-by-point distance is fast, and selects the shift for the warped distance.
    plain = np.stack(
        [np.abs(_drop_points(curve, -s) - _drop_points(others, s)).mean(axis=-1) for s in shifts]
    )
    best = shifts[plain.argmin(axis=0)]
    # The path without warping is valid too, so its distance is an upper bound.
    found = np.asarray(np.minimum(found, plain.min(axis=0)), np.float64)
    moved, moved_others = np.zeros_like(others), np.zeros_like(others)
    for row, shift in enumerate(best.tolist()):
        one, other = _drop_points(curve, -shift), _drop_points(others[row], shift)
        moved[row, : one.size], moved_others[row, : one.size] = one, other
    at_shift = warped_distances(moved, moved_others, band, length - np.abs(best))
    return np.minimum(found, at_shift)


def _drop_points(curve: Floats, shift: int) -> Floats:
    """Drop the first `shift` points, or the last `-shift` points if it is negative."""
    return curve[..., shift:] if shift >= 0 else curve[..., :shift]
