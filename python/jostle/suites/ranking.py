"""League table: controllers by the weighted share of criteria that they meet.

Ranks have confidence intervals, because a verdict is uncertain if the value's interval contains the
bound. Ranks are computed from many random draws of all verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jostle.suites.evaluate import CriterionResult, SuiteResult

LEVEL_WEIGHTS: Final[Mapping[str, float]] = {"must": 3.0, "should": 2.0, "explore": 1.0}
"""Weight of a criterion in its suite; the page can change it."""
DRAWS: Final = 2000
_SEED: Final = 1


@dataclass(frozen=True)
class RankedController:
    """Rank of a controller.

    Attributes
    ----------
    controller
        Its name.
    score
        From 0 to 1; None if nothing is known.
    rank
        From 1; equal scores have equal ranks.
    low, high
        Interval of the rank, which contains 95 % of the draws; None for a quick run, whose single
        runs have no intervals.
    met, judged
        Number of criteria that it meets, and number of criteria that count.
    """

    controller: str
    score: float | None
    rank: int
    low: int | None
    high: int | None
    met: int
    judged: int

    @property
    def among(self) -> str:
        """The interval in words; empty if there is none."""
        if self.low == self.high:
            return "" if self.low is None else f"{self.low}"
        return f"{self.low}–{self.high}"


@dataclass(frozen=True)
class RankingEntry:
    """A criterion that counts, and the probability that each controller meets it.

    Attributes
    ----------
    suite, level
        Suite and level, which determine the weight.
    chances
        One probability for each controller.
    """

    suite: str
    level: str
    chances: tuple[float, ...]


def pass_probability(row: CriterionResult) -> float | None:
    """Return the probability that a criterion is met; None if it is unknown without a value.

    It is the lowest probability of a comparison, because comparisons of a criterion share runs and
    are not independent.
    """
    doubts = [one for one in row.comparisons if one.verdict == "unknown"]
    judged = [one.tested.is_open and not one.tested.ended_early for one in doubts]
    if row.verdict == "unknown" and not (judged and all(judged)):
        return None
    return min(one.tested.probability for one in row.comparisons)


def entries(cards: Sequence[SuiteResult]) -> tuple[list[str], list[RankingEntry]]:
    """Return the controllers, and the criteria that are known for all of them.

    Parameters
    ----------
    cards
        One for each controller and suite.
    """
    controllers = list(dict.fromkeys(card.controller for card in cards))
    found = []
    for suite in dict.fromkeys(card.suite for card in cards):
        of = {card.controller: card for card in cards if card.suite == suite}
        if set(of) != set(controllers):
            continue
        rows = zip(*(of[name].rows for name in controllers), strict=True)
        for each in rows:
            chances = [pass_probability(row) for row in each]
            known = tuple(one for one in chances if one is not None)
            if len(known) == len(chances):
                found.append(RankingEntry(suite, each[0].criterion.level, known))
    return controllers, found


def rank_controllers(
    cards: Sequence[SuiteResult], weights: Mapping[str, float] = LEVEL_WEIGHTS
) -> list[RankedController]:
    """Rank controllers, the best first.

    Within a suite, a criterion is weighted by its level. Suites have equal weights, independent of
    their number of criteria.

    Parameters
    ----------
    cards
        One for each controller and suite.
    weights
        By level.
    """
    controllers, found = entries(cards)
    quick = any(card.quick for card in cards)
    suites = list(dict.fromkeys(one.suite for one in found))
    if not suites:
        return [RankedController(name, None, 1, None, None, 0, 0) for name in controllers]
    counted = np.array([weights[one.level] for one in found])
    for suite in suites:
        here = np.array([one.suite == suite for one in found])
        total = counted[here].sum()
        counted[here] /= total * len(suites) if total else 1.0
    chances = np.array([one.chances for one in found])
    met = chances >= 0.5
    scores = counted @ met
    drawn = np.random.default_rng(_SEED).random((DRAWS, *chances.shape)) < chances
    ranks = _ranks(np.tensordot(drawn, counted, axes=(1, 0)))
    low, high = np.percentile(ranks, [2.5, 97.5], axis=0, method="nearest")
    places = [
        RankedController(name, float(scores[at]), int(_ranks(scores[None, :])[0, at]),
              None if quick else int(low[at]), None if quick else int(high[at]),
              int(met[:, at].sum()), len(found))
        for at, name in enumerate(controllers)
    ]  # fmt: skip
    return sorted(places, key=lambda one: (one.rank, controllers.index(one.controller)))


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Return ranks of scores, 1 plus the number of better ones; both (draws, controllers)."""
    better = scores[:, None, :] > scores[:, :, None] + 1e-9
    found: np.ndarray = 1 + better.sum(axis=2)
    return found
