"""Plans: all runs of a scenario, in order, each with its condition and seed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from jostle.run_spec import RunSpec
from jostle.scenario.marking import unmarked
from jostle.scenario.resolving.resolve import Template

__all__ = ["Condition", "Plan", "PlannedRun"]


@dataclass(frozen=True, eq=False)
class Condition(Mapping[str, str]):
    """One combination of a grid's values: an ordered mapping of key to label.

    Parameters
    ----------
    index
        Position among the conditions of the scenario.
    labels
        By key of the grid, in its order; empty without a grid.
    """

    index: int
    labels: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", MappingProxyType(dict(self.labels)))

    def __getitem__(self, key: str) -> str:
        return self.labels[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __hash__(self) -> int:
        return hash((self.index, tuple(self.labels.items())))

    def __reduce__(self) -> tuple[type[Condition], tuple[int, dict[str, str]]]:
        return Condition, (self.index, dict(self.labels))

    def __str__(self) -> str:
        return ", ".join(f"{key} = {label}" for key, label in self.labels.items())


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan.

    Parameters
    ----------
    condition
        Index of its condition.
    seed
        Seed of all its random numbers.
    spec
        The run's specification in its JSON form (see `jostle._core.run_spec_schema`). Runs share
        parts of it: treat it as read-only.
    """

    condition: int
    seed: int
    spec: RunSpec


@dataclass(frozen=True)
class Plan:
    """All runs of a scenario.

    Parameters
    ----------
    title
        The scenario's.
    conditions
        In the order of the grid.
    runs
        Condition by condition, each in the order of seeds.
    """

    title: str
    conditions: tuple[Condition, ...]
    runs: tuple[PlannedRun, ...]

    @classmethod
    def of(
        cls,
        title: str,
        templates: Sequence[tuple[Condition, Template]],
        repeats: int,
        seed: int,
    ) -> Plan:
        """Plan `repeats` runs of every template, with seeds from `seed` on.

        Raises
        ------
        ValueError
            If `repeats` is not positive or a seed is outside 0 … 2⁶³ - 1.
        """
        if repeats < 1:
            raise ValueError(f"repeats: {repeats} is out of range — at least 1")
        if seed < 0 or seed + repeats > 2**63:
            raise ValueError(f"seed: {seed} is out of range — from 0 to 2^63 - 1")
        runs = [
            PlannedRun(condition.index, number, template.run(number, title))
            for condition, template in templates
            for number in range(seed, seed + repeats)
        ]
        return cls(title, tuple(condition for condition, _ in templates), tuple(runs))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the scenario's author may not have meant, each once for however many runs."""
        first = {run.condition: run for run in reversed(self.runs)}
        told = (note for index in sorted(first) for note in unmarked(first[index].spec))
        return tuple(dict.fromkeys(told))

    def without(self, conditions: Collection[int]) -> Plan:
        """Return the plan without some conditions, given by position; those left move up."""
        if not conditions:
            return self
        kept = [index for index in range(len(self.conditions)) if index not in conditions]
        place = {index: position for position, index in enumerate(kept)}
        return Plan(
            self.title,
            tuple(Condition(place[index], self.conditions[index]) for index in kept),
            tuple(
                replace(planned, condition=place[planned.condition])
                for planned in self.runs
                if planned.condition in place
            ),
        )
