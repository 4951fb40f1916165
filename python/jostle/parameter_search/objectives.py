"""Objectives of tuning: measures, utilities from the literature, and constraints."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from jostle.errors import InputError
from jostle.parameter_search.objective_quantity import ObjectiveQuantity, means, parse_quantity

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan

__all__ = ["Constraint", "Direction", "Objective", "parse_constraint", "parse_objective"]

Direction = Literal["maximize", "minimize"]
_UTILITY: Final = re.compile(r"(?P<name>remy|copa)\s*(?:\(\s*(?P<delta>[\d.]+)\s*\))?(?P<rest>.*)")
_WORST: Final = re.compile(r"\s*(worst|mean)\s+(.*)")
_RELATION: Final = re.compile(
    r"\s*(?P<what>.*?)\s*(?P<sign><=|>=)\s*(?P<bound>-?[\d.]+)\s*(?P<unit>\S.*?)?\s*"
)
_LEAST_DELAY_MS: Final = 0.01
"""Smallest queueing delay in a utility, because the logarithm of 0 is infinite."""
_DELTAS: Final = {"remy": 1.0, "copa": 0.5}
"""Default δ: Remy's for its general-purpose tables, and Copa's."""


@dataclass(frozen=True)
class Objective:
    """A quantity to minimise or maximise.

    Attributes
    ----------
    text
        The objective as the user wrote it.
    direction
        `minimize` or `maximize`.
    terms
        One measure; for a utility, throughput and delay.
    delta
        Weight of delay in a utility; None for a measure.
    worst
        Whether the worst condition counts, instead of the mean over conditions.
    """

    text: str
    direction: Direction
    terms: tuple[ObjectiveQuantity, ...]
    delta: float | None
    worst: bool

    @property
    def unit(self) -> str:
        """Unit of tables; empty for utilities."""
        return self.terms[0].measure.display_unit if self.delta is None else ""

    def check(self, plan: RunPlan) -> None:
        """Check that runs will have the objective; see `ObjectiveQuantity.check`."""
        for term in self.terms:
            term.check(plan)

    def per_run(self, results: ResultSet) -> list[tuple[float | None, ...]]:
        """Return the values of each condition's runs; see `ObjectiveQuantity.per_condition`."""
        found = [term.per_condition(results) for term in self.terms]
        if self.delta is None:
            return found[0]
        delta = self.delta
        return [
            tuple(_utility(x, y, delta) for x, y in zip(rates, delays, strict=True))
            for rates, delays in zip(*found, strict=True)
        ]

    def per_condition(self, results: ResultSet) -> list[float | None]:
        """Return the value of each condition, as mean over its runs; None without a value."""
        return means(self.per_run(results))

    def unfinished(self, results: ResultSet) -> int:
        """Return the number of runs whose value is a bound, because a transfer is incomplete."""
        return sum(term.unfinished(results) for term in self.terms)

    def over(self, values: Sequence[float | None]) -> float | None:
        """Summarise conditions by the mean, or the worst; None if none has a value."""
        there = [value for value in values if value is not None]
        if not there:
            return None
        if not self.worst:
            return sum(there) / len(there)
        return min(there) if self.direction == "maximize" else max(there)


@dataclass(frozen=True)
class Constraint:
    """A bound that every condition must satisfy.

    Attributes
    ----------
    text
        The constraint as the user wrote it.
    objective
        The bounded quantity.
    bound
        The bound, in its unit.
    """

    text: str
    objective: Objective
    bound: float

    def excess(self, value: float | None, unknown: int = 0) -> float:
        """Return the distance of a value beyond the bound; at most 0 if the constraint holds.

        It does not hold if runs are `unknown`: without a value, or with an incomplete transfer.
        """
        if value is None:
            return math.inf
        beyond = value - self.bound
        beyond = beyond if self.objective.direction == "minimize" else -beyond
        return math.inf if unknown and beyond <= 0 else beyond


def parse_objective(text: str, direction: Direction) -> Objective:
    """Parse `[worst] MEASURE [of NAME] [in PHASE]`, or a utility in place of the measure.

    `remy(δ)` is log(throughput) − δ · log(RTT) (Winstein and Balakrishnan 2013), `copa(δ)` is
    log(throughput) − δ · log(queueing delay) (Arun and Balakrishnan 2018), both with natural
    logarithms of Mbit/s and ms, for each run.

    Raises
    ------
    InputError
        When the text has another form.
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
    # Errors quote the text of the user, not the text of a term.
    terms = tuple(
        replace(parse_quantity(f"{measure} {utility['rest']}"), text=rest.strip())
        for measure in ("throughput", delay)
    )
    if direction == "minimize":
        raise InputError(f'"{text}": a utility is maximized')
    return Objective(text, direction, terms, delta, worst)


def parse_constraint(text: str) -> Constraint:
    """Parse `OBJECTIVE <= NUMBER [unit]`, which must hold in the worst condition.

    Raises
    ------
    InputError
        When the text has another form, or the unit differs.
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
