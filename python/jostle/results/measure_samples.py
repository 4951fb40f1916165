"""Values of measures, one per run, with keys that identify flow, condition and phase.

Tables, comparisons and figures over a grid are made from these samples. A key of the scenario's
grid is given by its full name or by its shortest unique ending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError, unknown
from jostle.results import condition_names
from jostle.results.condition_names import Condition
from jostle.results.flow_groups import group_name_by_flow
from jostle.results.harm import Harms
from jostle.results.measures import Bounds, Measure, measure, unknown_measure
from jostle.results.summary_values import cells_of, mean_of_present, measure_owners, spread_of
from jostle.results.unfinished import FinishCount, finish_counts
from jostle.scenario.parsing.key_endings import ambiguous, matching_keys
from jostle.stats import Estimate, estimate, percentile_estimate

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

OWN_KEYS: Final = ("flow", "group", "link", "controller", "phase")
"""Keys that every scenario has in addition to the keys of its grid."""


@dataclass(frozen=True)
class MeasureSample:
    """A measure of one flow, group, link or run under one condition in one phase.

    Attributes
    ----------
    measure
        The measure.
    condition
        Position of the condition.
    place
        Key → value: full names of grid keys, and the applicable ones of `OWN_KEYS`.
    seeds
        Seed of each run.
    values
        Value of each run, in the measure's unit. For a group of flows: the value of the measure
        `group_…`, or else the mean over the flows that have a value.
    flows
        Values of the group's flows for each run; otherwise one value per run.
    group
        Name of the group, or of the group to which a flow belongs.
    bounds
        Smallest and largest possible value.
    single
        Whether a group consists of one flow.
    incomplete
        See `Estimate`.
    finish
        How many of the runs, flows or transfers did not finish; None if the measure does not depend
        on that, or none should end by itself.
    """

    measure: Measure
    condition: int
    place: Mapping[str, str]
    seeds: tuple[int, ...]
    values: Sequence[float | None]
    flows: Sequence[tuple[float | None, ...]]
    group: str = ""
    bounds: Bounds = (None, None)
    single: bool = False
    incomplete: str = ""
    finish: FinishCount | None = None

    def estimate(self) -> Estimate:
        """Estimate the mean over runs, or a single flow's percentile over runs."""
        if self.single and self.measure.percent is not None:
            found = percentile_estimate(self.values, self.measure.percent, self.measure.unit)
            return replace(found, incomplete=self.incomplete)
        return self._mean

    def mean(self) -> Estimate:
        """Estimate the mean over runs."""
        return self._mean

    @cached_property
    def _mean(self) -> Estimate:
        found = estimate(self.values, self.measure.unit, bounds=self.bounds)
        return replace(found, incomplete=self.incomplete) if self.incomplete else found

    @cached_property
    def missing(self) -> int:
        """Number of a group's flows without a value, in runs in which other flows have one."""
        if not self.is_of_several:
            return 0
        return sum(run.count(None) for run in self.flows if any(value is not None for value in run))

    @cached_property
    def spread(self) -> tuple[float, float] | None:
        """Smallest and largest flow of a group, as means over runs; None for a single flow."""
        return spread_of(self.flows) if self.is_of_several else None

    @property
    def unfinished(self) -> str:
        """How many runs or flows lack a value because they did not finish; empty if none does.

        Some transfers of a flow with arrivals are never over at the end of a run: they do not
        count.
        """
        finish = self.finish
        if finish is None or not finish.unfinished or finish.what == "transfer":
            return ""
        if self.measure.percent is not None and None not in self.values:
            # A percentile counts unfinished flows as longer than all others.
            return ""
        return str(finish)

    @property
    def is_of_several(self) -> bool:
        """Whether it is of several flows."""
        return bool(self.flows) and len(self.flows[0]) > 1


def samples(
    results: FinishedRuns,
    wanted: Measure | str,
    phases: Sequence[str] | None = None,
    *,
    each: bool = False,
) -> list[MeasureSample]:
    """Return the samples of a measure.

    Parameters
    ----------
    results
        The runs.
    wanted
        The measure or its name.
    phases
        Names of phases; all phases if absent. A measure of the complete run has one sample,
        independent of `phases`.
    each
        Whether each flow of a group has its own sample.

    Raises
    ------
    InputError
        When there is no such measure or phase, or no summary contains the measure.
    """
    found = measure(wanted) if isinstance(wanted, str) else wanted
    take = _of_conditions if found.place == "conditions" else _samples
    return list(take(results, found, chosen_phases(results, [found], phases), each))


def chosen_phases(
    results: FinishedRuns, wanted: Iterable[Measure], phases: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the names of the phases to sample: the requested ones, or all.

    Raises
    ------
    InputError
        When there is no such phase, or no summary contains one of the measures.
    """
    for one in wanted:
        if not one.tabled:
            raise InputError(one.elsewhere)
    known = [phase.name for phase in results.phases]
    for name in (phases or ()) if results.results else ():
        if name not in known:
            raise InputError(unknown("phase", name, known))
    return tuple(phases or known)


def _of_conditions(
    results: FinishedRuns, wanted: Measure, phases: Sequence[str], each: bool
) -> Iterator[MeasureSample]:
    """Yield samples of harm, from the throughput of flows that a condition has without newcomer."""
    harms = Harms(results)
    for index, condition in enumerate(results.conditions):
        alone = harms.alone(index)
        if alone is None:
            continue
        own = {phase.name for phase in results.phases_of(index)}
        spec = results.spec_of(alone)
        of_group = group_name_by_flow(spec) if each else {}
        for phase in (name for name in phases if name in own):
            for place, members in measure_owners(wanted, spec, each=each):
                found = harms.by_seed(measure("throughput"), phase, members, index)
                flows = tuple(tuple(run) for run in found.values())
                yield MeasureSample(
                    wanted,
                    index,
                    {**condition, **place, "phase": phase},
                    tuple(found),
                    tuple(mean_of_present(run) for run in flows),
                    flows,
                    of_group.get(place["flow"], place["flow"]),
                    wanted.bounds,
                    incomplete=results.incomplete(index, alone),
                )


def _samples(
    results: FinishedRuns, wanted: Measure, phases: Sequence[str], each: bool
) -> Iterator[MeasureSample]:
    for index, condition in enumerate(results.conditions):
        if not results.runs_of(index):
            continue
        cells = cells_of(results, index, phases, each=each)
        incomplete = results.incomplete(index)
        finish = finish_counts(cells) if wanted.is_of_finished else {}
        for entity in cells.of(wanted):
            flows = cells.flows(entity, wanted)
            yield MeasureSample(
                wanted,
                index,
                {**condition, **entity.place},
                cells.seeds,
                cells.values(entity, wanted, flows),
                flows,
                entity.group,
                wanted.bounds_among(cells.senders),
                entity.single,
                incomplete,
                finish.get(entity.place.get(wanted.scope, "")),
            )


def full_key(results: FinishedRuns, key: str) -> str:
    """Return the full name of a key; see `find_key`."""
    return find_key(results.conditions, key)


def find_key(conditions: Iterable[Condition], key: str, own: Sequence[str] = OWN_KEYS) -> str:
    """Return the full name of a key, given the full name or a unique ending.

    Parameters
    ----------
    conditions
        Conditions, which contain the keys of the grid.
    key
        Full name or ending.
    own
        Keys that are accepted in addition to grid keys.

    Raises
    ------
    InputError
        When no key matches, or several do.
    """
    grid = list(dict.fromkeys(name for condition in conditions for name in condition))
    known = [*grid, *own]
    matches = matching_keys(key, known)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(ambiguous(key, matches))
    from jostle.scenario.parsing.renamed_keys import MEASURES

    if key in MEASURES:
        raise InputError(unknown_measure(key))
    # The scenario may have the key, with one value.
    what = "grid key" if "." in key else "key"
    raise InputError(unknown(what, key, [*condition_names.short_names(grid).values(), *own]))


def key_of(results: FinishedRuns, found: Sequence[MeasureSample], key: str) -> str:
    """Return the full name of a key of samples; `controller` may be a grid key if no flow has it.

    Raises
    ------
    InputError
        When there is no such key, or the samples do not have it.
    """
    name = full_key(results, key)
    if found and not any(name in sample.place for sample in found):
        ending = matching_keys(key, grid_keys(results))
        if len(ending) == 1:
            return ending[0]
        shown = found[0].measure
        raise InputError(f"`{shown.name}` has no {name}: it is of each {shown.scope}")
    return name


def grid_keys(results: FinishedRuns) -> list[str]:
    """Return the keys of the grid, in its order."""
    return list(results.grid)
