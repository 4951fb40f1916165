"""A measure of a flow in a phase, as one number per run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from jostle.errors import InputError, name_source, unknown
from jostle.results.compared_phase import OVERALL
from jostle.results.completion_bounds import BOUNDED, completion_times
from jostle.results.measure_samples import MeasureSample, samples
from jostle.results.measures import Measure, measure
from jostle.scenario.parsing.value_words import (
    QUOTED,
    VALUE,
    owner_and_phase,
    quoting_hint,
)
from jostle.stats.mean_estimate import moments

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan

__all__ = ["ObjectiveQuantity", "parse_quantity"]

_FORM: Final = re.compile(rf"\s*{VALUE}\s*")
_EXAMPLE: Final = '"jain in steady" or "share of newcomer in steady"'


@dataclass(frozen=True)
class ObjectiveQuantity:
    """A number of every run, in the unit of tables.

    Attributes
    ----------
    text
        The quantity as the user wrote it.
    measure
        The measure.
    who
        Flow, group or link; empty for measures of a run, or if a run has only one.
    phase
        Name of the phase.
    """

    text: str
    measure: Measure
    who: str
    phase: str

    @property
    def axis(self) -> str:
        """Label of an axis, with the unit."""
        who = f" of {self.who}" if self.who else ""
        unit = f" ({self.measure.display_unit})" if self.measure.display_unit else ""
        return f"{self.measure.heading}{who}{unit}"

    def check(self, plan: RunPlan) -> None:
        """Check that runs will have the quantity, before anything runs.

        Raises
        ------
        InputError
            When there is no such phase or flow, or several flows and none is named.
        """
        with name_source(plan.source):
            self._check(plan)

    def _check(self, plan: RunPlan) -> None:
        spec = plan.runs[0].spec
        phases = [phase["name"] for phase in spec["phases"]]
        if self.phase not in phases:
            hint = quoting_hint(self.who, self.phase, _names(plan, self._key, named=True))
            raise InputError(f'"{self.text}": {unknown("phase", self.phase, phases)}{hint}')
        if self.measure.scope not in ("flow", "group", "link"):
            return
        rows = spec[self._key]
        names = _names(plan, self._key, named=bool(self.who))
        if self.who and self.who not in names:
            what = "link" if self.measure.scope == "link" else "flow"
            raise InputError(f'"{self.text}": {unknown(what, self.who, names)}')
        if not self.who and len(rows) > 1:
            what, within, phase = self.text.partition(" in ")
            example = f"{what.strip()} of {next(iter(names))}{within}{phase}"
            raise InputError(f'"{self.text}": say of which, as in "{example}"')

    @property
    def _key(self) -> Literal["links", "flows"]:
        return "links" if self.measure.scope == "link" else "flows"

    def per_condition(self, results: ResultSet) -> list[tuple[float | None, ...]]:
        """Return the values of each condition's runs in the order of seeds; None without value.

        A completion time of a run in which a transfer was not complete is a lower bound.
        """
        found: list[tuple[float | None, ...]] = [()] * len(results.conditions)
        if not results.results:
            return found
        for sample in samples(results, self.measure, [self.phase]):
            name = sample.place.get(self.measure.scope, "")
            if self.who in ("", name, sample.group):
                factor = self.measure.factor
                bounds = self._bounds(results, sample)
                found[sample.condition] = tuple(
                    None if value is None else value * factor
                    for value in (
                        bounds.get(seed, value)
                        for seed, value in zip(sample.seeds, sample.values, strict=True)
                    )
                )
        return found

    def unfinished(self, results: ResultSet) -> int:
        """Return the number of runs in which a transfer was not complete at the end."""
        if not results.results:
            return 0
        return sum(
            len(self._bounds(results, sample))
            for sample in samples(results, self.measure, [self.phase])
            if self.who in ("", sample.place.get(self.measure.scope, ""), sample.group)
        )

    def _bounds(self, results: ResultSet, sample: MeasureSample) -> dict[int, float]:
        """Return lower bounds of completion times by seed, of runs with an incomplete transfer."""
        if self.measure.name not in BOUNDED:
            return {}
        name = sample.place.get(self.measure.scope, "")
        members = next(
            (
                group.members
                for group in results.flow_groups(sample.condition)
                if name in (group.name, *group.members)
            ),
            (),
        )
        names = (name,) if name in members else members
        found = {
            run.seed: completion_times(run.run, names) for run in results.runs_of(sample.condition)
        }
        return {
            seed: times.of(self.measure)
            for seed, times in found.items()
            if times is not None and times.unfinished
        }


def _names(plan: RunPlan, key: Literal["links", "flows"], *, named: bool) -> dict[str, None]:
    """Return the names of flows and their groups, or of links; of all conditions with `named`."""
    names: dict[str, None] = {}
    # `count` may be 0 in the first condition.
    every = plan.first_run_of_each_condition() if named else plan.runs[:1]
    for row in (row for planned in every for row in planned.spec[key]):
        names |= dict.fromkeys((str(row["name"]), re.sub(r"-\d+$", "", str(row["name"]))))
    return names


def parse_quantity(text: str, *, conditions: bool = False) -> ObjectiveQuantity:
    """Parse `MEASURE [of NAME] [in PHASE]`; with `conditions` also measures of two conditions.

    Raises
    ------
    InputError
        When the text has another form, or there is no such measure.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        quotes = f"; {QUOTED}" if " in " in text else ""
        raise InputError(f'"{text}": write it as {_EXAMPLE}{quotes}')
    wanted = measure(match["measure"])
    if not wanted.tabled or (wanted.place == "conditions" and not conditions):
        raise InputError(wanted.elsewhere)
    who, phase = owner_and_phase(match)
    return ObjectiveQuantity(text, wanted, who, phase or OVERALL)


def means(values: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Return the mean of each condition's runs that have a value; None if none has."""
    found: list[float | None] = []
    for runs in values:
        there = [value for value in runs if value is not None]
        found.append(moments(there)[0] if there else None)
    return found
