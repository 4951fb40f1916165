"""Harm: what flows lose through another one, measured against their being alone.

Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019: with a performance
x alone and y beside the newcomer, harm is (x − y) ÷ x where more is better, and (y − x) ÷ y where
less is. 0: the newcomer takes nothing; 1: it takes all; below 0: the others are better off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError
from jostle.results.finished import OVERALL
from jostle.results.measures import Measure, measure
from jostle.stats import Estimate, Method, estimate

if TYPE_CHECKING:
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
    return [
        Harm(
            index,
            alone,
            flow,
            estimate(
                list(_by_seed(results, wanted, phase, flow, conditions=(alone, index))),
                "1",
                method,
                confidence,
                bounds=(None, 1.0),
            ),
        )
        for index in range(len(results.conditions))
        if (alone := _alone(results, index)) is not None
        for flow in results.flow_names(alone)
    ]


def share_lost(alone: float | None, beside: float | None, more_is_better: bool) -> float | None:
    """Give what of a performance is lost; None where it cannot be said."""
    if alone is None or beside is None:
        return None
    lost, of = (alone - beside, alone) if more_is_better else (beside - alone, beside)
    return lost / of if of > 0 else None


def _alone(results: FinishedRuns, index: int) -> int | None:
    """Find the condition that differs by flows that it does not have; None if there is none."""
    flows = results.flow_names(index)
    fewer = [
        other
        for other in range(len(results.conditions))
        if 0 < len(results.flow_names(other)) < len(flows)
        and set(results.flow_names(other)) < set(flows)
        and _differences(results, index, other) == 1
    ]
    return min(fewer, key=lambda other: len(results.flow_names(other)), default=None)


def _differences(results: FinishedRuns, one: int, other: int) -> int:
    first, second = results.conditions[one], results.conditions[other]
    return sum(first.get(key) != second.get(key) for key in {*first, *second})


def _by_seed(
    results: FinishedRuns, wanted: Measure, phase: str, flow: str, *, conditions: tuple[int, int]
) -> Iterator[float | None]:
    alone, beside = conditions
    before = {one.seed: one.run.summary for one in results.of(alone)}
    for result in results.of(beside):
        if result.seed in before:
            x = wanted.of_summary(before[result.seed], phase, flow)
            y = wanted.of_summary(result.run.summary, phase, flow)
            yield share_lost(x, y, _MORE_IS_BETTER[wanted.unit])
