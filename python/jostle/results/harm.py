"""Harm: performance that flows lose to a newcomer.

Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019: with performance x
without the newcomer and y with it, harm is (x − y) ÷ x if more is better, and (y − x) ÷ y if less
is better. 0: the newcomer takes nothing; 1: it takes everything; below 0: the flow gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError
from jostle.results.compared_phase import OVERALL
from jostle.results.measures import Measure, measure
from jostle.stats import Estimate, Method, estimate

if TYPE_CHECKING:
    from jostle.results.condition_names import Condition
    from jostle.results.finished_runs import FinishedRuns

_MORE_IS_BETTER: Final = {"bit/s": True, "s": False}
"""Whether more is better, by unit: for rates, and for times and delays."""


@dataclass(frozen=True)
class Harm:
    """Harm to one flow.

    Attributes
    ----------
    condition
        Position of the condition with the newcomer.
    alone
        Position of the condition without the newcomer.
    flow
        Name of the flow that is in both conditions.
    harm
        Mean over the seeds of both conditions, as a share.
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
    """Estimate the harm to every flow, in every condition that has a counterpart with fewer flows.

    Two conditions belong together if they differ in one grid key, and the flows of one are a
    subset of the other's: `"flows.newcomer.count" = [0, 1]`. Of several such conditions, the one
    with the fewest flows is used. Runs with the same seed are compared.

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
        When the measure is not a rate, a time or a delay of flows.
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
            harm = replace(harm, incomplete=results.incomplete(index, alone))
            found.append(Harm(index, alone, flow, harm))
    return found


def share_lost(alone: float | None, beside: float | None, more_is_better: bool) -> float | None:
    """Return the share of a performance that is lost; None if it is undefined."""
    if alone is None or beside is None:
        return None
    lost, of = (alone - beside, alone) if more_is_better else (beside - alone, beside)
    return lost / of if of > 0 else None


class Harms:
    """Pairs of conditions with and without a newcomer, and the harm to flows by seed.

    Parameters
    ----------
    results
        The runs.
    """

    def __init__(self, results: FinishedRuns) -> None:
        self._results = results

    @cached_property
    def _sizes(self) -> list[int]:
        """Number of flows of each condition; 0 if no run finished."""
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
        """Conditions by all of their keys but one; a list's conditions differ in that key only."""
        found: dict[tuple[str, frozenset[tuple[str, str]]], list[int]] = {}
        for index, condition in enumerate(self._results.conditions):
            for key in self._keys:
                found.setdefault((key, _without_key(condition, key)), []).append(index)
        return found

    def alone(self, index: int) -> int | None:
        """Return the condition with a subset of this condition's flows; None if there is none.

        A measurement never is: flows that it lacks may have been there all the same.
        """
        if self._results.measured or not self._differ:
            return None
        condition = self._results.conditions[index]
        flows = set(self._results.flow_names(index))
        fewer = [
            other
            for key in self._keys
            for other in self._beside[key, _without_key(condition, key)]
            if 0 < self._sizes[other] < len(flows) and set(self._results.flow_names(other)) < flows
        ]
        return min(fewer, key=lambda other: self._sizes[other], default=None)

    def by_seed(
        self, wanted: Measure, phase: str, flows: Sequence[str], index: int
    ) -> dict[int, list[float | None]]:
        """Return the harm to each of `flows`, for seeds that both conditions ran."""
        alone = self.alone(index)
        before = {} if alone is None else {r.seed: r.run for r in self._results.runs_of(alone)}
        found = {}
        for result in self._results.runs_of(index):
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


def _without_key(condition: Condition, key: str) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in condition.items() if name != key)
