"""Where a claim stops holding: points are put where they tell most of its boundary.

Over one key by bisection. Over two or three: a first design that knows nothing (corners, and the
sequence of Sobol), then in turn the middle between the two points farthest apart of those that are
each other's nearest of the other kind, which is bisection along rays, and the place of which the
nearest points say least. What lies between points is what the nearest of them say.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError

if TYPE_CHECKING:
    from jostle.search.claims import Judgement
    from jostle.stats.describe import Floats

__all__ = ["Estimate", "Place", "estimate_of", "explore", "vote"]

Point = tuple[float, ...]
Judge = Callable[[Sequence[Point]], "Sequence[tuple[dict[str, str], Judgement]]"]
_FIRST: Final = 9
"""Points of the first row over one key."""
_BATCH: Final = 4
"""Points that are chosen before they are run: the same whatever the number of jobs."""
_NEAREST: Final = 4
"""Points that have a vote."""
_CANDIDATES: Final = 512
_VOLUME: Final = 4096
_MOST_KEYS: Final = 3
_OPEN: Final = 0.25
"""Share of votes from which on, up to its counterpart, a place is open."""


@dataclass(frozen=True)
class Place:
    """A point, and what its runs say.

    Attributes
    ----------
    point
        Share of the range of each key.
    labels
        Key → value.
    judgement
        Of the claim.
    blind
        Whether it was chosen before anything was known.
    """

    point: Point
    labels: dict[str, str]
    judgement: Judgement
    blind: bool


@dataclass(frozen=True)
class Estimate:
    """What a map says of all of it.

    Attributes
    ----------
    holds, open
        Shares of the volume (of the ranges, as they are scaled) in which the claim holds by the
        vote of the nearest points, and in which that vote is not clear.
    wrong, blind
        How many points of the first design the vote of all others has wrong, and how many it has.
    """

    holds: float
    open: float
    wrong: int
    blind: int


def explore(judge: Judge, keys: int, points: int, *, seed: int, tolerance: float) -> list[Place]:
    """Run points until there are as many as are wanted, or the boundary is as sharp.

    Parameters
    ----------
    judge
        Runs points, and holds the claim against each.
    keys
        How many keys there are, from one to three.
    points
        How many points may be run.
    seed
        Of the first design.
    tolerance
        Share of a range down to which a boundary is followed.

    Raises
    ------
    InputError
        When there are too many keys.
    """
    if keys > _MOST_KEYS:
        raise InputError(f"a boundary is drawn over one key, two or three, not over {keys}")
    if keys == 1:
        return _bisected(judge, points, tolerance)
    found = _judged(judge, _first(keys, points, seed), blind=True)
    candidates = _sobol(keys, _CANDIDATES, seed + 1)
    while len(found) < points:
        chosen: list[Point] = []
        for at in range(min(_BATCH, points - len(found))):
            middle = _middle(found, chosen, tolerance) if at % 2 == 0 else None
            chosen.append(middle or _least_known(found, chosen, candidates))
        found += _judged(judge, chosen, blind=False)
    return found


def vote(places: Sequence[Place], at: Floats) -> Floats:
    """Share of the votes of the nearest points that say that the claim holds.

    Parameters
    ----------
    places
        Points that were run; those of which nothing is known have no vote.
    at
        Shape (places, keys).

    Returns
    -------
    ndarray
        Shape (places,), from 0 to 1: each of the four nearest points weighs as the inverse square
        of its distance.
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


def estimate_of(places: Sequence[Place]) -> Estimate:
    """Say how much of the ranges the claim holds in, and how well that is known."""
    keys = len(places[0].point)
    shares = vote(places, np.array(_sobol(keys, _VOLUME, 0)))
    blind = [one for one in places if one.blind and one.judgement.holds is not None]
    wrong = 0
    for one in blind:
        others = [other for other in places if other is not one]
        said = vote(others, np.array([one.point]))[0]
        wrong += int((said > 0.5) != one.judgement.holds)
    is_open = (shares > _OPEN) & (shares < 1 - _OPEN)
    return Estimate(float((shares > 0.5).mean()), float(is_open.mean()), wrong, len(blind))


def _judged(judge: Judge, points: Sequence[Point], *, blind: bool) -> list[Place]:
    return [
        Place(point, labels, judgement, blind)
        for point, (labels, judgement) in zip(points, judge(points), strict=True)
    ]


def changes(places: Sequence[Place]) -> list[tuple[Place, Place]]:
    """Return neighbours over one key between which the claim stops or begins to hold."""
    known = sorted(
        (one for one in places if one.judgement.holds is not None), key=lambda one: one.point
    )
    pairs = itertools.pairwise(known)
    return [(a, b) for a, b in pairs if a.judgement.holds != b.judgement.holds]


def _bisected(judge: Judge, points: int, tolerance: float) -> list[Place]:
    count = max(2, min(_FIRST, points))
    row = [(at / (count - 1),) for at in range(count)]
    found = _judged(judge, row, blind=True)
    while len(found) < points:
        wide = [
            (a, b) for a, b in changes(found) if b.point[0] - a.point[0] > tolerance
        ][: points - len(found)]  # fmt: skip
        if not wide:
            break
        middles = [((a.point[0] + b.point[0]) / 2,) for a, b in wide]
        found += _judged(judge, middles, blind=False)
    return sorted(found, key=lambda one: one.point)


def _first(keys: int, points: int, seed: int) -> list[Point]:
    corners = [tuple(map(float, corner)) for corner in itertools.product((0, 1), repeat=keys)]
    count = 1 << max(3, int(math.log2(max(points // 3, 1))))
    return [*corners, *_sobol(keys, count, seed)][:points]


def _sobol(keys: int, count: int, seed: int) -> list[Point]:
    from scipy.stats import qmc

    drawn = qmc.Sobol(keys, rng=np.random.default_rng(seed)).random(count)
    return [tuple(map(float, point)) for point in drawn]


def _middle(found: Sequence[Place], chosen: Sequence[Point], tolerance: float) -> Point | None:
    """Middle between the two points farthest apart that are each other's nearest opposite."""
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
        if middle not in chosen and middle not in {one.point for one in found}:
            return middle
    return None


def _least_known(
    found: Sequence[Place], chosen: Sequence[Point], candidates: Sequence[Point]
) -> Point:
    """Return the candidate of which the nearest points say least, and that is farthest from all."""
    at = np.array(candidates)
    shares = vote(found, at)
    there: Any = np.array([*(one.point for one in found), *chosen])
    away = np.sqrt(((at[:, None, :] - there[None, :, :]) ** 2).sum(axis=2)).min(axis=1)
    doubt = np.nan_to_num(shares * (1 - shares), nan=0.25)
    if doubt.max() == 0.0:
        # All say the same: look where nothing is.
        doubt = np.ones_like(away)
    return candidates[int(np.argmax(doubt * away))]
