"""How far two flows are apart, by the curves of their queueing delay and of what is under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.inference.warping import warped_distances

if TYPE_CHECKING:
    from jostle.inference.observation import Observation
    from jostle.stats.describe import Floats

__all__ = ["curve_distances"]

_POINTS: Final = 300
"""Of a curve; finer ones are averaged. A flow of a minute has one for every 200 ms."""
_BAND: Final = 0.04
"""Part of its length by which a curve may run ahead of another."""
_SHIFT: Final = 1 / 3
"""Part of its length by which a whole curve may be shifted. What a first loss leaves behind decides
about the phase of all later sawteeth, and two runs of one kernel differ in it."""
_STEPS: Final = 100
"""Shifts to either side that are looked at."""
_CLOSER: Final = 0.28
"""Part of the others for which the warped distance is taken at their best shift as well."""
_FEWEST_CLOSER: Final = 15
_LEAST: Final = 1e-4
"""Distances below are equal: of the same run, or of controllers that do the same there."""


def curve_distances(observed: Observation, others: Sequence[Observation]) -> Floats:
    """Distances of a flow to others, which were seen with the same length of intervals.

    The geometric mean of the distances of two curves, each in parts of the largest value that any
    of the flows has: queueing delay (which CCAnalyzer compares: Ware et al., SIGCOMM 2024) and
    bytes in flight (as Nebby does: Mishra et al., SIGCOMM 2024). A receiver knows neither window
    nor flight: of a flow that was seen there, throughput × RTT stands for them, of all flows alike.

    Parameters
    ----------
    observed
        The unknown flow.
    others
        What it is held against. Curves that are shorter stay at their last value.

    Returns
    -------
    Array of shape (len(others),), without unit, at least 0.0001.
    """
    size = observed.rtt_s.size
    whole = np.ones(len(others))
    flight = "in_flight_bytes" if observed.knows_flight else "carried_bytes"
    for name in ("queueing_delay_s", flight):
        curve = _coarse(getattr(observed, name))
        every = np.stack([_coarse(_of_length(getattr(one, name), size)) for one in others])
        largest = max(float(curve.max()), float(every.max())) or 1.0
        whole *= np.maximum(_shifted(curve / largest, every / largest), _LEAST)
    root: Floats = np.sqrt(whole)
    return root


def _of_length(curve: Floats, size: int) -> Floats:
    return np.pad(curve[:size], (0, max(0, size - curve.size)), mode="edge")


def _coarse(curve: Floats) -> Floats:
    """Average neighbours until the curve has no more points than are compared."""
    size = max(1, -(-curve.size // _POINTS))
    points = np.pad(curve, (0, -curve.size % size), mode="edge")
    averaged: Floats = points.reshape(-1, size).mean(axis=1)
    return averaged


def _shifted(curve: Floats, others: Floats) -> Floats:
    """Distances to curves that may be shifted as a whole: of the part that both have."""
    length = curve.size
    band = round(_BAND * length)
    found = warped_distances(curve, others, band)
    most = int(_SHIFT * length)
    shifts = np.unique(np.linspace(-most, most, 2 * _STEPS + 1).round().astype(int))
    # Point by point is quick, and tells which shift is worth a closer look.
    plain = np.stack([np.abs(_part(curve, -s) - _part(others, s)).mean(axis=-1) for s in shifts])
    best = shifts[plain.argmin(axis=0)]
    # Without any warping that is a path as well, which bounds the distance from above.
    found = np.asarray(np.minimum(found, plain.min(axis=0)), np.float64)
    closer = max(_FEWEST_CLOSER, round(_CLOSER * found.size))
    for at in np.argsort(found, kind="stable")[:closer].tolist():
        one, other = _part(curve, -best[at]), _part(others[at : at + 1], best[at])
        found[at] = min(found[at], warped_distances(one, other, band)[0])
    return found


def _part(curve: Floats, shift: int) -> Floats:
    """Leave out the first points, or if negative the last ones."""
    return curve[..., shift:] if shift >= 0 else curve[..., :shift]
