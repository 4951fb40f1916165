"""Resolution of a scenario without a grid into the specification of one run without its seed.

This module checks all conditions that involve several keys. It continues after a problem, so that
all problems of a file are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from jostle.run_spec import DelayStep, FlowSpec, LinkSpec, PhaseSpec, RunSpec
from jostle.scenario.models import Flow, Link, ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.engine_errors import translate_engine_error
from jostle.scenario.resolve.flow_paths import resolved_paths
from jostle.scenario.resolve.flow_specs import FlowResolver
from jostle.scenario.resolve.link_extras import assign_fault_flows
from jostle.scenario.resolve.links import (
    LinkFacts,
    depends_on_bdp,
    link_facts,
    link_spec,
    rate_steps,
    topology,
)
from jostle.scenario.resolve.parts_cache import PartsCache
from jostle.scenario.resolve.proxies import connection_names, with_first, with_proxies
from jostle.scenario.resolve.queue_classes import assign_flows
from jostle.scenario.resolve.routes import route
from jostle.scenario.resolve.sampling import check_interval, interval_ns
from jostle.scenario.resolve.satellite_slots import ReassignmentDraws
from jostle.scenario.resolve.sources import datagrams
from jostle.scenario.resolve.trace_files import TraceFiles
from jostle.scenario.resolve.transports import is_quic
from jostle.scenario.resolve.tunnels import Tunnels

__all__ = ["RunSpecTemplate", "resolve"]

OVERALL: Final = "overall"
"""Name of the phase that covers the complete run and always exists."""

_HOW_TO_END: Final = 'write for example size = "1 MB"'


@dataclass(frozen=True)
class RunSpecTemplate:
    """A run specification without the values that depend on the seed, and without a title.

    Parameters
    ----------
    spec
        Run specification. `seed` is 0, flows start at their earliest time, a capture has no title.
    start_jitter_ns
        Start jitter by flow name, for flows that have one.
    shortest_rtt_ns
        Shortest base RTT of the flows.
    slotted
        Generators of links whose rates and delays depend on the seed, by position.
    accepted
        Whether the installed engine has found no problem in `spec`.
    """

    spec: RunSpec
    start_jitter_ns: Mapping[str, int]
    shortest_rtt_ns: int
    slotted: Mapping[int, ReassignmentDraws] = field(default_factory=dict)
    accepted: bool = False

    @cached_property
    def accepted_for_all_seeds(self) -> bool:
        """Whether the engine has no problem with any run.

        Of the values that depend on the seed, the engine checks starts: each is before the end of
        the run and the stop of its flow (`crates/run-spec/src/validate/flow.rs`).
        """
        if not self.accepted or self.slotted or self.spec["capture"] is not None:
            return False
        if not self.start_jitter_ns:
            return True
        duration_ns = self.spec["duration_ns"]
        stops = (flow["stop_ns"] or duration_ns for flow in self.spec["flows"])
        return all(
            start_ns + values <= min(stop_ns, duration_ns)
            for (start_ns, _, values), stop_ns in zip(self.starts, stops, strict=True)
        )

    def jittered(self) -> RunSpecTemplate:
        """Return the template with a start jitter of one shortest RTT, unless any flow has one.

        Flows with less time than that between start and stop get no jitter.
        """
        if self.start_jitter_ns:
            return self
        jitter_ns = {
            flow["name"]: self.shortest_rtt_ns
            for flow in self.spec["flows"]
            if flow["start_ns"] + self.shortest_rtt_ns
            < (flow["stop_ns"] or self.spec["duration_ns"])
        }
        return replace(self, start_jitter_ns=jitter_ns)

    def run(self, seed: int, title: str = "") -> RunSpec:
        """Return the run specification for a seed; values that do not depend on it are shared.

        The title is written to capture files only.
        """
        spec: RunSpec = {**self.spec, "seed": seed}
        if spec["capture"] is not None:
            spec["capture"] = {**spec["capture"], "scenario": title}
        if self.slotted:
            spec["links"] = [
                _drawn_link(link, self.slotted[at], seed) if at in self.slotted else link
                for at, link in enumerate(self.spec["links"])
            ]
        if self.start_jitter_ns:
            starts = zip(self.spec["flows"], self.starts_ns(seed), strict=True)
            spec["flows"] = [{**flow, "start_ns": start_ns} for flow, start_ns in starts]
        return spec

    def starts_ns(self, seed: int) -> list[int]:
        """Return the start of each flow for a seed.

        A start is uniform in 0 … jitter (inclusive) after the earliest start, and depends on seed
        and name only, identically on all machines; see `drawn_starts` of the engine.
        """
        from jostle import _core

        return _core.drawn_starts(seed, self.starts)

    @cached_property
    def starts(self) -> list[tuple[int, str, int]]:
        """Earliest start, name, and number of possible starts of each flow."""
        return [
            (flow["start_ns"], flow["name"], self.start_jitter_ns.get(flow["name"], 0) + 1)
            for flow in self.spec["flows"]
        ]


def _drawn_link(link: LinkSpec, slotted: ReassignmentDraws, seed: int) -> LinkSpec:
    rates, delays = slotted.steps(seed)
    listed: list[DelayStep] = [{"at_ns": at, "delay_ns": delay} for at, delay in delays]
    drawn: LinkSpec = {**link, "delay": {**link["delay"], "steps": listed}}
    if rates:
        drawn["capacity"] = rate_steps(rates)
    return drawn


def resolve(
    file: ScenarioFile,
    registry: Registry,
    files: TraceFiles,
    report: Report,
    folder: Path | None = None,
    *,
    allow_code: bool = False,
    modules: Path | None = None,
    cache: PartsCache | None = None,
) -> RunSpecTemplate | None:
    """Return the run that a scenario describes.

    Parameters
    ----------
    file
        Scenario; its grid is ignored.
    registry
        Registry of controllers, slow starts and queues.
    files
        Reads trace files.
    report
        Collects problems.
    folder
        Folder of the scenario, for files and Python controllers; the working directory if None.
    allow_code, modules
        Whether the scenario may run foreign code (see `jostle.safe_io.code_consent`), and the
        folder of Python controllers if it is not the scenario's.
    cache
        Parts of other conditions of the same scenario.

    Returns
    -------
    RunSpecTemplate or None
        None if a problem was reported.
    """
    # Long: one step for each part of a run, in the order in which later parts need earlier ones.
    with_paths = resolved_paths(file, files, report)
    if with_paths is None:
        return None
    # Paths of a graph, a tunnel or a shared connection are new objects, which no condition shares.
    cache = cache if cache is not None and with_paths is file else PartsCache()
    file = with_paths
    settings = _run_settings(file, report)
    named, length_ns = topology(file, report), file.duration
    links = [_facts(found, files, report, cache, duration_ns=length_ns) for found in named]
    rtts = [_rtt(flow, links) for flow in file.flows]
    rtts_of_run = _rtts_of_run(file, rtts)
    largest = max(rtts_of_run, default=None)
    rtt_paths = [("flows", index, key) for index in range(len(rtts)) for key in ("rtt", "path")]
    found = [
        _link(one, registry, report, cache, largest_rtt_ns=largest, rtt_paths=rtt_paths)
        for one in links
    ]
    links, specs = [facts for facts, _ in found], [spec for _, spec in found]
    _check_names(file, links, report)
    _check_capture(file, report)
    here = folder or Path()
    asked = FlowResolver(file, links, registry, report, here, modules or here, allow_code, cache)
    specified = []
    for index, rtt in enumerate(rtts):
        if report.full:
            return None
        specified.append(asked.spec(index, rtt))
    splits = [
        asked.split(index, rtt, spec)
        for (index, rtt), spec in zip(enumerate(rtts), specified, strict=True)
    ]
    tunnels = Tunnels(file, links, report)
    own = with_first(tunnels.enter(specified), splits)
    specs += tunnels.link_specs(largest, registry, files)
    flows = with_proxies(_in_order(file, own, report), list(map(_copies, file.flows)), splits)
    flows = tunnels.with_back(flows, specs[len(links) :])
    _assign_flows(file, [*(link.path for link in links), *tunnels.paths], specs, flows, report)
    complete = [spec for spec in specs if spec is not None]
    if report.found or report.hidden or len(complete) < len(specs):
        return None
    settings["interval_ns"] = interval_ns(file, rtts_of_run, flows, links)
    run: RunSpec = {**settings, "links": complete, "flows": flows}
    refused = translate_engine_error(run, file, registry)
    if refused is not None:
        report.add(*refused)
        return None
    accepted = registry is Registry.of_engine()
    return _template(run, file, rtts_of_run, links, accepted=accepted)


def _facts(
    named: tuple[str, KeyPath, Link],
    files: TraceFiles,
    report: Report,
    cache: PartsCache,
    *,
    duration_ns: int,
) -> LinkFacts:
    """Return the facts of a link with its name and key path."""
    name, path, link = named
    return cache.once(
        ("facts", path, id(link), duration_ns),
        report,
        lambda: link_facts(name, path, link, files, report, duration_ns=duration_ns),
        keep=link,
    )


def _link(
    facts: LinkFacts,
    registry: Registry,
    report: Report,
    cache: PartsCache,
    *,
    largest_rtt_ns: int | None,
    rtt_paths: Sequence[KeyPath],
) -> tuple[LinkFacts, LinkSpec | None]:
    """Return a link in the form of the run specification, and its facts with the service rate."""

    def make() -> tuple[LinkFacts, LinkSpec | None]:
        own = replace(facts)
        return own, link_spec(own, largest_rtt_ns, registry, report, rtt_paths)

    queue = facts.link.queue
    if facts.link.faults is not None or (queue is not None and queue.classes is not None):
        # These name flows, which are assigned in each condition.
        return make()
    rtt_ns = largest_rtt_ns if queue is not None and depends_on_bdp(queue) else None
    return cache.once(("link", id(facts), rtt_ns), report, make, keep=facts)


def _assign_flows(
    file: ScenarioFile,
    paths: Sequence[KeyPath],
    specs: Sequence[LinkSpec | None],
    flows: Sequence[FlowSpec],
    report: Report,
) -> None:
    """Assign flows to the classes of queues, and to faults by packet number."""
    assign_flows(file, paths, specs, flows, report)
    assign_fault_flows(file, paths, specs, flows, report)


def _template(
    run: RunSpec,
    file: ScenarioFile,
    rtts: Sequence[int],
    links: Sequence[LinkFacts],
    *,
    accepted: bool,
) -> RunSpecTemplate:
    return RunSpecTemplate(
        spec=run,
        start_jitter_ns=_start_jitter_ns(file),
        shortest_rtt_ns=min(rtts, default=0),
        slotted={at: one.slotted for at, one in enumerate(links) if one.slotted is not None},
        accepted=accepted,
    )


def _start_jitter_ns(file: ScenarioFile) -> dict[str, int]:
    """Return the start jitter by flow name, for flows that have one."""
    return {
        name: flow.start_jitter
        for flow in file.flows
        if flow.start_jitter
        for name in _copies(flow)
    }


def _run_settings(file: ScenarioFile, report: Report) -> RunSpec:
    """Return the run specification without links, flows and sampling interval."""
    check_interval(file, report)
    return {
        "seed": 0,
        "duration_ns": file.duration,
        "record": file.record,
        "capture": None if file.capture is None else {"scenario": "", "qlog": file.capture.qlog},
        "phases": _phases(file, report),
        "interval_ns": 0,
        "links": [],
        "flows": [],
    }


def _phases(file: ScenarioFile, report: Report) -> list[PhaseSpec]:
    phases: list[PhaseSpec] = [{"name": OVERALL, "from_ns": 0, "to_ns": file.duration}]
    for name, (start, end) in file.phases.items():
        path = ("phases", name)
        if name == OVERALL:
            report.add(path, f'"{OVERALL}" is the whole run and always there — choose another name')
        if end > file.duration:
            ends, run = format_amount(end, "time"), format_amount(file.duration, "time")
            report.add(path, f"the phase ends at {ends}, after the run's {run}", ("duration",))
        phases.append({"name": name, "from_ns": start, "to_ns": end})
    return phases


def _in_order(file: ScenarioFile, specified: Sequence[FlowSpec], report: Report) -> list[FlowSpec]:
    """Return every copy of every flow, with its start conditions."""
    flows: list[FlowSpec] = []
    before: dict[str, int] = {}
    firsts: dict[str | None, int] = {}
    for index, (flow, spec) in enumerate(zip(file.flows, specified, strict=True)):
        copies = _copies(flow)
        for number, name in enumerate(copies):
            after, start_ns = _order(file, index, number, flows, report, before=before)
            copy: FlowSpec = {**spec, "name": name, "after": after, "start_ns": start_ns}
            if flow.connection_of in firsts:
                copy["connection_of"] = firsts[flow.connection_of] + number
            flows.append(copy)
        firsts[flow.name] = len(flows) - len(copies)
        before |= zip(copies, range(len(flows) - len(copies), len(flows)), strict=True)
        if flow.one_at_a_time is not None and flow.count > 1:
            before[flow.name] = before[copies[-1]]
    if not flows:
        report.add(("flows", 0, "count"), "no flow is left — give one of them a count of 1 or more")
    return flows


def _order(
    file: ScenarioFile,
    index: int,
    number: int,
    flows: Sequence[FlowSpec],
    report: Report,
    *,
    before: Mapping[str, int],
) -> tuple[int | None, int]:
    """Return the flow for which the `number`-th copy waits, and its start time after that.

    `flows` are the flows before this copy; `before` maps the names of other entries to positions.
    """
    first = len(flows) - number
    flow, path = file.flows[index], ("flows", index)
    sequence_at, after_at = (*path, "one_at_a_time"), (*path, "after")
    if flow.one_at_a_time is not None and number > 0:
        if number == 1 and not _ends(flows[first]):
            report.add(sequence_at, f"the flows have no end — {_HOW_TO_END}", (*path, "source"))
        return first + number - 1, flow.one_at_a_time
    if flow.one_at_a_time is not None and flow.count == 1:
        report.add(sequence_at, "there is a single flow — write its count", (*path, "count"))
    if flow.after is None or (number > 0 and report.found):
        return None, flow.start
    position = before.get(flow.after)
    if position is None:
        known = did_you_mean(flow.after, tuple(before))
        report.add(after_at, f'there is no flow "{flow.after}" before this one — {known}')
    elif flows[position].get("arrivals") is not None:
        message = f'"{flow.after}" is many connections, which have no common end'
        report.add(after_at, message)
    elif not _ends(flows[position]):
        report.add(after_at, f'"{flow.after}" has no end — {_HOW_TO_END}')
    return position, flow.start


def _ends(flow: FlowSpec) -> bool:
    source = flow["source"]
    match source["kind"]:
        case "request_response":
            return source.get("count") is not None
        case "video":
            return source.get("segments") is not None
        case "web":
            return source.get("pages") is not None
        case kind:
            return kind in ("fixed", "trace")


def _copies(flow: Flow) -> list[str]:
    return [flow.name] if flow.count == 1 else [f"{flow.name}-{i + 1}" for i in range(flow.count)]


def _check_names(file: ScenarioFile, links: Sequence[LinkFacts], report: Report) -> None:
    seen: set[str] = set()
    for index, flow in enumerate(file.flows):
        behind = ["", *connection_names(flow, route(flow, links)[0])]
        names = [f"{name}{end}" for name in _copies(flow) for end in behind]
        twice = next((name for name in names if name in seen), None)
        if twice is not None:
            report.add(("flows", index, "name"), f'there is another flow "{twice}"')
        seen.update(names)


def _check_capture(file: ScenarioFile, report: Report) -> None:
    for index, flow in enumerate(file.flows):
        what = datagrams(flow)
        if file.capture and what is not None:
            message = f"only packets of TCP and QUIC are captured — remove the {what} or this key"
            report.add(("capture",), message, ("flows", index, "source"))
    wants_qlog = file.capture is not None and file.capture.qlog
    if wants_qlog and not any(is_quic(flow) for flow in file.flows):
        message = "no flow is one over QUIC, whose ends write it — remove this key"
        report.add(("capture", "qlog"), message)


def _rtts_of_run(file: ScenarioFile, rtts: Sequence[int | None]) -> list[int]:
    """Return the known base RTTs of the flows, without flows that a count of 0 removes."""
    # If no flow is left, that is the only problem to report.
    is_empty = not any(flow.count for flow in file.flows)
    flows = zip(file.flows, rtts, strict=True)
    return [rtt for flow, rtt in flows if rtt is not None and (flow.count or is_empty)]


def _rtt(flow: Flow, links: Sequence[LinkFacts]) -> int | None:
    if flow.rtt is not None:
        return flow.rtt
    there, back = route(flow, links)
    defaults = {link.rtt_ns for link in (*there, *back) if link.rtt_ns is not None}
    return defaults.pop() if len(defaults) == 1 else None
