"""How well the data know the keys that a fit found.

Near the best guess the features are taken for linear in the keys. What chance does to them is what
differs between runs of the fitted scenario with other seeds (a parametric bootstrap); each of these
runs is fitted by one Gauss-Newton step, and the interval holds 95 % of where these steps lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from jostle.inference.free_keys import FreeKey
    from jostle.stats.describe import Floats

__all__ = ["Uncertainty", "uncertainty"]

_DRAWN: Final = 2000
"""Replicates of the data that are drawn from those that were run."""
_ALIKE: Final = 0.95
"""Correlation from which on two keys cannot be told apart."""
_RANGE: Final = 0.5
"""Standard deviation of a key of which nothing is known, as a part of its range."""


@dataclass(frozen=True)
class Uncertainty:
    """What is known of the keys.

    Attributes
    ----------
    ends
        Shape (keys, 2): the places at which each interval ends.
    unclear
        Pairs of keys with their correlation, where it is above 0.95.
    """

    ends: Floats
    unclear: Sequence[tuple[str, str, float]]


def uncertainty(
    keys: Sequence[FreeKey],
    best: Floats,
    slopes: Floats,
    weights: Floats,
    replicates: Floats | None,
    *,
    seeds: int,
) -> Uncertainty:
    """Say how far each key may be from what was found.

    Parameters
    ----------
    keys
        The free keys.
    best
        Shape (keys,): the places that were found.
    slopes
        Shape (features, keys): of the scaled features at that place.
    weights
        Shape (features,): with which the fit counts them.
    replicates
        Shape (runs, features): scaled features of the fitted scenario with other seeds.
    seeds
        Runs of each guess, whose mean was fitted.
    """
    if replicates is None or len(replicates) < 3:
        return Uncertainty(np.tile([0.0, 1.0], (len(keys), 1)), ())
    usable = ~np.isnan(replicates).any(axis=0) & ~np.isnan(slopes).any(axis=1)
    slopes, noise = slopes[usable] * weights[usable, None], replicates[:, usable]
    noise = noise - noise.mean(axis=0)
    random = np.random.default_rng(1)
    # Runs are drawn with their own features together; what a right model may differ by, each by
    # itself, comes on top (one unit of the scaled features).
    chance = noise[random.integers(len(noise), size=_DRAWN)]
    # The data are one run, and what they were held against is a mean over a few.
    chance = chance * np.sqrt((1 + 1 / seeds) * len(noise) / (len(noise) - 1))
    model = random.standard_normal((_DRAWN, slopes.shape[0]))
    # Before anything was measured, a key was somewhere in its range: what no feature depends on
    # stays there.
    before = np.eye(len(keys)) / _RANGE
    drawn = ((chance + model) * weights[usable]) @ slopes
    drawn += random.standard_normal((_DRAWN, len(keys))) @ before
    steps = np.linalg.solve(slopes.T @ slopes + before @ before, drawn.T).T
    ends = np.clip(best[:, None] + np.percentile(steps, [2.5, 97.5], axis=0).T, 0.0, 1.0)
    return Uncertainty(ends, _unclear(keys, steps))


def _unclear(keys: Sequence[FreeKey], steps: Floats) -> list[tuple[str, str, float]]:
    found = []
    spread = steps.std(axis=0)
    for one in range(len(keys)):
        for other in range(one + 1, len(keys)):
            if spread[one] > 0 and spread[other] > 0:
                value = float(np.corrcoef(steps[:, one], steps[:, other])[0, 1])
                if abs(value) > _ALIKE:
                    found.append((keys[one].key, keys[other].key, value))
    return found
