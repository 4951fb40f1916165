"""Confidence intervals of fitted keys.

Near the best guess, features are assumed to be linear in the keys. The random variation is
estimated from runs of the fitted scenario with other seeds (parametric bootstrap). Each of these
runs is fitted by one Gauss-Newton step, and the interval contains 95 % of the resulting values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from jostle.inference.free_keys import FittedKey
    from jostle.stats.descriptive import Floats

__all__ = ["Uncertainty", "uncertainty"]

_DRAWN: Final = 2000
"""Number of bootstrap replicates that are drawn from the runs."""
_ALIKE: Final = 0.95
"""Correlation from which two keys count as inseparable."""
_RANGE: Final = 0.5
"""Standard deviation of a key without information, as a share of its range."""


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of the keys.

    Attributes
    ----------
    ends
        Ends of the intervals as positions in the ranges, shape (keys, 2).
    unclear
        Pairs of keys with their correlation, if it exceeds 0.95.
    """

    ends: Floats
    unclear: Sequence[tuple[str, str, float]]


def uncertainty(
    keys: Sequence[FittedKey],
    best: Floats,
    slopes: Floats,
    weights: Floats,
    replicates: Floats | None,
    *,
    seeds: int,
) -> Uncertainty:
    """Return the uncertainty of the fitted keys.

    Parameters
    ----------
    keys
        Free keys.
    best
        Fitted positions, shape (keys,).
    slopes
        Slopes of the scaled features at these positions, shape (features, keys).
    weights
        Weights of the features in the fit, shape (features,).
    replicates
        Scaled features of the fitted scenario with other seeds, shape (runs, features).
    seeds
        Runs per guess, whose mean was fitted.
    """
    if replicates is None or len(replicates) < 3:
        return Uncertainty(np.tile([0.0, 1.0], (len(keys), 1)), ())
    usable = ~np.isnan(replicates).any(axis=0) & ~np.isnan(slopes).any(axis=1)
    slopes, noise = slopes[usable] * weights[usable, None], replicates[:, usable]
    noise = noise - noise.mean(axis=0)
    random = np.random.default_rng(1)
    # Draw complete runs, which keeps features correlated. The model error of each feature is
    # independent and is added (one unit of the scaled features).
    chance = noise[random.integers(len(noise), size=_DRAWN)]
    # The data are one run, but the fit compared them with a mean over a few runs.
    chance = chance * np.sqrt((1 + 1 / seeds) * len(noise) / (len(noise) - 1))
    model = random.standard_normal((_DRAWN, slopes.shape[0]))
    # Prior: each key lies somewhere in its range. Keys without effect on features keep this width.
    before = np.eye(len(keys)) / _RANGE
    drawn = ((chance + model) * weights[usable]) @ slopes
    drawn += random.standard_normal((_DRAWN, len(keys))) @ before
    steps = np.linalg.solve(slopes.T @ slopes + before @ before, drawn.T).T
    ends = np.clip(best[:, None] + np.percentile(steps, [2.5, 97.5], axis=0).T, 0.0, 1.0)
    return Uncertainty(ends, _unclear(keys, steps))


def _unclear(keys: Sequence[FittedKey], steps: Floats) -> list[tuple[str, str, float]]:
    found = []
    spread = steps.std(axis=0)
    for one in range(len(keys)):
        for other in range(one + 1, len(keys)):
            if spread[one] > 0 and spread[other] > 0:
                value = float(np.corrcoef(steps[:, one], steps[:, other])[0, 1])
                if abs(value) > _ALIKE:
                    found.append((keys[one].key, keys[other].key, value))
    return found
