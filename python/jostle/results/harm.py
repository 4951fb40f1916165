"""Harm: what flows lose through another one, measured against their being alone.

Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019: with a performance
x alone and y beside the newcomer, harm is (x − y) ÷ x where more is better, and (y − x) ÷ y where
less is. 0: the newcomer takes nothing; 1: it takes all; below 0: the others are better off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError
from jostle.results.finished import OVERALL
from jostle.results.measures import Measure, measure
from jostle.stats import Estimate, Method, estimate

if TYPE_CHECKING:
    from jostle.results.conditions import Condition
    from jostle.results.finished import FinishedRuns

_MORE_IS_BETTER: Final = {"bit/s": True, "s": False}
"""By unit: rates, and times and delays."""


@dataclass(frozen=True)
class Harm:
    """Harm to one flow.

    Attributes
    ----------
    condition
        Position of the condition with the newcomer.
    alone
        Position of the one without it.
    flow
        The flow that was there in both.
    harm
        Mean over the seeds that both have, as a share.
    """

    condition: int
    alone: int
    flow: str
    harm: Estimate


def harms(
    results: FinishedRuns,
    name: str = "throughput",
    phase: str = OVERALL,
    method: Method = "t",
    confidence: float = 0.95,
) -> list[Harm]:
    """Estimate the harm to every flow, in every condition that has one with fewer flows beside it.

    Two conditions belong together if they differ in one key of the grid, and the flows of one are
    some of the other's: `"flows.newcomer.count" = [0, 1]`. Of several, the one with the fewest
    flows counts as being alone. Runs with the same seed are compared.

    Parameters
    ----------
    results
        The runs.
    name
        A measure of flows: a rate, a time or a delay.
    phase
        Name of a phase.
    method, confidence
        See `jostle.stats.estimate`.

    Raises
    ------
    InputError
        When nobody could say whether more or less of that measure is better.
    """
    wanted = measure(name)
    if wanted.scope != "flow" or wanted.unit not in _MORE_IS_BETTER or wanted.elsewhere:
        raise InputError(f"harm is of a rate, a time or a delay of flows; `{wanted.name}` is none")
    every = Harms(results)
    found = []
    for index in range(len(results.conditions)):
        alone = every.alone(index)
        for flow in () if alone is None else results.flow_names(alone):
            values = [run[0] for run in every.by_seed(wanted, phase, (flow,), index).values()]
            harm = estimate(values, "1", method, confidence, bounds=measure("harm").bounds)
            assert alone is not None
            found.append(Harm(index, alone, flow, harm))
    return found


def share_lost(alone: float | None, beside: float | None, more_is_better: bool) -> float | None:
    """Give what of a performance is lost; None where it cannot be said."""
    if alone is None or beside is None:
        return None
    lost, of = (alone - beside, alone) if more_is_better else (beside - alone, beside)
    return lost / of if of > 0 else None


class Harms:
    """Which conditions lack the newcomer of others, and what flows lose in these, by seed.

    Parameters
    ----------
    results
        The runs.
    """

    def __init__(self, results: FinishedRuns) -> None:
        self._results = results

    @cached_property
    def _sizes(self) -> list[int]:
        """Flows of each condition; none where no run finished."""
        every = range(len(self._results.conditions))
        return [len(self._results.flow_names(index)) for index in every]

    @cached_property
    def _differ(self) -> bool:
        """Whether any condition has fewer flows than another."""
        return len(set(self._sizes) - {0}) > 1

    @cached_property
    def _keys(self) -> list[str]:
        return list(dict.fromkeys(key for one in self._results.conditions for key in one))

    @cached_property
    def _beside(self) -> dict[tuple[str, frozenset[tuple[str, str]]], list[int]]:
        """Conditions by all of their keys but one: those that differ in that one lie together."""
        found: dict[tuple[str, frozenset[tuple[str, str]]], list[int]] = {}
        for index, condition in enumerate(self._results.conditions):
            for key in self._keys:
                found.setdefault((key, _others(condition, key)), []).append(index)
        return found

    def alone(self, index: int) -> int | None:
        """Find the condition that differs by flows that it does not have; None if there is none."""
        if not self._differ:
            return None
        condition = self._results.conditions[index]
        flows = set(self._results.flow_names(index))
        fewer = [
            other
            for key in self._keys
            for other in self._beside[key, _others(condition, key)]
            if 0 < self._sizes[other] < len(flows) and set(self._results.flow_names(other)) < flows
        ]
        return min(fewer, key=lambda other: self._sizes[other], default=None)

    def by_seed(
        self, wanted: Measure, phase: str, flows: Sequence[str], index: int
    ) -> dict[int, list[float | None]]:
        """Give the harm to each of `flows` in the runs of a condition whose seed the other has."""
        alone = self.alone(index)
        before = {} if alone is None else {r.seed: r.run for r in self._results.of(alone)}
        found = {}
        for result in self._results.of(index):
            if result.seed not in before:
                continue
            x, y = (
                [wanted.of_summary(run.summary, phase, flow) for flow in flows]
                for run in (before[result.seed], result.run)
            )
            found[result.seed] = [
                share_lost(one, other, _MORE_IS_BETTER[wanted.unit])
                for one, other in zip(x, y, strict=True)
            ]
        return found


def _others(condition: Condition, key: str) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in condition.items() if name != key)
