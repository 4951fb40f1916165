"""What is tuned for: measures and utilities of the literature, over all conditions; constraints."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from jostle.errors import InputError
from jostle.search.quantity import Quantity, means, parse_quantity

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import Plan

__all__ = ["Constraint", "Direction", "Objective", "parse_constraint", "parse_objective"]

Direction = Literal["maximize", "minimize"]
_UTILITY: Final = re.compile(r"(?P<name>remy|copa)\s*(?:\(\s*(?P<delta>[\d.]+)\s*\))?(?P<rest>.*)")
_WORST: Final = re.compile(r"\s*(worst|mean)\s+(.*)")
_RELATION: Final = re.compile(
    r"\s*(?P<what>.*?)\s*(?P<sign><=|>=)\s*(?P<bound>-?[\d.]+)\s*(?P<unit>\S.*?)?\s*"
)
_LEAST_DELAY_MS: Final = 0.01
"""Queueing delay that counts as none: its logarithm would have no end."""
_DELTAS: Final = {"remy": 1.0, "copa": 0.5}
"""δ unless one is given: Remy's of its general purpose tables, and Copa's default."""


@dataclass(frozen=True)
class Objective:
    """What is to be as large or as small as can be.

    Attributes
    ----------
    text
        As it was written.
    direction
        Which of both.
    terms
        What it is made of: one measure; of a utility throughput and delay.
    delta
        Weight of delay in a utility; None for a measure.
    worst
        Whether the worst condition counts, instead of the mean over conditions.
    """

    text: str
    direction: Direction
    terms: tuple[Quantity, ...]
    delta: float | None
    worst: bool

    @property
    def unit(self) -> str:
        """Unit that people read; empty for utilities."""
        return self.terms[0].measure.reads if self.delta is None else ""

    def check(self, plan: Plan) -> None:
        """See that runs will have it; see `Quantity.check`."""
        for term in self.terms:
            term.check(plan)

    def per_condition(self, results: ResultSet) -> list[float | None]:
        """Value of each condition, the mean over its runs; None where it has none."""
        found = [term.per_condition(results) for term in self.terms]
        if self.delta is None:
            return means(found[0])
        delta = self.delta
        return means(
            [
                [_utility(x, y, delta) for x, y in zip(rates, delays, strict=True)]
                for rates, delays in zip(*found, strict=True)
            ]
        )

    def over(self, values: Sequence[float | None]) -> float | None:
        """Sum conditions up: the mean, or the worst; None if none has a value."""
        there = [value for value in values if value is not None]
        if not there:
            return None
        if not self.worst:
            return sum(there) / len(there)
        return min(there) if self.direction == "maximize" else max(there)


@dataclass(frozen=True)
class Constraint:
    """What has to hold in every condition.

    Attributes
    ----------
    text
        As it was written.
    objective
        What is bounded.
    bound
        How far it may go, in its unit.
    """

    text: str
    objective: Objective
    bound: float

    def excess(self, value: float | None) -> float:
        """Say how far a value lies beyond the bound; not above 0 if it holds."""
        if value is None:
            return math.inf
        beyond = value - self.bound
        return beyond if self.objective.direction == "minimize" else -beyond


def parse_objective(text: str, direction: Direction) -> Objective:
    """Read `[worst] MEASURE [of NAME] [in PHASE]`, or a utility in place of the measure.

    `remy(δ)` is log(throughput) − δ · log(RTT) (Winstein and Balakrishnan 2013), `copa(δ)`
    log(throughput) − δ · log(queueing delay) (Arun and Balakrishnan 2018), both with natural
    logarithms of Mbit/s and ms, of each run.

    Raises
    ------
    InputError
        When it is something else.
    """
    match = _WORST.fullmatch(text)
    worst = match is not None and match[1] == "worst"
    rest = match[2] if match else text
    utility = _UTILITY.fullmatch(rest.strip())
    if utility is None:
        quantity = parse_quantity(rest, conditions=True)
        return Objective(text, direction, (quantity,), None, worst)
    name = utility["name"]
    delta = float(utility["delta"]) if utility["delta"] else _DELTAS[name]
    delay = "rtt" if name == "remy" else "path_queueing_delay"
    terms = tuple(
        parse_quantity(f"{measure} {utility['rest']}") for measure in ("throughput", delay)
    )
    if direction == "minimize":
        raise InputError(f'"{text}": a utility is maximized')
    return Objective(text, direction, terms, delta, worst)


def parse_constraint(text: str) -> Constraint:
    """Read `OBJECTIVE <= NUMBER [unit]`, which has to hold in the worst condition.

    Raises
    ------
    InputError
        When it is something else, or the unit is another one.
    """
    match = _RELATION.fullmatch(text)
    if match is None:
        raise InputError(f'"{text}": write it as "harm of cubic <= 20 %"')
    direction: Direction = "minimize" if match["sign"] == "<=" else "maximize"
    mean = match["what"].lstrip().startswith("mean ")
    objective = parse_objective(match["what"] if mean else f"worst {match['what']}", direction)
    if match["unit"] not in (None, objective.unit):
        unit = objective.unit or "no unit"
        raise InputError(f'"{text}": that is in {unit}, not in {match["unit"]}')
    return Constraint(text, objective, float(match["bound"]))


def _utility(throughput: float | None, delay_ms: float | None, delta: float) -> float | None:
    if throughput is None or delay_ms is None or throughput <= 0.0:
        return None
    return math.log(throughput) - delta * math.log(max(delay_ms, _LEAST_DELAY_MS))
