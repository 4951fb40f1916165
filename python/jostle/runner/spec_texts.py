"""Specifications of many runs as canonical JSON; runs of a condition share most of the text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends.base import canonical_json, hashed_around, named
from jostle.scenario.plan import TemplateRuns

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.scenario import RunPlan
    from jostle.scenario.resolve.run_spec_builder import RunSpecTemplate

__all__ = ["PlanTexts", "SingleSpec", "SpecTexts", "SpecsOfSeeds"]

_MARK = "\ue000"
"""Placeholder of a value that depends on the seed, while a template is encoded."""


class SpecsOfSeeds(Protocol):
    """Specifications that differ in what depends on the seed."""

    @property
    def like(self) -> Spec:
        """One of them, perhaps with another seed: all have its links, flows and programs."""

    def spec(self, seed: int) -> Spec:
        """Return the specification for a seed."""

    def text(self, seed: int) -> str:
        """Return the specification for a seed as canonical JSON."""

    def names(self, seeds: Sequence[int], backend: str, version: str) -> Iterator[str]:
        """Yield the names of runs; see `backends.run_id`."""


@dataclass(frozen=True)
class SingleSpec:
    """A specification without a template, for the seed that it contains; see `SpecsOfSeeds`."""

    like: Spec

    def spec(self, seed: int) -> Spec:
        """Return the specification."""
        del seed
        return self.like

    def text(self, seed: int) -> str:
        """Return the specification as canonical JSON."""
        return canonical_json(self.spec(seed))

    def names(self, seeds: Sequence[int], backend: str, version: str) -> Iterator[str]:
        """Yield the name of the run for every seed."""
        return (named(self.text(seed), backend, version) for seed in seeds)


@dataclass(frozen=True)
class SpecTexts:
    """The specifications of a template; see `SpecsOfSeeds`.

    Parameters
    ----------
    template
        The template.
    title
        Title of the scenario.
    """

    template: RunSpecTemplate
    title: str

    @property
    def like(self) -> Spec:
        """The specification with the seed 0."""
        return self.template.spec

    def spec(self, seed: int) -> Spec:
        """Return the specification for a seed."""
        return self.template.run(seed, self.title)

    def text(self, seed: int) -> str:
        """Return the specification for a seed as canonical JSON."""
        if len(self._pieces) == 1:
            return canonical_json(self.spec(seed))
        from jostle import _core

        return _core.run_text(self._pieces, self._drawn, seed)

    def names(self, seeds: Sequence[int], backend: str, version: str) -> Iterator[str]:
        """Yield the names of runs; the text that their specifications share is hashed once."""
        if len(self._pieces) == 1:
            return (named(self.text(seed), backend, version) for seed in seeds)
        from jostle import _core

        around = hashed_around(backend, version)
        return iter(_core.run_names(self._pieces, self._drawn, around, seeds))

    @property
    def _drawn(self) -> list[tuple[int, str, int]]:
        """The flows whose starts depend on the seed; see `RunSpecTemplate.starts`."""
        return self.template.starts if self.template.start_jitter_ns else []

    @cached_property
    def _pieces(self) -> list[str]:
        """The text before, between and after the values that depend on the seed.

        Nothing but an empty text if values of another kind depend on it, or the mark is in a name.
        """
        template = self.template
        if template.slotted:
            return [""]
        marked: dict[str, Any] = {**template.run(0, self.title), "seed": _MARK}
        if template.start_jitter_ns:
            marked["flows"] = [{**flow, "start_ns": _MARK} for flow in marked["flows"]]
        pieces = canonical_json(marked).split(f'"{_MARK}"')
        values = 1 + len(template.spec["flows"]) * bool(template.start_jitter_ns)
        return pieces if len(pieces) == 1 + values else [""]


class PlanTexts:
    """The specifications of a plan's runs by position.

    Parameters
    ----------
    plan
        The plan.
    """

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._last: tuple[int, SpecTexts] | None = None

    def at(self, position: int) -> tuple[SpecsOfSeeds, int]:
        """Return the specifications to which a run belongs, and its seed."""
        runs = self._plan.runs
        if not isinstance(runs, TemplateRuns):
            return SingleSpec(runs[position].spec), runs[position].seed
        condition, template, seed = runs.template_at(position)
        # Neighbours in a plan are mostly of one condition; a plan may have a million conditions.
        if self._last is None or self._last[0] != condition:
            self._last = condition, SpecTexts(template, runs.title)
        return self._last[1], seed

    def conditions(self) -> Iterator[tuple[int, SpecsOfSeeds, Sequence[int]]]:
        """Yield condition, specifications and seeds of all runs, in the order of the plan."""
        runs = self._plan.runs
        if not isinstance(runs, TemplateRuns):
            for run in runs:
                yield run.condition, SingleSpec(run.spec), [run.seed]
            return
        begin = 0
        # Conditions share the numbers, of which a million takes 32 MB.
        known: dict[int, Sequence[int]] = {}
        for (condition, _), end in zip(runs.templates, runs.ends, strict=True):
            if end > begin:
                specs, seed = self.at(begin)
                seeds = known.setdefault(end - begin, tuple(range(seed, seed + end - begin)))
                yield condition, specs, seeds
            begin = end
