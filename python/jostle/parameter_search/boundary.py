"""Boundary of the region in which a claim holds, with points placed where they are informative.

Over one key the search is a bisection. Over two or three keys it begins with a space-filling design
(corners and Sobol's sequence). Then it alternates between two kinds of points: the middle of the
most distant pair of mutually nearest points with opposite outcomes (a bisection along rays), and
the candidate with the least certain vote of its nearest points. Between points, the nearest points
vote.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats
    from jostle.studies import ClaimRow

__all__ = ["Estimate", "SamplePoint", "estimate_of", "explore", "vote"]

Point = tuple[float, ...]
Label = Callable[[Point], tuple[object, ...]]
Judge = Callable[[Sequence[Point]], "Sequence[tuple[dict[str, str], ClaimRow]]"]
_FIRST: Final = 9
"""Points of the first row over one key."""
_BATCH: Final = 4
"""Points that are chosen before they are run, independent of the number of jobs."""
_NEAREST: Final = 4
"""Number of nearest points that vote."""
_CANDIDATES: Final = 512
_VOLUME: Final = 4096
_MOST_KEYS: Final = 3
_OPEN: Final = 0.25
"""A vote between this share and its complement is not clear."""


@dataclass(frozen=True)
class SamplePoint:
    """A point and the outcome of its runs.

    Attributes
    ----------
    point
        Position in the range of each key, from 0 to 1.
    labels
        Key → value.
    judgement
        Judgement of the claim.
    blind
        Whether it belongs to the first design.
    """

    point: Point
    labels: dict[str, str]
    judgement: ClaimRow
    blind: bool


@dataclass(frozen=True)
class Estimate:
    """Summary of a map.

    Attributes
    ----------
    holds, fails
        Shares of the volume (of the scaled ranges) in which the nearest points clearly vote that
        the claim holds, and that it does not hold.
    wrong, blind
        Number of points of the first design that the other points predict wrongly, and number of
        points of the first design.
    """

    holds: float
    fails: float
    wrong: int
    blind: int

    @property
    def open(self) -> float:
        """Share of the volume in which the vote is not clear: near the boundary."""
        return 1 - self.holds - self.fails


def explore(
    judge: Judge,
    keys: int,
    points: int,
    *,
    seed: int,
    tolerance: float,
    label: Label = tuple,
) -> list[SamplePoint]:
    """Run points until the number of points or the resolution of the boundary is reached.

    No two points have the same values: values are rounded, whole numbers most of all.

    Parameters
    ----------
    judge
        Runs points, and judges the claim at each.
    keys
        Number of keys, from one to three.
    points
        Largest number of points to run.
    seed
        Seed of the first design.
    tolerance
        Share of a range to which a boundary is resolved.
    label
        Returns the values at a point.

    Raises
    ------
    InputError
        When there are too many keys.
    """
    if keys > _MOST_KEYS:
        raise InputError(f"a boundary is drawn over one key, two or three, not over {keys}")
    if keys == 1:
        return _bisected(judge, points, tolerance, label)
    found = _judged(judge, _distinct(_first(keys, points, seed), label), blind=True)
    candidates = _distinct(_sobol(keys, _CANDIDATES, seed + 1), label)
    tried = {label(one.point) for one in found}
    while len(found) < points:
        chosen: list[Point] = []
        for at in range(min(_BATCH, points - len(found))):
            middle = _middle(found, tried, tolerance, label) if at % 2 == 0 else None
            left = [one for one in candidates if label(one) not in tried]
            if middle is None and not left:
                break
            chosen.append(middle or _least_known(found, chosen, left))
            tried.add(label(chosen[-1]))
        if not chosen:
            break
        found += _judged(judge, chosen, blind=False)
    return found


def _distinct(points: Sequence[Point], label: Label) -> list[Point]:
    """Return the first point with each combination of values."""
    return list({label(point): point for point in reversed(points)}.values())[::-1]


def vote(places: Sequence[SamplePoint], at: Floats) -> Floats:
    """Return the share of the votes of the nearest points that the claim holds.

    Parameters
    ----------
    places
        Points that were run; points without an outcome have no vote.
    at
        Shape (places, keys).

    Returns
    -------
    ndarray
        Shape (places,), from 0 to 1. Each of the four nearest points is weighted by the inverse
        square of its distance.
    """
    known = [one for one in places if one.judgement.holds is not None]
    if not known:
        return np.full(len(at), np.nan)
    points = np.array([one.point for one in known])
    holds = np.array([bool(one.judgement.holds) for one in known], dtype=np.float64)
    away = ((at[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    nearest = np.argsort(away, axis=1, kind="stable")[:, :_NEAREST]
    weights = 1.0 / (np.take_along_axis(away, nearest, axis=1) + 1e-12)
    found: Floats = (weights * holds[nearest]).sum(axis=1) / weights.sum(axis=1)
    return found


def estimate_of(places: Sequence[SamplePoint]) -> Estimate:
    """Return the share of the ranges in which the claim holds, and its accuracy."""
    keys = len(places[0].point)
    shares = vote(places, np.array(_sobol(keys, _VOLUME, 0)))
    blind = [one for one in places if one.blind and one.judgement.holds is not None]
    wrong = 0
    for one in blind:
        others = [other for other in places if other is not one]
        said = vote(others, np.array([one.point]))[0]
        wrong += int((said > 0.5) != one.judgement.holds)
    holds, fails = (shares >= 1 - _OPEN).mean(), (shares <= _OPEN).mean()
    return Estimate(float(holds), float(fails), wrong, len(blind))


def _judged(judge: Judge, points: Sequence[Point], *, blind: bool) -> list[SamplePoint]:
    return [
        SamplePoint(point, labels, judgement, blind)
        for point, (labels, judgement) in zip(points, judge(points), strict=True)
    ]


def changes(places: Sequence[SamplePoint]) -> list[tuple[SamplePoint, SamplePoint]]:
    """Return neighbours over one key between which the claim stops or begins to hold."""
    known = sorted(
        (one for one in places if one.judgement.holds is not None), key=lambda one: one.point
    )
    pairs = itertools.pairwise(known)
    return [(a, b) for a, b in pairs if a.judgement.holds != b.judgement.holds]


def _bisected(judge: Judge, points: int, tolerance: float, label: Label) -> list[SamplePoint]:
    count = max(2, min(_FIRST, points))
    row = _distinct([(at / (count - 1),) for at in range(count)], label)
    found = _judged(judge, row, blind=True)
    while len(found) < points:
        gaps = [gap for pair in changes(found) for gap in _gaps(found, pair)]
        middles = [
            middle for a, b in gaps if (middle := _between(a, b, tolerance, label)) is not None
        ][: points - len(found)]  # fmt: skip
        if not middles:
            break
        found += _judged(judge, middles, blind=False)
    return sorted(found, key=lambda one: one.point)


def _gaps(
    found: Sequence[SamplePoint], pair: tuple[SamplePoint, SamplePoint]
) -> list[tuple[Point, Point]]:
    """Return the pair; if points between it have no outcome, the gaps at both ends of these."""
    low, high = (one.point for one in pair)
    unknown = sorted(one.point for one in found if low < one.point < high)
    return [(low, unknown[0]), (unknown[-1], high)] if unknown else [(low, high)]


def _between(a: Point, b: Point, tolerance: float, label: Label) -> Point | None:
    """Return the middle of two points, or another point between them if its values are new."""
    (low,), (high,) = a, b
    while high - low > tolerance:
        middle = ((low + high) / 2,)
        if label(middle) == label(a):
            (low,) = middle
        elif label(middle) == label(b):
            (high,) = middle
        else:
            return middle
    return None


def _first(keys: int, points: int, seed: int) -> list[Point]:
    corners = [tuple(map(float, corner)) for corner in itertools.product((0, 1), repeat=keys)]
    count = 1 << max(3, int(math.log2(max(points // 3, 1))))
    return [*corners, *_sobol(keys, count, seed)][:points]


def _sobol(keys: int, count: int, seed: int) -> list[Point]:
    from scipy.stats import qmc

    drawn = qmc.Sobol(keys, rng=np.random.default_rng(seed)).random(count)
    return [tuple(map(float, point)) for point in drawn]


def _middle(
    found: Sequence[SamplePoint], tried: Collection[object], tolerance: float, label: Label
) -> Point | None:
    """Return the middle of the most distant pair of mutually nearest, opposite points.

    If its values are among those that were tried, the next pair is used.
    """
    kinds: list[list[Point]] = [
        [one.point for one in found if one.judgement.holds is kind] for kind in (True, False)
    ]
    if not all(kinds):
        return None
    sides = [np.array(points) for points in kinds]
    away = np.sqrt(((sides[0][:, None, :] - sides[1][None, :, :]) ** 2).sum(axis=2))
    to, back = away.argmin(axis=1), away.argmin(axis=0)
    pairs = sorted(
        ((float(away[at, to[at]]), at) for at in range(len(to)) if back[to[at]] == at),
        key=lambda pair: (-pair[0], pair[1]),
    )
    for gap, at in pairs:
        if gap <= tolerance:
            return None
        middle = tuple(map(float, (sides[0][at] + sides[1][to[at]]) / 2))
        if label(middle) not in tried:
            return middle
    return None


def _least_known(
    found: Sequence[SamplePoint], chosen: Sequence[Point], candidates: Sequence[Point]
) -> Point:
    """Return the candidate with the least certain vote that is farthest from all points."""
    at = np.array(candidates)
    shares = vote(found, at)
    there: Any = np.array([*(one.point for one in found), *chosen])
    away = np.sqrt(((at[:, None, :] - there[None, :, :]) ** 2).sum(axis=2)).min(axis=1)
    doubt = np.nan_to_num(shares * (1 - shares), nan=0.25)
    if doubt.max() == 0.0:
        # All votes agree: choose the largest gap.
        doubt = np.ones_like(away)
    return candidates[int(np.argmax(doubt * away))]
