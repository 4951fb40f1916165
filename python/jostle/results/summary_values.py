"""Values of measures in the summaries of a condition; each entry is looked up once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jostle.results.flow_groups import flow_groups, group_name_by_flow
from jostle.results.measures import Measure, measures

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results.finished_runs import FinishedRuns
    from jostle.run_spec import FlowSpec

Flows = tuple[tuple[float | None, ...], ...]
"""Value of each flow, for each run."""
Whom = tuple[dict[str, str], tuple[str, ...]]
"""Keys and values of an entity, and the names of the flows whose mean is its value."""


_MOST_KEPT: Final = 100
"""Number of runs of a condition whose values are kept for the next measure."""


@dataclass(frozen=True, slots=True)
class SummaryValue:
    """A flow, group, link or run in one phase, or over the complete run.

    Attributes
    ----------
    place
        Key → value: the applicable ones of `OWN_KEYS`.
    phase
        The phase; the first one for measures of the complete run.
    members
        Number of flows.
    entries
        Entries of the summaries, run by run, and flow by flow within a run.
    pools
        For several flows, the group's entry of each summary; empty if there is none.
    group
        Name of the group, or of the group to which a flow belongs.
    single
        Whether a group consists of one flow.
    """

    place: Mapping[str, str]
    phase: str
    members: int
    entries: tuple[Mapping[str, Any], ...]
    pools: tuple[Mapping[str, Any] | None, ...]
    group: str
    single: bool

    def flows(self, wanted: Measure) -> Flows:
        """Return the values of a measure, of each flow of each run."""
        found = [entry.get(wanted.key) for entry in self.entries]
        size = self.members
        return tuple(tuple(found[at : at + size]) for at in range(0, len(found), size))

    def values(self, wanted: Measure, flows: Flows) -> tuple[float | None, ...]:
        """Return the values of a measure per run: of the group, or the mean over its flows."""
        return self.pooled(wanted) or tuple(mean_of_present(run) for run in flows)

    def pooled(self, wanted: Measure) -> tuple[float | None, ...] | None:
        """Return the values of the group's measure per run; None if there is no such measure."""
        of_all = pool_of(wanted) if self.pools else None
        if of_all is None:
            return None
        return tuple(None if it is None else of_all.of_entry(it, self.phase) for it in self.pools)


class Cells:
    """Summary values of a condition.

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
        runs = results.runs_of(condition)
        self.seeds = tuple(result.seed for result in runs)
        self._summaries = [_by_name(result.run.summary) for result in runs]
        self._spec = results.spec_of(condition)
        own = {phase.name for phase in results.phases_of(condition)}
        self._first = phases[:1]
        self._phases = [name for name in phases if name in own]
        self._each = each
        self._of_group = group_name_by_flow(self._spec) if each else {}
        self._found: dict[tuple[str, ...], list[SummaryValue]] = {}
        self._whose: dict[tuple[str, bool], list[Whom]] = {}
        self._sizes = _sizes_of(self._spec)
        self._many = {_group_of(it) for it in self._spec["flows"] if it.get("arrivals") is not None}
        # Pings do not compete for the shares of a link.
        self.senders = sum(flow["source"]["kind"] != "ping" for flow in self._spec["flows"])

    def of(self, wanted: Measure) -> list[SummaryValue]:
        """Return the entities that have a value of the measure, phase by phase."""
        kind = kind_of(wanted)
        if kind not in self._found:
            self._found[kind] = list(self._cells(wanted))
        return self._found[kind]

    def _cells(self, wanted: Measure) -> Iterator[SummaryValue]:
        whole = wanted.place in ("flow", "group")
        everybody = self._everybody(wanted)
        # A measure of the complete run belongs to no phase; the first phase represents all.
        for phase in self._first if whole else self._phases:
            for place, members in everybody:
                name = place.get("flow", "")
                pooled = len(members) > 1 and name in self._summaries[0]["groups"]
                yield SummaryValue(
                    place if whole else {**place, "phase": phase},
                    phase,
                    len(members),
                    tuple(
                        _entry(wanted, summary, phase, who)
                        for summary in self._summaries
                        for who in members
                    ),
                    # Summaries of 0.1.0 have no groups; their value is the mean of the flows.
                    tuple(it["groups"].get(name) for it in self._summaries) if pooled else (),
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


def cells_of(results: FinishedRuns, condition: int, phases: Sequence[str], *, each: bool) -> Cells:
    """Return the summary values of a condition, which the columns of a table share.

    Cells of the last condition are kept, unless they would keep the summaries of many runs.
    """
    key = condition, tuple(phases), each
    last: tuple[object, Cells] | None = results.last_cells
    if last is not None and last[0] == key:
        return last[1]
    results.last_cells = None
    found = Cells(results, condition, phases, each=each)
    if len(results.runs_of(condition)) <= _MOST_KEPT:
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
