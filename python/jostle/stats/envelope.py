"""The Performance Envelope: where a flow works in the plane of delay and throughput.

As QUICbench draws it (A. Mishra, S. Lim, B. Leong: Understanding Speciation in QUIC Congestion
Control, IMC 2022; github.com/NUS-SNL/QUICbench, `visualize/plot_perf_env.py`): of a flow's points
the 95 % nearest their mean are kept, and their convex hull is the envelope. The conformance of a
test to a reference is the share of the kept points of both that lie inside the other's envelope.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.stats.describe import Floats

KEPT = 0.95
"""Share of the points that an envelope is drawn around (`THRESH` of QUICbench)."""

_TOLERANCE = 1e-9
"""Of the envelope's size: how far outside a point may lie that arithmetic has put there."""


@dataclass(frozen=True)
class Envelope:
    """The convex hull of the points nearest their mean.

    Attributes
    ----------
    x, y
        Mean of all points.
    points
        Shape (n, 2): all of them.
    kept
        Shape (k, 2): those nearest the mean.
    corners
        Shape (m, 2): of the hull, counterclockwise; one or two where the points have no area.
    """

    x: float
    y: float
    points: Floats
    kept: Floats
    corners: Floats

    @cached_property
    def outline_x(self) -> Floats:
        """Shape (m + 1,): the outline, closed."""
        return np.append(self.corners[:, 0], self.corners[0, 0])

    @cached_property
    def outline_y(self) -> Floats:
        """Shape (m + 1,): the outline, closed."""
        return np.append(self.corners[:, 1], self.corners[0, 1])

    def held(self, points: Floats) -> int:
        """Count which of some points, shape (n, 2), lie inside or on the outline."""
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
    """Draw the Performance Envelope around points.

    Parameters
    ----------
    x, y
        Shape (n,) each, such as delay and throughput; a pair that is not complete is left out. Both
        should be of one size: which points are nearest the mean depends on their units.
    keep
        Share of the points, rounded down, that lie nearest their mean (Euclid) and are kept.

    Returns
    -------
    Envelope or None
        None for fewer than three pairs, of which nothing would be left to draw.

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
    # A part in a million covers what the product's rounding takes away.
    count = max(1, int(len(points) * keep + 1e-6))
    distance = ((points - centre) ** 2).sum(axis=1)
    kept = points[np.argsort(distance, kind="stable")[:count]]
    return Envelope(float(centre[0]), float(centre[1]), points, kept, _hull(kept))


def conformance(test: Envelope, reference: Envelope) -> float:
    """Share of the kept points of two envelopes that lie inside the other one.

    Parameters
    ----------
    test, reference
        In the same units. Which is which makes no difference.

    Returns
    -------
    float
        1 if each envelope holds all of the other's points, 0 if none.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import conformance, envelope
    >>> x, y = np.array([0.0, 4.0, 4.0, 0.0]), np.array([0.0, 0.0, 4.0, 4.0])
    >>> one, other = envelope(x, y, keep=1), envelope(x + 2, y, keep=1)
    >>> conformance(one, one), conformance(one, other), conformance(one, envelope(x + 9, y, keep=1))
    (1.0, 0.5, 0.0)
    """
    shared = test.held(reference.kept) + reference.held(test.kept)
    return shared / (len(test.kept) + len(reference.kept))


def deviation(test: Envelope, reference: Envelope) -> float:
    """Distance of the means of all points of two envelopes, in their unit.

    QUICbench mixes ms and Mbit/s here; whoever gives both in parts of something gets parts.

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
    """Corners of the convex hull, counterclockwise: the monotone chain of Andrew (1979).

    Points that are all the same, or on one line, have a hull as well, which Qhull refuses.
    """
    ordered = np.unique(points, axis=0).tolist()
    if len(ordered) < 3:
        return np.array(ordered)
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return np.array(lower[:-1] + upper[:-1])


def _chain(ordered: list[list[float]]) -> list[list[float]]:
    """Keep the points at which a way along ordered points turns left."""
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
