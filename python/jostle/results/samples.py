"""Values of measures, one per run, with the keys that tell them apart.

What tables, comparisons and figures over a grid take theirs from. A key of the scenario's grid has
its full name or the shortest ending that is its alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from jostle.errors import InputError, unknown
from jostle.results import conditions as naming
from jostle.results.conditions import Condition
from jostle.results.harm import Harms
from jostle.results.measures import Bounds, Measure, measure, measures
from jostle.stats import Estimate, estimate, percentile_estimate

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.results.finished import FinishedRuns
    from jostle.run_spec import FlowSpec

Kind = Literal["bulk", "transfers", "requests", "media", "pings", "datagrams", "videos", "pages"]
"""What flows do, by which they are shown together: they send without an end, end, answer, …"""

KINDS: Final[Mapping[str, Kind]] = {
    "bulk": "bulk",
    "on_off": "bulk",
    "fixed": "transfers",
    "request_response": "requests",
    "ping": "pings",
    "video": "videos",
    "web": "pages",
    # Beside the flow whose data it passes on.
    "relay": "bulk",
    "cbr": "datagrams",
    "media": "media",
    "trace": "media",
}
"""By the kind of a flow's source."""

_ALIKE: Final = ("transport", "controller", "source", "path", "reverse_path", "access_delay_ns")
"""Keys of a flow's specification that the flows of a group have in common."""

OWN_KEYS: Final = ("flow", "group", "link", "controller", "phase")
"""Keys that every scenario has, beside those of its grid."""


@dataclass(frozen=True)
class Group:
    """A flow, or the flows that `count` made of one.

    Attributes
    ----------
    name
        The scenario's name of it.
    members
        Names of its flows.
    controller
        Its controller.
    kind
        What it does.
    transport
        What it goes over; see `transport_of`.
    """

    name: str
    members: tuple[str, ...]
    controller: str
    kind: Kind
    transport: str

    @property
    def label(self) -> str:
        """Name, and of how many flows."""
        return self.name if len(self.members) == 1 else f"{self.name} ×{len(self.members)}"


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
        ends = [
            (min(present), max(present))
            for run in self.flows
            if (present := [value for value in run if value is not None]) and len(run) > 1
        ]
        if not ends:
            return None
        return sum(low for low, _ in ends) / len(ends), sum(high for _, high in ends) / len(ends)


def groups(spec: Spec, *, each: bool = False) -> list[Group]:
    """Flows of a run in the order of the scenario, those that `count` made together.

    Parameters
    ----------
    spec
        The run.
    each
        Whether every flow stands for itself.
    """
    found: list[Group] = []
    alike: tuple[object, ...] = ()
    for flow in spec["flows"]:
        name, controller = flow["name"], flow["controller"]["name"]
        kind = KINDS[flow["source"]["kind"]]
        base, number = _numbered(name)
        facts = (base, *(flow[key] for key in _ALIKE))
        last = found[-1] if found else None
        # Flows that follow each other have an order, and are shown in it.
        another = number > 1 and flow.get("after") is None and facts == alike
        if last is not None and another and number == len(last.members) + 1 and not each:
            found[-1] = Group(base, (*last.members, name), controller, kind, last.transport)
            continue
        alike = facts if number == 1 else ()
        found.append(Group(name, (name,), controller, kind, transport_of(flow)))
    return found


def transport_of(flow: FlowSpec) -> str:
    """Name the transport of a flow, of QUIC of other people with its implementation."""
    quic = flow.get("quic")
    other = None if quic is None else quic.get("implementation")
    name = flow["transport"].upper()
    return name if other is None else f"{name} ({other['name']})"


def _numbered(name: str) -> tuple[str, int]:
    """Split a name of a copy as `count` gives it: `web-3` is the third of `web`."""
    match = re.fullmatch(r"(.+)-([1-9]\d*)", name)
    return (match[1], int(match[2])) if match else (name, 0)


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
    if not found.tabled:
        raise InputError(found.elsewhere)
    known = [phase.name for phase in results.phases]
    for name in phases or ():
        if name not in known:
            raise InputError(unknown("phase", name, known))
    take = _of_conditions if found.place == "conditions" else _samples
    return list(take(results, found, tuple(phases or known), each))


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
        together = groups(results.spec_of(alone)) if each else []
        of_group = {name: group.name for group in together for name in group.members}
        for phase in (name for name in phases if name in own):
            for place, members in _whose(wanted, results.spec_of(alone), each):
                found = harms.by_seed(measure("throughput"), phase, members, index)
                flows = tuple(tuple(run) for run in found.values())
                yield Sample(
                    wanted,
                    index,
                    {**condition, **place, "phase": phase},
                    tuple(found),
                    tuple(_mean(run) for run in flows),
                    flows,
                    of_group.get(place["flow"], place["flow"]),
                    wanted.bounds,
                )


def _samples(
    results: FinishedRuns, wanted: Measure, phases: Sequence[str], each: bool
) -> Iterator[Sample]:
    for index, condition in enumerate(results.conditions):
        runs = results.of(index)
        if not runs:
            continue
        seeds = tuple(result.seed for result in runs)
        summaries = [_by_name(result.run.summary) for result in runs]
        spec = results.spec_of(index)
        own = {phase.name for phase in results.phases_of(index)}
        together = groups(spec) if each else []
        of_group = {name: group.name for group in together for name in group.members}
        whole = wanted.place in ("flow", "group")
        # A measure of a whole run belongs to no phase; the first one stands for all.
        for phase in phases[:1] if whole else [name for name in phases if name in own]:
            for place, members in _whose(wanted, spec, each):
                flows = tuple(
                    tuple(_value(wanted, summary, phase, name) for name in members)
                    for summary in summaries
                )
                values = tuple(_mean(run) for run in flows)
                pooled = _pooled(wanted)
                # Of what was written before there were groups, the mean of the flows is known.
                if pooled and len(members) > 1 and place["flow"] in summaries[0]["groups"]:
                    values = tuple(_value(pooled, run, phase, place["flow"]) for run in summaries)
                when = {} if whole else {"phase": phase}
                yield Sample(
                    wanted,
                    index,
                    {**condition, **place, **when},
                    seeds,
                    values,
                    flows,
                    of_group.get(place.get("flow", ""), place.get("flow", "")),
                    wanted.bounds_in(spec),
                    wanted.scope == "group" and _is_single(spec, place["group"]),
                )


def _size(spec: Spec, group: str) -> int:
    return sum((flow.get("group") or flow["name"]) == group for flow in spec["flows"])


def _is_single(spec: Spec, group: str) -> bool:
    """Tell whether a group is one connection: not several flows, nor one that is many."""
    many = [flow for flow in spec["flows"] if flow.get("arrivals") is not None]
    return _size(spec, group) <= 1 and all(group != (it.get("group") or it["name"]) for it in many)


def _by_name(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Let flows and links of a summary be found by name: a run may have ten thousand."""
    return {**summary} | {
        kind: {entry["name"]: entry for entry in summary.get(kind, ())}
        for kind in ("flows", "groups", "links")
    }


def _pooled(wanted: Measure) -> Measure | None:
    """Find the measure of a group that has what all of its flows did; none if it is their mean."""
    return measures().get(f"group_{wanted.name}")


def _value(wanted: Measure, summary: Mapping[str, Any], phase: str, who: str) -> float | None:
    if wanted.scope == "run":
        return wanted.of_summary(summary, phase)
    entry = summary[f"{wanted.scope}s"].get(who)
    if entry is None and wanted.percent is not None and who in summary["flows"]:
        return measures()["completion"].of_entry(summary["flows"][who], phase)
    return None if entry is None else wanted.of_entry(entry, phase)


def _whose(
    wanted: Measure, spec: Spec, each: bool
) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """Key and value of everything that has a value, with the names whose mean it is."""
    match wanted.scope:
        case "run":
            yield {}, ("",)
        case "link":
            for link in spec["links"]:
                yield {"link": link["name"]}, (link["name"],)
        case "group":
            for name in dict.fromkeys(flow.get("group") or flow["name"] for flow in spec["flows"]):
                yield {"group": name}, (name,)
            # Of flows that are shown singly, percentiles are over their runs.
            for group in groups(spec, each=each) if wanted.percent is not None else ():
                if len(group.members) == 1 and _size(spec, group.name) == 0:
                    yield {"group": group.name}, group.members
        case "flow":
            for group in groups(spec, each=each):
                yield {"flow": group.name, "controller": group.controller}, group.members


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


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
