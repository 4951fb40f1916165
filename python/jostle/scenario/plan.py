"""Plans: the runs of a scenario in order, each with its condition and seed."""

from __future__ import annotations

import bisect
import itertools
import numbers
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, overload

from jostle.errors import InputError
from jostle.run_spec import RunSpec
from jostle.scenario.probable_mistakes import probable_mistakes
from jostle.scenario.resolve.run_spec_builder import RunSpecTemplate
from jostle.scenario.stopping_rule import Until

__all__ = [
    "MOST_RUNS",
    "Condition",
    "PlanError",
    "PlannedRun",
    "RunPlan",
    "TemplateRuns",
    "check_integer",
]

MOST_RUNS: Final = 1_000_000
"""Maximum number of runs of a plan. A million stored runs with their measures take 0.7 GB."""


class PlanError(InputError, ValueError):
    """A number of runs or a seed is invalid."""


def check_integer(name: str, number: object) -> None:
    """Check that an argument is a whole number.

    Raises
    ------
    PlanError
        If it is not.
    """
    if not isinstance(number, numbers.Integral) or isinstance(number, bool):
        raise PlanError(f"{name}: {number!r} is not a whole number")


@dataclass(frozen=True, eq=False)
class Condition(Mapping[str, str]):
    """One combination of a grid's values: an ordered mapping from key to label.

    Parameters
    ----------
    index
        Position in the scenario's list of conditions.
    labels
        Labels by grid key, in the grid's order; empty without a grid.
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
        Index of the run's condition.
    seed
        Seed of all random numbers of the run.
    spec
        Run specification in its JSON form (see `jostle._core.run_spec_schema`). Runs share parts of
        it: treat it as read-only.
    accepted
        Whether the installed engine has found no problem in the specification.
    """

    condition: int
    seed: int
    spec: RunSpec
    accepted: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True)
class TemplateRuns(Sequence[PlannedRun]):
    """The runs of some conditions, created on access.

    Parameters
    ----------
    title
        Title of the scenario.
    templates
        Run templates with the position of their condition.
    repeats
        Number of runs of each template.
    seed
        Seed of the first run of each template.
    """

    title: str
    templates: tuple[tuple[int, RunSpecTemplate], ...]
    repeats: tuple[int, ...]
    seed: int

    @cached_property
    def ends(self) -> list[int]:
        """Position after the last run of each template."""
        return list(itertools.accumulate(self.repeats))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    @overload
    def __getitem__(self, at: int) -> PlannedRun: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[PlannedRun, ...]: ...

    def __getitem__(self, at: int | slice) -> PlannedRun | tuple[PlannedRun, ...]:
        if isinstance(at, slice):
            return tuple(self[index] for index in range(len(self))[at])
        if at not in self._last:
            condition, template, seed = self.template_at(at)
            spec = template.run(seed, self.title)
            self._last.clear()
            self._last[at] = PlannedRun(condition, seed, spec, template.accepted_for_all_seeds)
        return self._last[at]

    @cached_property
    def _last(self) -> dict[int, PlannedRun]:
        """The run that was made last: many flows with a start jitter take some time."""
        return {}

    def template_at(self, at: int) -> tuple[int, RunSpecTemplate, int]:
        """Return condition, template and seed of a run."""
        index = range(len(self))[at]
        position = bisect.bisect_right(self.ends, index)
        number = index - self.ends[position] + self.repeats[position]
        condition, template = self.templates[position]
        return condition, template, self.seed + number


@dataclass(frozen=True)
class RunPlan:
    """All runs of a scenario.

    Parameters
    ----------
    title
        Title of the scenario.
    conditions
        Conditions in the order of the grid.
    runs
        Runs by condition, then by seed. They are created on access.
    repeat_until
        Stopping rule for repeats; None if the number of runs is fixed.
    max_repeats
        Maximum number of runs per condition with `repeat_until`.
    source
        Path of the scenario's file; empty if the plan was not made from a scenario.
    """

    title: str
    conditions: tuple[Condition, ...]
    runs: Sequence[PlannedRun]
    repeat_until: Until | None = None
    max_repeats: int = 1
    source: str = ""

    @classmethod
    def of(
        cls,
        title: str,
        templates: Sequence[tuple[Condition, RunSpecTemplate]],
        repeats: int,
        seed: int,
    ) -> RunPlan:
        """Plan `repeats` runs of every template, with seeds from `seed` on.

        Raises
        ------
        PlanError
            If `repeats` is not a positive whole number, a seed is outside 0 … 2⁶³ - 1, or there
            are more than `MOST_RUNS` runs.
        """
        check_integer("repeats", repeats)
        check_integer("seed", seed)
        if repeats < 1:
            raise PlanError(f"repeats: {repeats} is out of range — at least 1")
        if repeats * len(templates) > MOST_RUNS:
            most = MOST_RUNS // max(1, len(templates))
            conditions = f" of {len(templates)} conditions" if len(templates) > 1 else ""
            raise PlanError(f"repeats: {repeats}{conditions} are too many runs — at most {most}")
        if not 0 <= seed < 2**63:
            raise PlanError(f"seed: {seed} is out of range — from 0 to 2^63 - 1")
        if seed + repeats > 2**63:
            raise PlanError(
                f"seed: {seed} and repeats: {repeats} make seeds above 2^63 - 1 — lower one of them"
            )
        made = tuple((condition.index, template) for condition, template in templates)
        runs = TemplateRuns(title, made, (repeats,) * len(made), seed)
        return cls(title, tuple(condition for condition, _ in templates), runs)

    def first_run_of_each_condition(self) -> Iterator[PlannedRun]:
        """Return the first run of each condition."""
        if isinstance(self.runs, TemplateRuns):
            counts = self.runs.repeats
            firsts = (end - n for end, n in zip(self.runs.ends, counts, strict=True))
            return (self.runs[at] for at in firsts)
        first = {planned.condition: planned for planned in reversed(self.runs)}
        return (first[condition] for condition in sorted(first))

    def repeats_of(self, condition: int) -> int:
        """Return the number of runs of the condition at a position."""
        if isinstance(self.runs, TemplateRuns):
            return self.runs.repeats[condition]
        return sum(planned.condition == condition for planned in self.runs)

    def repeated(self, repeats: Mapping[int, int]) -> RunPlan:
        """Return the plan with other numbers of runs for some conditions, by position.

        Raises
        ------
        ValueError
            If there are more than `MOST_RUNS` runs, or the plan's runs were not created from
            templates.
        """
        if not isinstance(self.runs, TemplateRuns):
            raise ValueError("the runs of this plan are all there are")
        counts = tuple(repeats.get(at, n) for at, n in enumerate(self.runs.repeats))
        if sum(counts) > MOST_RUNS:
            raise ValueError(f"repeat_until: {sum(counts)} are too many runs — at most {MOST_RUNS}")
        return replace(self, runs=replace(self.runs, repeats=counts))

    def spec_of(self, condition: int, seed: int) -> RunSpec:
        """Return the specification of a condition, by position, for a seed.

        Raises
        ------
        ValueError
            If the plan's runs were not created from templates.
        """
        if not isinstance(self.runs, TemplateRuns):
            raise ValueError("the runs of this plan are all there are")
        return self.runs.templates[condition][1].run(seed, self.runs.title)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about probable mistakes in the scenario, each listed once."""
        told = (
            note
            for planned in self.first_run_of_each_condition()
            for note in probable_mistakes(planned.spec)
        )
        return tuple(dict.fromkeys(told))

    def without(self, conditions: Collection[int]) -> RunPlan:
        """Return the plan without the conditions at some positions, and renumber the rest."""
        if not conditions:
            return self
        kept = [index for index in range(len(self.conditions)) if index not in conditions]
        place = {index: position for position, index in enumerate(kept)}
        left = tuple(Condition(place[index], self.conditions[index]) for index in kept)
        runs: Sequence[PlannedRun]
        if isinstance(self.runs, TemplateRuns):
            templates = ((place[at], one) for at, one in self.runs.templates if at in place)
            counts = zip(self.runs.templates, self.runs.repeats, strict=True)
            repeats = tuple(n for (at, _), n in counts if at in place)
            runs = replace(self.runs, templates=tuple(templates), repeats=repeats)
        else:
            runs = [
                replace(planned, condition=place[planned.condition])
                for planned in self.runs
                if planned.condition in place
            ]
        return replace(self, conditions=left, runs=runs)
