"""The Performance Envelope: operating region of a flow in the plane of delay and throughput.

The definition is from QUICbench (A. Mishra, S. Lim, B. Leong: Understanding Speciation in QUIC
Congestion Control, IMC 2022; github.com/NUS-SNL/QUICbench, `visualize/plot_perf_env.py`): the
envelope is the convex hull of the 95 % of a flow's points that are nearest their mean. The
conformance of a test to a reference is the share of the kept points of both that are inside the
other's envelope.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.stats.descriptive import Floats

KEPT = 0.95
"""Share of the points that an envelope contains (`THRESH` of QUICbench)."""

_TOLERANCE = 1e-9
"""Rounding tolerance for points on the outline, relative to the size of the envelope."""


@dataclass(frozen=True)
class Envelope:
    """The convex hull of the points nearest their mean.

    Attributes
    ----------
    x, y
        Mean of all points.
    points
        Shape (n, 2): all points.
    kept
        Shape (k, 2): the points nearest the mean.
    corners
        Shape (m, 2): corners of the hull, counterclockwise; one or two if it has no area.
    """

    x: float
    y: float
    points: Floats
    kept: Floats
    corners: Floats

    @cached_property
    def outline_x(self) -> Floats:
        """Closed outline, shape (m + 1,)."""
        return np.append(self.corners[:, 0], self.corners[0, 0])

    @cached_property
    def outline_y(self) -> Floats:
        """Closed outline, shape (m + 1,)."""
        return np.append(self.corners[:, 1], self.corners[0, 1])

    def count_inside(self, points: Floats) -> int:
        """Return how many points of shape (n, 2) are inside or on the outline."""
        low, high = self.corners.min(axis=0), self.corners.max(axis=0)
        size = float((high - low).max(initial=0.0)) or float(np.abs(self.corners).max()) or 1.0
        slack = _TOLERANCE * size
        inside = ((points >= low - slack) & (points <= high + slack)).all(axis=1)
        edges = np.roll(self.corners, -1, axis=0) - self.corners
        for corner, (along_x, along_y) in zip(self.corners, edges, strict=True):
            aside = along_x * (points[:, 1] - corner[1]) - along_y * (points[:, 0] - corner[0])
            inside &= aside >= -slack * float(np.hypot(along_x, along_y))
        return int(inside.sum())


def envelope(x: Floats, y: Floats, keep: float = KEPT) -> Envelope | None:
    """Return the Performance Envelope of points.

    Parameters
    ----------
    x, y
        Shape (n,) each, such as delay and throughput; incomplete pairs are ignored. Both should
        have a similar scale, because distances from the mean depend on their units.
    keep
        Share of the points, rounded down, nearest their mean (Euclidean) that are kept.

    Returns
    -------
    Envelope or None
        None for fewer than three pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import envelope
    >>> found = envelope(np.array([0.0, 2.0, 2.0, 0.0, 1.0]), np.array([0.0, 0.0, 2.0, 2.0, 9.0]))
    >>> found.kept.shape, found.corners.tolist()
    ((4, 2), [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    """
    if not 0 < keep <= 1:
        raise ValueError("keep must lie above 0 and not beyond 1")
    points = np.stack([np.asarray(x, np.float64), np.asarray(y, np.float64)], axis=1)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 3:
        return None
    centre = points.mean(axis=0)
    # 1e-6 covers the rounding error of the product.
    count = max(1, int(len(points) * keep + 1e-6))
    distance = ((points - centre) ** 2).sum(axis=1)
    kept = points[np.argsort(distance, kind="stable")[:count]]
    return Envelope(float(centre[0]), float(centre[1]), points, kept, _hull(kept))


def conformance(test: Envelope, reference: Envelope) -> float:
    """Return the share of the kept points of two envelopes that are inside the other one.

    Parameters
    ----------
    test, reference
        In the same units. The measure is symmetric.

    Returns
    -------
    float
        1 if each envelope contains all of the other's points, 0 if none.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import conformance, envelope
    >>> x, y = np.array([0.0, 4.0, 4.0, 0.0]), np.array([0.0, 0.0, 4.0, 4.0])
    >>> one, other = envelope(x, y, keep=1), envelope(x + 2, y, keep=1)
    >>> conformance(one, one), conformance(one, other), conformance(one, envelope(x + 9, y, keep=1))
    (1.0, 0.5, 0.0)
    """
    shared = test.count_inside(reference.kept) + reference.count_inside(test.kept)
    return shared / (len(test.kept) + len(reference.kept))


def deviation(test: Envelope, reference: Envelope) -> float:
    """Return the distance between the means of all points of two envelopes, in their unit.

    QUICbench mixes ms and Mbit/s here. With relative coordinates, the result is relative, too.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import deviation, envelope
    >>> x, y = np.array([0.0, 4.0, 2.0]), np.array([0.0, 0.0, 3.0])
    >>> deviation(envelope(x, y), envelope(x + 3, y - 4))
    5.0
    """
    return float(np.hypot(test.x - reference.x, test.y - reference.y))


def _hull(points: Floats) -> Floats:
    """Return the corners of the convex hull, counterclockwise, by Andrew's monotone chain (1979).

    Unlike Qhull, it also supports points that are equal or collinear.
    """
    ordered = np.unique(points, axis=0).tolist()
    if len(ordered) < 3:
        return np.array(ordered)
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return np.array(lower[:-1] + upper[:-1])


def _chain(ordered: list[list[float]]) -> list[list[float]]:
    """Keep the points at which a path along ordered points turns left."""
    kept: list[list[float]] = []
    for x, y in ordered:
        while len(kept) > 1:
            (from_x, from_y), (over_x, over_y) = kept[-2:]
            turn = (over_x - from_x) * (y - from_y) - (over_y - from_y) * (x - from_x)
            if turn > 0:
                break
            kept.pop()
        kept.append([x, y])
    return kept
