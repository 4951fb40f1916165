"""Values of measures, one per run, with the keys that tell them apart.

What tables, comparisons and figures over a grid take theirs from. A key of the scenario's grid has
its full name or the shortest ending that is its alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError, unknown
from jostle.results import conditions as naming
from jostle.results.cells import Cells, mean_of_present, spread_of, whose
from jostle.results.conditions import Condition
from jostle.results.groups import groups_of_members
from jostle.results.harm import Harms
from jostle.results.measures import Bounds, Measure, measure
from jostle.stats import Estimate, estimate, percentile_estimate

if TYPE_CHECKING:
    from jostle.results.finished import FinishedRuns

OWN_KEYS: Final = ("flow", "group", "link", "controller", "phase")
"""Keys that every scenario has, beside those of its grid."""


@dataclass(frozen=True)
class Sample:
    """A measure of one flow, group, link or run under one condition in one phase.

    Attributes
    ----------
    measure
        What was measured.
    condition
        Position of the condition.
    place
        Key → value: grid keys by their full names, and of `OWN_KEYS` those that apply.
    seeds
        Seed of each run.
    values
        For each run, in the measure's unit; of a group what the measure `group_…` says, or the mean
        over its flows that have a value.
    flows
        For each run the values of the group's flows; one each for anything else.
    group
        Name of the group that a flow is one of, or is.
    bounds
        Smallest and largest value that there can be.
    single
        Whether a group is of one flow.
    """

    measure: Measure
    condition: int
    place: Mapping[str, str]
    seeds: tuple[int, ...]
    values: tuple[float | None, ...]
    flows: tuple[tuple[float | None, ...], ...]
    group: str = ""
    bounds: Bounds = (None, None)
    single: bool = False

    def estimate(self) -> Estimate:
        """Estimate the mean over runs; a percentile of a single flow is one over its runs."""
        if self.single and self.measure.percent is not None:
            return percentile_estimate(self.values, self.measure.percent, self.measure.unit)
        return estimate(self.values, self.measure.unit, bounds=self.bounds)

    @cached_property
    def missing(self) -> int:
        """Flows of a group without a value, of runs in which others of it have one."""
        return sum(run.count(None) for run in self.flows if any(value is not None for value in run))

    @cached_property
    def spread(self) -> tuple[float, float] | None:
        """Smallest and largest flow of a group, each the mean over runs; None for a single flow."""
        return spread_of(self.flows)


def samples(
    results: FinishedRuns,
    wanted: Measure | str,
    phases: Sequence[str] | None = None,
    *,
    each: bool = False,
) -> list[Sample]:
    """Take a measure out of every run.

    Parameters
    ----------
    results
        The runs.
    wanted
        The measure or its name.
    phases
        Names of phases; all of them if absent. Of a measure of the whole run there is one sample,
        whatever the phases.
    each
        Whether every flow of a group stands for itself.

    Raises
    ------
    InputError
        When there is no such measure or phase, or no summary has it.
    """
    found = measure(wanted) if isinstance(wanted, str) else wanted
    take = _of_conditions if found.place == "conditions" else _samples
    return list(take(results, found, chosen_phases(results, [found], phases), each))


def chosen_phases(
    results: FinishedRuns, wanted: Iterable[Measure], phases: Sequence[str] | None
) -> tuple[str, ...]:
    """Names of the phases that samples are taken of: those that are asked for, or all.

    Raises
    ------
    InputError
        When there is no such phase, or no summary has one of the measures.
    """
    for one in wanted:
        if not one.tabled:
            raise InputError(one.elsewhere)
    known = [phase.name for phase in results.phases]
    for name in phases or ():
        if name not in known:
            raise InputError(unknown("phase", name, known))
    return tuple(phases or known)


def _of_conditions(
    results: FinishedRuns, wanted: Measure, phases: Sequence[str], each: bool
) -> Iterator[Sample]:
    """Take harm: of the flows that a condition has alone, to their throughput."""
    harms = Harms(results)
    for index, condition in enumerate(results.conditions):
        alone = harms.alone(index)
        if alone is None:
            continue
        own = {phase.name for phase in results.phases_of(index)}
        spec = results.spec_of(alone)
        of_group = groups_of_members(spec) if each else {}
        for phase in (name for name in phases if name in own):
            for place, members in whose(wanted, spec, each=each):
                found = harms.by_seed(measure("throughput"), phase, members, index)
                flows = tuple(tuple(run) for run in found.values())
                yield Sample(
                    wanted,
                    index,
                    {**condition, **place, "phase": phase},
                    tuple(found),
                    tuple(mean_of_present(run) for run in flows),
                    flows,
                    of_group.get(place["flow"], place["flow"]),
                    wanted.bounds,
                )


def _samples(
    results: FinishedRuns, wanted: Measure, phases: Sequence[str], each: bool
) -> Iterator[Sample]:
    for index, condition in enumerate(results.conditions):
        if not results.of(index):
            continue
        cells = Cells(results, index, phases, each=each)
        for cell in cells.of(wanted):
            flows = cell.flows(wanted)
            yield Sample(
                wanted,
                index,
                {**condition, **cell.place},
                cells.seeds,
                cell.values(wanted, flows),
                flows,
                cell.group,
                wanted.bounds_among(cells.senders),
                cell.single,
            )


def full_key(results: FinishedRuns, key: str) -> str:
    """Find a key of results; see `find_key`."""
    return find_key(results.conditions, key)


def find_key(conditions: Iterable[Condition], key: str, own: Sequence[str] = OWN_KEYS) -> str:
    """Find a key by its full name, or by an ending that is its alone.

    Parameters
    ----------
    conditions
        What the grid's keys are taken from.
    key
        What was written.
    own
        Keys beside those of the grid.

    Raises
    ------
    InputError
        When there is none, or several.
    """
    grid = list(dict.fromkeys(name for condition in conditions for name in condition))
    known = [*grid, *own]
    if key in known:
        return key
    ending = [name for name in grid if name.endswith("." + key)]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise InputError(f"several keys end with `{key}`: {', '.join(ending)}")
    raise InputError(unknown("key", key, [*naming.short_names(grid).values(), *own]))


def key_of(results: FinishedRuns, found: Sequence[Sample], key: str) -> str:
    """Find a key that samples have; `controller` is that of a grid where no flow has it.

    Raises
    ------
    InputError
        When there is no such key, or the samples do not have it.
    """
    name = full_key(results, key)
    if found and not any(name in sample.place for sample in found):
        ending = [one for one in grid_keys(results) if one.endswith("." + key)]
        if len(ending) == 1:
            return ending[0]
        shown = found[0].measure
        raise InputError(f"`{shown.name}` has no {name}: it is of each {shown.scope}")
    return name


def grid_keys(results: FinishedRuns) -> list[str]:
    """Keys of the grid, in its order."""
    return list(dict.fromkeys(key for condition in results.conditions for key in condition))
