"""Values of the measures of a condition: from summaries, or for many runs from columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from jostle.results.flow_groups import flow_groups, group_name_by_flow
from jostle.results.measure_columns import columns_of
from jostle.results.measures import Measure, measures
from jostle.stats.optional_floats import OptionalFloats

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results.finished_runs import FinishedRuns
    from jostle.results.measure_columns import MeasureColumns
    from jostle.run_spec import FlowSpec
    from jostle.stats.descriptive import Floats

Flows = Sequence["tuple[float | None, ...]"]
"""Value of each flow, for each run."""
Whom = tuple[dict[str, str], tuple[str, ...]]
"""Keys and values of an entity, and the names of the flows whose mean is its value."""


_MOST_KEPT: Final = 100
"""Number of runs of a condition whose values are kept for the next measure."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A flow, group, link or run in one phase, or over the complete run.

    Attributes
    ----------
    place
        Key → value: the applicable ones of `OWN_KEYS`.
    phase
        The phase; the first one for measures of the complete run.
    names
        Names of the flows, or of the link or group.
    pool
        For several flows, the name of the group of the engine; empty if there is none.
    group
        Name of the group, or of the group to which a flow belongs.
    single
        Whether a group consists of one flow.
    """

    place: Mapping[str, str]
    phase: str
    names: tuple[str, ...]
    pool: str
    group: str
    single: bool


class Cells(ABC):
    """Values of a condition, entity by entity.

    Parameters
    ----------
    results
        The runs.
    condition
        Position of the condition; at least one of its runs finished.
    phases
        Names of phases.
    each
        Whether each flow of an entry with `count` has its own value.
    """

    def __init__(
        self, results: FinishedRuns, condition: int, phases: Sequence[str], *, each: bool
    ) -> None:
        self._runs = results.runs_of(condition)
        self.seeds = results.seeds_of(condition)
        self._spec = results.spec_of(condition)
        own = {phase.name for phase in results.phases_of(condition)}
        self._first = phases[:1]
        self._phases = [name for name in phases if name in own]
        self._each = each
        self._of_group = group_name_by_flow(self._spec) if each else {}
        self._found: dict[tuple[str, ...], list[Entity]] = {}
        self._whose: dict[tuple[str, bool], list[Whom]] = {}
        self._sizes = _sizes_of(self._spec)
        self._many = {_group_of(it) for it in self._spec["flows"] if it.get("arrivals") is not None}
        self.has_arrivals = bool(self._many)
        # Pings do not compete for the shares of a link.
        self.senders = sum(flow["source"]["kind"] != "ping" for flow in self._spec["flows"])

    @abstractmethod
    def flows(self, entity: Entity, wanted: Measure) -> Flows:
        """Return the values of a measure, of each flow of each run."""

    @abstractmethod
    def pooled(self, entity: Entity, wanted: Measure) -> Sequence[float | None] | None:
        """Return the values of the group's measure per run; None if there is no such measure."""

    def total(self, entity: Entity, wanted: Measure) -> tuple[float, int]:
        """Return the sum of a measure over all flows of all runs, and how many have a value."""
        values = [value for run in self.flows(entity, wanted) for value in run if value is not None]
        return float(sum(values)), len(values)

    def values(self, entity: Entity, wanted: Measure, flows: Flows) -> Sequence[float | None]:
        """Return the values of a measure per run: of the group, or the mean over its flows."""
        pooled = self.pooled(entity, wanted)
        return tuple(mean_of_present(run) for run in flows) if pooled is None else pooled

    @abstractmethod
    def _has_group(self, name: str) -> bool:
        """Return whether the runs have measures of a group."""

    def of(self, wanted: Measure) -> list[Entity]:
        """Return the entities that have a value of the measure, phase by phase."""
        kind = kind_of(wanted)
        if kind not in self._found:
            self._found[kind] = list(self._entities(wanted))
        return self._found[kind]

    def _entities(self, wanted: Measure) -> Iterator[Entity]:
        whole = wanted.place in ("flow", "group")
        everybody = self._everybody(wanted)
        # A measure of the complete run belongs to no phase; the first phase represents all.
        for phase in self._first if whole else self._phases:
            for place, members in everybody:
                name = place.get("flow", "")
                yield Entity(
                    place if whole else {**place, "phase": phase},
                    phase,
                    members,
                    name if len(members) > 1 and self._has_group(name) else "",
                    self._of_group.get(name, name),
                    wanted.scope == "group" and self._is_single(place["group"]),
                )

    def _everybody(self, wanted: Measure) -> list[Whom]:
        kind = (wanted.scope, wanted.percent is not None)
        if kind not in self._whose:
            self._whose[kind] = list(measure_owners(wanted, self._spec, each=self._each))
        return self._whose[kind]

    def _is_single(self, group: str) -> bool:
        """Return whether a group is one connection: one flow, without `arrivals`."""
        return self._sizes.get(group, 0) <= 1 and group not in self._many


class SummaryCells(Cells):
    """Values of a condition from the summaries of its runs; see `Cells`."""

    def __init__(
        self, results: FinishedRuns, condition: int, phases: Sequence[str], *, each: bool
    ) -> None:
        super().__init__(results, condition, phases, each=each)
        self._summaries = [_by_name(result.run.summary) for result in self._runs]
        self._entries: dict[int, list[Mapping[str, Any]]] = {}

    def entries(self, entity: Entity, wanted: Measure) -> list[Mapping[str, Any]]:
        """Return the entries of the summaries, run by run, and flow by flow within a run."""
        # The list of entities, and so each of them, lives as long as the cells.
        if id(entity) not in self._entries:
            self._entries[id(entity)] = [
                _entry(wanted, summary, entity.phase, who)
                for summary in self._summaries
                for who in entity.names
            ]
        return self._entries[id(entity)]

    def flows(self, entity: Entity, wanted: Measure) -> Flows:
        """Return the values of a measure, of each flow of each run."""
        found = [entry.get(wanted.key) for entry in self.entries(entity, wanted)]
        size = len(entity.names)
        return tuple(tuple(found[at : at + size]) for at in range(0, len(found), size))

    def pooled(self, entity: Entity, wanted: Measure) -> Sequence[float | None] | None:
        """Return the values of the group's measure per run; None if there is no such measure."""
        of_all = pool_of(wanted) if entity.pool else None
        if of_all is None:
            return None
        groups = (summary["groups"].get(entity.pool) for summary in self._summaries)
        return tuple(None if it is None else of_all.of_entry(it, entity.phase) for it in groups)

    def _has_group(self, name: str) -> bool:
        # Summaries of 0.1.0 have no groups; their value is the mean of the flows.
        return name in self._summaries[0]["groups"]


class _FlowsOfRuns(Sequence["tuple[float | None, ...]"]):
    """Rows of an array of shape (runs, flows), whose NaN are None."""

    def __init__(self, array: Floats) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: int) -> tuple[float | None, ...]: ...

    @overload
    def __getitem__(self, at: slice) -> _FlowsOfRuns: ...

    def __getitem__(self, at: int | slice) -> tuple[float | None, ...] | _FlowsOfRuns:
        if isinstance(at, slice):
            return _FlowsOfRuns(self.array[at])
        return tuple(OptionalFloats(self.array[at]))

    def __iter__(self) -> Iterator[tuple[float | None, ...]]:
        return map(tuple, map(OptionalFloats, self.array))


class ColumnCells(Cells):
    """Values of a condition of many runs from columns; see `Cells` and `MeasureColumns`."""

    def __init__(
        self,
        results: FinishedRuns,
        columns: MeasureColumns,
        condition: int,
        phases: Sequence[str],
        *,
        each: bool,
    ) -> None:
        super().__init__(results, condition, phases, each=each)
        self._columns = columns
        self._condition = condition

    def _values(self, wanted: Measure, phase: str, names: Sequence[str]) -> Floats:
        return self._columns.values(wanted, phase, self._condition, len(self._runs), names)

    def flows(self, entity: Entity, wanted: Measure) -> Flows:
        """Return the values of a measure, of each flow of each run."""
        if wanted.percent is not None and not self._has_group(entity.names[0]):
            wanted = measures()["completion_time"]
        return _FlowsOfRuns(self._values(wanted, entity.phase, entity.names))

    def total(self, entity: Entity, wanted: Measure) -> tuple[float, int]:
        """Return the sum of a measure over all flows of all runs, and how many have a value."""
        import numpy as np

        values = self._values(wanted, entity.phase, entity.names)
        return float(np.nansum(values)), int(np.count_nonzero(~np.isnan(values)))

    def pooled(self, entity: Entity, wanted: Measure) -> Sequence[float | None] | None:
        """Return the values of the group's measure per run; None if there is no such measure."""
        of_all = pool_of(wanted) if entity.pool else None
        if of_all is None:
            return None
        return OptionalFloats(self._values(of_all, entity.phase, [entity.pool])[:, 0])

    def values(self, entity: Entity, wanted: Measure, flows: Flows) -> Sequence[float | None]:
        """Return the values of a measure per run: of the group, or the mean over its flows."""
        if len(entity.names) == 1 and isinstance(flows, _FlowsOfRuns):
            # Like a sum over one flow, this converts −0 to 0.
            return OptionalFloats(flows.array[:, 0] + 0.0)
        return super().values(entity, wanted, flows)

    def _has_group(self, name: str) -> bool:
        return self._columns.has("group", self._condition, name)


def cells_of(results: FinishedRuns, condition: int, phases: Sequence[str], *, each: bool) -> Cells:
    """Return the values of a condition, which the columns of a table share.

    Cells of the last condition are kept, unless they would keep the summaries of many runs.
    """
    key = condition, tuple(phases), each
    last: tuple[object, Cells] | None = results.last_cells
    if last is not None and last[0] == key:
        return last[1]
    results.last_cells = None
    columns = columns_of(results)
    if columns is not None:
        found: Cells = ColumnCells(results, columns, condition, phases, each=each)
    else:
        found = SummaryCells(results, condition, phases, each=each)
    if columns is not None or len(results.runs_of(condition)) <= _MOST_KEPT:
        results.last_cells = key, found
    return found


def kind_of(wanted: Measure) -> tuple[str, ...]:
    """Return a key that is equal for measures with the same entities."""
    # Percentiles also apply to flows that form no group.
    return wanted.scope, wanted.place, wanted.name if wanted.percent is not None else ""


def pool_of(wanted: Measure) -> Measure | None:
    """Return the group's counterpart of a measure; None if the group's value is the mean."""
    return measures().get(f"group_{wanted.name}")


def measure_owners(wanted: Measure, spec: Spec, *, each: bool) -> Iterator[Whom]:
    """Yield every entity that has a value of a measure."""
    match wanted.scope:
        case "run":
            yield {}, ("",)
        case "link":
            for link in spec["links"]:
                yield {"link": link["name"]}, (link["name"],)
        case "group":
            sizes = _sizes_of(spec)
            for name in sizes:
                yield {"group": name}, (name,)
            # Percentiles of a flow that is shown separately are over its runs.
            for group in flow_groups(spec, each=each) if wanted.percent is not None else ():
                if len(group.members) == 1 and group.name not in sizes:
                    yield {"group": group.name}, group.members
        case "flow":
            for group in flow_groups(spec, each=each):
                yield {"flow": group.name, "controller": group.controller}, group.members


def mean_of_present(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def spread_of(flows: Flows) -> tuple[float, float] | None:
    """Return the smallest and largest flow, as means over runs; None for a single flow."""
    ends = [
        (min(present), max(present))
        for run in flows
        if (present := [value for value in run if value is not None]) and len(run) > 1
    ]
    if not ends:
        return None
    return sum(low for low, _ in ends) / len(ends), sum(high for _, high in ends) / len(ends)


def _entry(wanted: Measure, summary: Mapping[str, Any], phase: str, who: str) -> Mapping[str, Any]:
    """Return the summary's entry that contains a measure; empty if there is none."""
    if wanted.scope == "run":
        of_run: Mapping[str, Any] = summary.get(wanted.place, {}).get(phase, {})
        return of_run
    entry: Mapping[str, Any] | None = summary[f"{wanted.scope}s"].get(who)
    if entry is None:
        if wanted.percent is None or who not in summary["flows"]:
            return {}
        completion = measures()["completion_time"].of_entry(summary["flows"][who], phase)
        return {wanted.key: completion}
    if wanted.place in ("flow", "group"):
        return entry
    in_phase: Mapping[str, Any] = entry["phases"].get(phase, {})
    return in_phase


def _sizes_of(spec: Spec) -> Counter[str]:
    """Return the number of flows of each group, in the order of the scenario."""
    return Counter(_group_of(flow) for flow in spec["flows"])


def _group_of(flow: FlowSpec) -> str:
    return flow.get("group") or flow["name"]


def _by_name(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Index flows and links of a summary by name, because a run may have 10,000 flows."""
    return {**summary} | {
        kind: {entry["name"]: entry for entry in summary.get(kind, ())}
        for kind in ("flows", "groups", "links")
    }
