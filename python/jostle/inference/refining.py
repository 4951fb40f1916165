"""From a good guess to the best one: Gauss-Newton steps on features that are weighted by chance.

A search that knows nothing of features needs hundreds of guesses for the last per cent. Near the
best guess most features are smooth in the keys, and those that chance moves are known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from jostle.stats.describe import Floats

__all__ = ["chance_weights", "misfit", "refine", "scan", "slopes_at"]

Evaluate = Callable[[Sequence[Floats]], Sequence[Floats | None]]
"""Places of guesses → scaled features of each, None where it cannot be run."""

_STEP: Final = 0.04
"""To either side of the guess, as a part of each range, to find slopes: wide, because between close
neighbours chance does more than the key."""
_NARROWEST: Final = 0.008
"""The narrowest such step; if none leads to a better guess, the best one was found."""
_WORTH: Final = 0.02
"""Part of the misfit that a step has to gain."""
_LENGTHS: Final = (0.25, 0.5, 1.0)
"""Parts of a Gauss-Newton step that are tried."""
_FARTHEST: Final = 0.15
"""Of a step, as a part of each range."""
_DAMPING: Final = 1e-3
_SCANNED: Final = 12
"""Places of each key that are looked at from end to end."""
_HUBER: Final = 3.0


def chance_weights(replicates: Floats) -> Floats:
    """Weigh features by what moves them: chance, beside what a right model may differ by.

    Parameters
    ----------
    replicates
        Shape (runs, features): scaled features of one guess with several seeds.

    Returns
    -------
    Shape (features,): 1 for a feature that chance does not move, 0 for one that runs lack.
    """
    variance = replicates.var(axis=0, ddof=1)
    weights: Floats = np.where(np.isnan(variance), 0.0, 1.0 / np.sqrt(1.0 + variance))
    return weights


def slopes_at(best: Floats, evaluate: Evaluate, step: float = _STEP) -> Floats:
    """Slopes of the features in each key by central differences: shape (features, keys)."""
    sides = [_moved(best, at, by * step) for at in range(best.size) for by in (1.0, -1.0)]
    rows = evaluate(sides)
    columns = []
    for at in range(best.size):
        (above, below), (high, low) = rows[2 * at : 2 * at + 2], sides[2 * at : 2 * at + 2]
        width = float(high[at] - low[at])
        lost = above is None or below is None or width <= 0
        columns.append(None if lost else (np.asarray(above) - np.asarray(below)) / width)
    size = next((one.size for one in columns if one is not None), 0)
    return np.column_stack([np.full(size, np.nan) if c is None else c for c in columns])


def refine(
    best: Floats, target: Floats, weights: Floats, evaluate: Evaluate, rounds: int
) -> tuple[Floats, float]:
    """Step towards the least misfit.

    Parameters
    ----------
    best
        Shape (keys,): where to begin.
    target
        Shape (features,): the scaled features of the data.
    weights
        Shape (features,).
    evaluate
        Runs guesses.
    rounds
        Steps at most; each takes two guesses for every key, and three more.

    Returns
    -------
    The best places, and their misfit.
    """
    (rows,) = evaluate([best])
    least = misfit(rows, target, weights)
    step = _STEP
    for _ in range(rounds):
        if rows is None:
            break
        slopes = slopes_at(best, evaluate, step)
        towards = _gauss_newton(slopes, target - rows, weights)
        guesses = [np.clip(best + part * towards, 0.0, 1.0) for part in _LENGTHS]
        tried = evaluate(guesses)
        misfits = [misfit(one, target, weights) for one in tried]
        at = int(np.argmin(misfits))
        gained = least - misfits[at]
        if gained > 0:
            best, rows, least = guesses[at], tried[at], misfits[at]
        if gained < _WORTH * least:
            # Slopes over a wide step are not those of a narrow valley: look closer.
            step /= 2
            if step < _NARROWEST:
                break
    return best, least


def scan(best: Floats, target: Floats, weights: Floats, evaluate: Evaluate) -> tuple[Floats, float]:
    """Look along each key from end to end: out of plateaus on which nothing depends on it.

    A queue that never fills may be of any length above; steps lead nowhere from there.
    """
    places = np.linspace(0.0, 1.0, _SCANNED + 2)[1:-1]
    least = float("inf")
    for at in range(best.size):
        guesses = [best, *(_moved(best, at, float(place - best[at])) for place in places)]
        misfits = [misfit(one, target, weights) for one in evaluate(guesses)]
        found = int(np.argmin(misfits))
        best, least = guesses[found], misfits[found]
    return best, least


def misfit(rows: Floats | None, target: Floats, weights: Floats) -> float:
    """Hold a guess against the data: Huber's loss, weighted mean over the features of the data."""
    if rows is None:
        return float("inf")
    apart = np.abs(rows - target)
    # What the data have and the guess lacks is wrong by a lot.
    apart = np.where(np.isnan(apart) & ~np.isnan(target), 10 * _HUBER, apart)
    there = ~np.isnan(apart)
    apart = apart[there] * weights[there]
    loss = np.where(apart < _HUBER, apart**2, _HUBER * (2 * apart - _HUBER))
    return float(loss.mean()) if loss.size else float("inf")


def _gauss_newton(slopes: Floats, apart: Floats, weights: Floats) -> Floats:
    """Solve the weighted least squares; outliers count as Huber has them."""
    usable = ~np.isnan(apart) & ~np.isnan(slopes).any(axis=1) & (weights > 0)
    scaled = np.abs(apart[usable]) * weights[usable]
    far = np.sqrt(np.minimum(1.0, _HUBER / np.maximum(scaled, 1e-12)))
    by = weights[usable] * far
    design, wanted = slopes[usable] * by[:, None], apart[usable] * by
    square = design.T @ design
    damped = square + _DAMPING * np.diag(np.diag(square) + 1e-12)
    step = np.asarray(np.linalg.solve(damped, design.T @ wanted), np.float64)
    # Slopes hold near the guess.
    largest = float(np.abs(step).max()) if step.size else 0.0
    limited: Floats = step * (_FARTHEST / max(largest, _FARTHEST))
    return limited


def _moved(best: Floats, at: int, by: float) -> Floats:
    moved = best.copy()
    moved[at] = min(1.0, max(0.0, moved[at] + by))
    return moved
