"""Refinement of a fit: Gauss-Newton steps on features weighted by their random variation.

A search without derivatives needs hundreds of guesses for the last per cent. Near the best guess,
most features are smooth functions of the keys, and their random variation is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from jostle.stats.descriptive import Floats

__all__ = ["misfit", "noise_weights", "refine", "scan", "slopes_at"]

Evaluate = Callable[[Sequence[Floats]], Sequence[Floats | None]]
"""Positions of guesses → scaled features of each, None for a guess that cannot be run."""

_STEP: Final = 0.04
"""Step to either side of the guess for finite differences, as a share of each range. It is wide,
because between close neighbours random variation exceeds the effect of the key."""
_NARROWEST: Final = 0.008
"""Minimum step; if none gives a better guess, the refinement ends."""
_WORTH: Final = 0.02
"""Minimum improvement of a step, as a share of the misfit."""
_LENGTHS: Final = (0.25, 0.5, 1.0)
"""Tried fractions of a Gauss-Newton step."""
_FARTHEST: Final = 0.15
"""Maximum length of a step, as a share of each range."""
_DAMPING: Final = 1e-3
_SCANNED: Final = 12
"""Number of positions at which each key is scanned."""
_HUBER: Final = 3.0


def noise_weights(replicates: Floats) -> Floats:
    """Return weights of features by their random variation and the tolerance of the model.

    Parameters
    ----------
    replicates
        Scaled features of one guess with several seeds, shape (runs, features).

    Returns
    -------
    Shape (features,): 1 for a feature without random variation, 0 for one that runs lack.
    """
    variance = replicates.var(axis=0, ddof=1)
    weights: Floats = np.where(np.isnan(variance), 0.0, 1.0 / np.sqrt(1.0 + variance))
    return weights


def slopes_at(best: Floats, evaluate: Evaluate, step: float = _STEP) -> Floats:
    """Return the slopes of the features by central differences, shape (features, keys)."""
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
    """Take steps that reduce the misfit.

    Parameters
    ----------
    best
        Initial positions, shape (keys,).
    target
        Scaled features of the data, shape (features,).
    weights
        Weights of the features, shape (features,).
    evaluate
        Function that runs guesses.
    rounds
        Maximum number of steps; each takes two guesses per key, and three more.

    Returns
    -------
    The best positions, and their misfit.
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
            # Slopes over a wide step may miss a narrow valley, so use a smaller step.
            step /= 2
            if step < _NARROWEST:
                break
    return best, least


def scan(best: Floats, target: Floats, weights: Floats, evaluate: Evaluate) -> tuple[Floats, float]:
    """Scan each key over its complete range, to leave plateaus on which the misfit is constant.

    If a queue never fills, its limit has no effect, and Gauss-Newton steps cannot leave this range.
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
    """Return the misfit of a guess: Huber's loss of weighted errors, averaged over features."""
    if rows is None:
        return float("inf")
    apart = np.abs(rows - target)
    # A feature that the guess lacks counts as a large error.
    apart = np.where(np.isnan(apart) & ~np.isnan(target), 10 * _HUBER, apart)
    there = ~np.isnan(apart)
    apart = apart[there] * weights[there]
    loss = np.where(apart < _HUBER, apart**2, _HUBER * (2 * apart - _HUBER))
    return float(loss.mean()) if loss.size else float("inf")


def _gauss_newton(slopes: Floats, apart: Floats, weights: Floats) -> Floats:
    """Solve the weighted least squares problem with Huber weights for outliers."""
    usable = ~np.isnan(apart) & ~np.isnan(slopes).any(axis=1) & (weights > 0)
    scaled = np.abs(apart[usable]) * weights[usable]
    far = np.sqrt(np.minimum(1.0, _HUBER / np.maximum(scaled, 1e-12)))
    by = weights[usable] * far
    design, wanted = slopes[usable] * by[:, None], apart[usable] * by
    square = design.T @ design
    damped = square + _DAMPING * np.diag(np.diag(square) + 1e-12)
    step = np.asarray(np.linalg.solve(damped, design.T @ wanted), np.float64)
    # Limit the step, because the slopes are valid near the guess only.
    largest = float(np.abs(step).max()) if step.size else 0.0
    limited: Floats = step * (_FARTHEST / max(largest, _FARTHEST))
    return limited


def _moved(best: Floats, at: int, by: float) -> Floats:
    moved = best.copy()
    moved[at] = min(1.0, max(0.0, moved[at] + by))
    return moved
