"""Whose values a condition's summaries have: found once, however many measures are taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.results.groups import groups, groups_of_members
from jostle.results.measures import Measure, measures

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results.finished import FinishedRuns
    from jostle.run_spec import FlowSpec

Flows = tuple[tuple[float | None, ...], ...]
"""For each run the value of each flow."""
Whom = tuple[dict[str, str], tuple[str, ...]]
"""Key and value of something that has a value, and the names whose mean it is."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A flow, group, link or run in one phase, or over the whole run.

    Attributes
    ----------
    place
        Key → value: of `OWN_KEYS` those that apply.
    phase
        The phase, or the one that stands for all.
    members
        How many flows it is.
    entries
        What summaries have of these, by key: run by run, and flow by flow.
    pools
        Of several flows what each summary has of them together; empty where it has nothing.
    group
        Name of the group that a flow is one of, or is.
    single
        Whether a group is of one flow.
    """

    place: Mapping[str, str]
    phase: str
    members: int
    entries: tuple[Mapping[str, Any], ...]
    pools: tuple[Mapping[str, Any] | None, ...]
    group: str
    single: bool

    def flows(self, wanted: Measure) -> Flows:
        """Values of a measure, of each flow of each run."""
        found = [entry.get(wanted.key) for entry in self.entries]
        size = self.members
        return tuple(tuple(found[at : at + size]) for at in range(0, len(found), size))

    def values(self, wanted: Measure, flows: Flows) -> tuple[float | None, ...]:
        """Values of a measure, one per run: of its flows together, or their mean."""
        return self.pooled(wanted) or tuple(mean_of_present(run) for run in flows)

    def pooled(self, wanted: Measure) -> tuple[float | None, ...] | None:
        """Values of a measure for all that several flows did, if there are such; one per run."""
        of_all = pool_of(wanted) if self.pools else None
        if of_all is None:
            return None
        return tuple(None if it is None else of_all.of_entry(it, self.phase) for it in self.pools)


class Cells:
    """The cells of a condition.

    Parameters
    ----------
    results
        The runs.
    condition
        Its position; some run of it finished.
    phases
        Names of phases.
    each
        Whether every flow that `count` made stands for itself.
    """

    def __init__(
        self, results: FinishedRuns, condition: int, phases: Sequence[str], *, each: bool
    ) -> None:
        runs = results.of(condition)
        self.seeds = tuple(result.seed for result in runs)
        self._summaries = [_by_name(result.run.summary) for result in runs]
        self._spec = results.spec_of(condition)
        own = {phase.name for phase in results.phases_of(condition)}
        self._first = phases[:1]
        self._phases = [name for name in phases if name in own]
        self._each = each
        self._of_group = groups_of_members(self._spec) if each else {}
        self._found: dict[tuple[str, ...], list[Cell]] = {}
        self._whose: dict[tuple[str, bool], list[Whom]] = {}
        self._sizes = _sizes_of(self._spec)
        self._many = {_group_of(it) for it in self._spec["flows"] if it.get("arrivals") is not None}
        # Pings have no part in what flows share.
        self.senders = sum(flow["source"]["kind"] != "ping" for flow in self._spec["flows"])

    def of(self, wanted: Measure) -> list[Cell]:
        """Cells that a measure has a value of, phase by phase."""
        kind = kind_of(wanted)
        if kind not in self._found:
            self._found[kind] = list(self._cells(wanted))
        return self._found[kind]

    def _cells(self, wanted: Measure) -> Iterator[Cell]:
        whole = wanted.place in ("flow", "group")
        everybody = self._everybody(wanted)
        # A measure of a whole run belongs to no phase; the first one stands for all.
        for phase in self._first if whole else self._phases:
            for place, members in everybody:
                name = place.get("flow", "")
                pooled = len(members) > 1 and name in self._summaries[0]["groups"]
                yield Cell(
                    place if whole else {**place, "phase": phase},
                    phase,
                    len(members),
                    tuple(
                        _entry(wanted, summary, phase, who)
                        for summary in self._summaries
                        for who in members
                    ),
                    # Of what was written before there were groups, the mean of the flows is known.
                    tuple(it["groups"].get(name) for it in self._summaries) if pooled else (),
                    self._of_group.get(name, name),
                    wanted.scope == "group" and self._is_single(place["group"]),
                )

    def _everybody(self, wanted: Measure) -> list[Whom]:
        kind = (wanted.scope, wanted.percent is not None)
        if kind not in self._whose:
            self._whose[kind] = list(whose(wanted, self._spec, each=self._each))
        return self._whose[kind]

    def _is_single(self, group: str) -> bool:
        """Tell whether a group is one connection: not several flows, nor one that is many."""
        return self._sizes.get(group, 0) <= 1 and group not in self._many


def kind_of(wanted: Measure) -> tuple[str, ...]:
    """Name what measures have in common that have the same cells."""
    # A percentile is taken of flows that have no group, too.
    return wanted.scope, wanted.place, wanted.name if wanted.percent is not None else ""


def pool_of(wanted: Measure) -> Measure | None:
    """Find the measure of a group that has what all of its flows did; none if it is their mean."""
    return measures().get(f"group_{wanted.name}")


def whose(wanted: Measure, spec: Spec, *, each: bool) -> Iterator[Whom]:
    """Everything that has a value of a measure."""
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
            # Of flows that are shown singly, percentiles are over their runs.
            for group in groups(spec, each=each) if wanted.percent is not None else ():
                if len(group.members) == 1 and group.name not in sizes:
                    yield {"group": group.name}, group.members
        case "flow":
            for group in groups(spec, each=each):
                yield {"flow": group.name, "controller": group.controller}, group.members


def mean_of_present(values: Iterable[float | None]) -> float | None:
    """Mean of the values that are there; None if none is."""
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def spread_of(flows: Flows) -> tuple[float, float] | None:
    """Smallest and largest flow, each the mean over runs; None for a single flow."""
    ends = [
        (min(present), max(present))
        for run in flows
        if (present := [value for value in run if value is not None]) and len(run) > 1
    ]
    if not ends:
        return None
    return sum(low for low, _ in ends) / len(ends), sum(high for _, high in ends) / len(ends)


def _entry(wanted: Measure, summary: Mapping[str, Any], phase: str, who: str) -> Mapping[str, Any]:
    """Find what a summary has of somebody, the measure among it; empty if it has nothing."""
    if wanted.scope == "run":
        of_run: Mapping[str, Any] = summary.get(wanted.place, {}).get(phase, {})
        return of_run
    entry: Mapping[str, Any] | None = summary[f"{wanted.scope}s"].get(who)
    if entry is None:
        if wanted.percent is None or who not in summary["flows"]:
            return {}
        completion = measures()["completion"].of_entry(summary["flows"][who], phase)
        return {wanted.key: completion}
    if wanted.place in ("flow", "group"):
        return entry
    in_phase: Mapping[str, Any] = entry["phases"].get(phase, {})
    return in_phase


def _sizes_of(spec: Spec) -> Counter[str]:
    """How many flows each group has that was written as one, in the order of the scenario."""
    return Counter(_group_of(flow) for flow in spec["flows"])


def _group_of(flow: FlowSpec) -> str:
    return flow.get("group") or flow["name"]


def _by_name(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Let flows and links of a summary be found by name: a run may have ten thousand."""
    return {**summary} | {
        kind: {entry["name"]: entry for entry in summary.get(kind, ())}
        for kind in ("flows", "groups", "links")
    }
