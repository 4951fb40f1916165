"""Links: converts them to the form of the run specification, and derives facts for flows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.run_spec import (
    AckThinningSpec,
    CapacitySpec,
    FramesSpec,
    JitterSpec,
    LinkPart,
    LinkSpec,
    LossStep,
    QuickStartSpec,
    RateStep,
    StepsCapacity,
)
from jostle.scenario.fields import QuantileTable
from jostle.scenario.framing import framing_spec
from jostle.scenario.models import (
    LINK_TABLES,
    Link,
    Queue,
    RandomRate,
    RecordedSeries,
    RegistryChoice,
    ScenarioFile,
)
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import PACKET_BYTES, QuantityError
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.algorithms import queue_limit_bytes, registry_choice_spec
from jostle.scenario.resolve.handovers import (
    delays_with,
    jitter_of_none,
    rates_with,
    reorders,
    sensible,
)
from jostle.scenario.resolve.link_extras import extra_specs
from jostle.scenario.resolve.outages import outage_spec, quantile_points
from jostle.scenario.resolve.profiles import profile_rtt_ns
from jostle.scenario.resolve.queue_classes import Resolver, class_specs, queue_disciplines
from jostle.scenario.resolve.random_rates import random_capacity
from jostle.scenario.resolve.recorded_links import recorded_delay, recorded_loss, recorded_rate
from jostle.scenario.resolve.satellite_slots import ReassignmentDraws, slotted
from jostle.scenario.resolve.trace_files import TraceFiles
from jostle.scenario.service_rate import may_shape, service_bps

__all__ = ["LinkFacts", "bdp_bytes", "is_access_line", "link_facts", "link_spec", "topology"]

BOTTLENECK = "bottleneck"
"""Name of the link in a scenario with a single bottleneck."""
DOWNLINK, UPLINK = "downlink", "uplink"
"""Names of the two links of an access line."""

_LONGEST_HOLD_NS = 200_000_000
_PLACEHOLDER_BDP = 10**9


@dataclass
class LinkFacts:
    """A link with values derived from it.

    Parameters
    ----------
    name, path
        Name of the link, and its key path in the document.
    link
        Link in the scenario.
    capacity
        Capacity in the form of the run specification; None if a problem was reported.
    initial_bps, peak_bps
        Rate at the start, and largest rate. For a trace both are the mean rate; for a random rate
        the mean and the upper bound; for a recorded rate the mean and the largest rate. They are
        rates of the capacity until `link_spec` has set them to the service rate.
    delay_steps
        Propagation delay: times and delays in ns.
    base_delay_ns
        Contribution to the base RTT: the first delay (for a recorded delay the median) plus the
        median jitter.
    rtt_ns
        Default RTT of flows that cross the link; None without a profile.
    queue_bytes
        Capacity of the queue.
    loss_steps
        Probability of loss over time, for a recorded loss.
    slotted
        Generator of the link's random reassignments; None if it has no slots.
    """

    name: str
    path: KeyPath
    link: Link
    capacity: CapacitySpec | None
    initial_bps: int
    peak_bps: int
    delay_steps: list[tuple[int, int]]
    base_delay_ns: int
    rtt_ns: int | None
    queue_bytes: int = 0
    loss_steps: list[LossStep] = field(default_factory=list)
    slotted: ReassignmentDraws | None = None
    depends: tuple[KeyPath, ...] = field(default=())


def topology(file: ScenarioFile, report: Report) -> list[tuple[str, KeyPath, Link]]:
    """Return name, key path and link of every link; empty if the links are ambiguous."""
    tables = [(name, link) for name in LINK_TABLES if (link := getattr(file, name)) is not None]
    if file.links:
        if tables:
            name = tables[0][0]
            report.add(("links",), f"there is a [{name}] as well — keep either it or [[links]]")
            return []
        named: list[tuple[str, KeyPath, Link]] = []
        seen: set[str] = set()
        for index, link in enumerate(file.links):
            if link.name in seen:
                report.add(("links", index, "name"), f'there is another link "{link.name}"')
            seen.add(link.name)
            # The links of a graph come from its edges, so problems refer to the graph.
            path = ("links", index) if file.graph is None else ("graph",)
            named.append((link.name, path, link))
        return named
    given = [name for name, _ in tables]
    if not given:
        message = "no link — write a [bottleneck] table, [downlink] and [uplink], or [[links]]"
        report.add((), message, (BOTTLENECK,))
    elif BOTTLENECK in given and len(given) > 1:
        message = "there is a [bottleneck] as well — keep either it or [downlink] and [uplink]"
        report.add((given[1],), message, (BOTTLENECK,))
    elif given in ([DOWNLINK], [UPLINK]):
        other = UPLINK if given == [DOWNLINK] else DOWNLINK
        message = f"an access line has two directions — write [{other}], too, or [bottleneck]"
        report.add((given[0],), message, (other,))
    if given not in ([BOTTLENECK], [DOWNLINK, UPLINK]):
        return []
    return [(name, (name,), link) for name, link in tables]


def is_access_line(links: Sequence[LinkFacts]) -> bool:
    """Return whether the links are the `downlink` and the `uplink` of an access line."""
    return [(link.name, link.path) for link in links] == [
        (DOWNLINK, (DOWNLINK,)),
        (UPLINK, (UPLINK,)),
    ]


def link_facts(
    name: str,
    path: KeyPath,
    link: Link,
    files: TraceFiles,
    report: Report,
    *,
    duration_ns: int,
) -> LinkFacts:
    """Return the facts that flows need. The queue is resolved later: its limit may be in BDPs."""
    facts = LinkFacts(
        name=name,
        path=path,
        link=link,
        capacity=None,
        initial_bps=0,
        peak_bps=0,
        delay_steps=[(0, 0)],
        base_delay_ns=0,
        rtt_ns=profile_rtt_ns(link.profile) if link.profile else None,
    )
    facts.depends = tuple((*path, key) for key in ("profile", "rate", "trace"))
    median_ns = _median(link.jitter.quantiles if link.jitter else ())
    if isinstance(link.delay, RecordedSeries):
        at = (*path, "delay")
        found = recorded_delay(link.delay, files, duration_ns, at, report)
        if found is not None:
            facts.delay_steps, base_ns = found
            facts.base_delay_ns = base_ns + median_ns
    else:
        facts.delay_steps = list(link.delay)
        facts.base_delay_ns = link.delay[0][1] + median_ns
    _set_capacity(facts, files, report, duration_ns)
    if isinstance(link.loss, RecordedSeries):
        facts.loss_steps = recorded_loss(link.loss, files, duration_ns, (*path, "loss"), report)
    if link.handovers and sensible(link, path, report):
        _hand_over(facts, report)
    if link.reassignment is not None:
        facts.slotted = slotted(
            name,
            link.reassignment,
            facts.delay_steps,
            _own_rates(facts.capacity),
            duration_ns,
            path=path,
            report=report,
        )
    if facts.slotted is not None:
        slots = facts.slotted.slots
        facts.base_delay_ns += _median(slots.delay or ()) + _median(slots.per_run_delay or ())
        if facts.slotted.mean_bps:
            facts.initial_bps, facts.peak_bps = facts.slotted.mean_bps, facts.slotted.peak_bps
        draw(facts, 0)
    return facts


def draw(facts: LinkFacts, seed: int) -> None:
    """Draw the rates and delays of a link with slots for the run with a seed."""
    if facts.slotted is not None:
        rates, delays = facts.slotted.steps(seed)
        if rates:
            facts.capacity = rate_steps(rates)
        facts.delay_steps = delays


def rate_steps(steps: Sequence[tuple[int, int]]) -> StepsCapacity:
    """Return the capacity with these rates in the form of the run specification."""
    listed: list[RateStep] = [{"at_ns": at, "rate_bps": rate} for at, rate in steps]
    return {"kind": "steps", "steps": listed}


def _set_capacity(facts: LinkFacts, files: TraceFiles, report: Report, duration_ns: int) -> None:
    """Set rates and capacity; the capacity stays None if a problem was reported."""
    link, path = facts.link, facts.path
    rate_at, trace_at = (*path, "rate"), (*path, "trace")
    if (
        link.reassignment is not None
        and link.reassignment.rate is not None
        and (link.rate or link.trace)
    ):
        given = rate_at if link.rate else trace_at
        report.add(
            (*path, "reassignment", "rate"), "there is another rate as well — keep one", given
        )
        return
    if link.trace is not None:
        if link.rate is not None:
            report.add(trace_at, "there is a rate as well — keep one", rate_at)
            return
        try:
            trace = files.trace(link.trace)
        except QuantityError as error:
            report.add(trace_at, str(error))
            return
        facts.initial_bps = facts.peak_bps = trace.mean_rate_bps
        facts.capacity = {
            "kind": "trace",
            "opportunities_ms": list(trace.opportunities_ms),
            "opportunity_bytes": PACKET_BYTES,
        }
    elif link.rate is None and link.reassignment is not None and link.reassignment.rate is not None:
        return
    elif link.rate is None:
        message = 'missing — write for example rate = "144 Mbit/s"'
        report.add(rate_at, message, trace_at, (*path, "profile"))
    elif isinstance(link.rate, RecordedSeries):
        found = recorded_rate(link.rate, files, duration_ns, rate_at, report)
        if found is not None:
            facts.capacity, facts.initial_bps, facts.peak_bps = found
    elif isinstance(link.rate, RandomRate):
        facts.capacity = random_capacity(link.rate, rate_at, report)
        if facts.capacity is not None:
            facts.initial_bps, facts.peak_bps = link.rate.mean, facts.capacity["max_bps"]
    else:
        facts.initial_bps = link.rate[0][1]
        facts.peak_bps = max(rate for _, rate in link.rate)
        facts.capacity = (
            {"kind": "constant", "rate_bps": link.rate[0][1]}
            if len(link.rate) == 1
            else {
                "kind": "steps",
                "steps": [{"at_ns": at, "rate_bps": rate} for at, rate in link.rate],
            }
        )


def _hand_over(facts: LinkFacts, report: Report) -> None:
    """Add the handovers of a link to its rates and delays."""
    link, path = facts.link, facts.path
    facts.delay_steps = delays_with(facts.delay_steps, link, path, report)
    if facts.capacity is None:
        return
    rates = _own_rates(facts.capacity)
    if rates is None:
        message = "they are of a rate that is constant or has steps"
        report.add((*path, "handovers"), message, (*path, "rate"))
        return
    steps = rates_with(rates, link, path, report)
    facts.peak_bps = max(rate for _, rate in steps)
    if len(steps) > 1:
        facts.capacity = rate_steps(steps)


def _own_rates(capacity: CapacitySpec | None) -> list[tuple[int, int]] | None:
    """Return the steps of a capacity (ns, bit/s); None if it is random or a trace."""
    if capacity is None:
        return None
    match capacity["kind"]:
        case "constant":
            return [(0, int(capacity["rate_bps"]))]
        case "steps":
            return [(step["at_ns"], step["rate_bps"]) for step in capacity["steps"]]
    return None


def bdp_bytes(rate_bps: int, rtt_ns: int) -> int:
    """Return the BDP of a rate and an RTT."""
    return rate_bps * rtt_ns // (8 * 10**9)


def link_spec(
    facts: LinkFacts,
    largest_rtt_ns: int | None,
    registry: Registry,
    report: Report,
    rtt_paths: Sequence[KeyPath],
) -> LinkSpec | None:
    """Return a link in the form of the run specification; None if a problem was reported.

    Parameters
    ----------
    facts
        Link; the function sets its `queue_bytes`, and its rates to the service rate.
    largest_rtt_ns
        Largest RTT of any flow, which defines "1 BDP".
    registry, report
        Registry of queue disciplines, and collector of problems.
    rtt_paths
        Paths of the values on which `largest_rtt_ns` depends.
    """
    link, path = facts.link, facts.path
    queue_at = (*path, "queue")
    if link.queue is None:
        example = 'queue = { kind = "drop_tail", limit = "1 BDP" }'
        report.add(queue_at, f"missing — write for example {example}", (*path, "profile"))
        return None
    wire = _wire(link)
    resolve_queue = _QueueResolver(
        facts, link.queue, wire, largest_rtt_ns, rtt_paths, registry, report
    ).resolve
    queue = resolve_queue(link.queue, queue_at)
    classes = None
    if queue is not None:
        resolver = Resolver(registry, report, resolve_queue)
        classes = class_specs(link.queue, queue, queue_at, resolver)
    loss = None
    if isinstance(link.loss, RegistryChoice):
        loss = registry_choice_spec(link.loss, registry.losses, "loss", (*path, "loss"), report)
    outages = None
    if link.outage is not None:
        outages = outage_spec(link.outage, (*path, "outage"), report)
    if queue is None or facts.capacity is None:
        return None
    queues = [queue] if classes is None else [one["queue"] for one in classes]
    facts.queue_bytes = sum(map(queue_limit_bytes, queues))
    parts = {**wire, "queue": queue, "classes": classes}
    initial_bps, peak_bps = facts.initial_bps, facts.peak_bps
    facts.initial_bps = facts.peak_bps = service_bps(parts, peak_bps)
    if initial_bps != peak_bps:
        facts.initial_bps = service_bps(parts, initial_bps)
    spec: LinkSpec = {
        "name": facts.name,
        "capacity": facts.capacity,
        "queue": queue,
        "classes": classes,
        "delay": {
            "steps": [{"at_ns": at, "delay_ns": delay} for at, delay in facts.delay_steps],
            "jitter": _jitter(link),
        },
        "loss": loss,
        "outages": outages,
        "quick_start": _quick_start(link),
    }
    spec.update(extra_specs(link, facts.capacity, path, report) | wire)
    thinning = _ack_thinning(link, path, report)
    if thinning is not None:
        spec["ack_thinning"] = thinning
    if facts.loss_steps:
        spec["loss_steps"] = facts.loss_steps
    return spec


def depends_on_bdp(queue: Queue) -> bool:
    """Return whether a parameter of a queue or of its classes is in BDPs."""
    given = (v for one in queue_disciplines(queue) for v in one.parameters.values())
    return any(isinstance(v, str) and "BDP" in v for v in given)


@dataclass(frozen=True)
class _QueueResolver:
    """Context for resolving the queue of a link and the queues of its classes."""

    facts: LinkFacts
    queue: Queue
    wire: Mapping[str, Any]
    largest_rtt_ns: int | None
    rtt_paths: Sequence[KeyPath]
    registry: Registry
    report: Report

    def resolve(self, choice: RegistryChoice, at: KeyPath) -> LinkPart | None:
        """Return a queue in the form of the run specification; None if a problem was reported."""
        facts = self.facts
        also: Sequence[KeyPath] = ((*facts.path, "profile"),)
        bdp = None
        if depends_on_bdp(self.queue):
            also = (*facts.depends, *self.rtt_paths)
            # The shaper's rate, which does not depend on the BDP, determines the BDP. If the rate
            # or an RTT is invalid, the placeholder is used to check the limit's other errors.
            bdp = _PLACEHOLDER_BDP
            alone: LinkPart | None = {"kind": choice.kind, "parameters": {}}
            if self.wire or may_shape(choice.kind):
                alone = self._with_bdp(choice, at, bdp, Report(), also)
            known = facts.capacity is not None and self.largest_rtt_ns is not None
            if alone is not None and known:
                rate_bps = service_bps({**self.wire, "queue": alone}, facts.initial_bps)
                bdp = bdp_bytes(rate_bps, self.largest_rtt_ns or 0)
        return self._with_bdp(choice, at, bdp, self.report, also)

    def _with_bdp(
        self,
        choice: RegistryChoice,
        at: KeyPath,
        bdp: int | None,
        report: Report,
        also: Sequence[KeyPath],
    ) -> LinkPart | None:
        return registry_choice_spec(
            choice, self.registry.queues, "queue", at, report, *also, bdp_bytes=bdp
        )


def link_names(facts: Sequence[LinkFacts]) -> list[str]:
    """Return the unique names of links in their order."""
    return list(dict.fromkeys(one.name for one in facts))


def _jitter(link: Link) -> JitterSpec | None:
    if link.jitter is None:
        return jitter_of_none() if reorders(link) else None
    return {
        "quantiles": quantile_points(link.jitter.quantiles),
        "correlation_ns": link.jitter.correlation,
        "reorder": link.jitter.reorder,
    }


def _quick_start(link: Link) -> QuickStartSpec | None:
    if link.quick_start is None:
        return None
    given = link.quick_start
    return {"allowance_bps": given.allowance, "interval_ns": given.interval}


def _wire(link: Link) -> dict[str, Any]:
    """Return the frame aggregation and the framing that a link has."""
    found: dict[str, Any] = {}
    if link.frame_aggregation is not None:
        frames: FramesSpec = {
            "packets": link.frame_aggregation.packets,
            "bytes": link.frame_aggregation.size,
            "contention": quantile_points(link.frame_aggregation.access_delay),
        }
        found["frames"] = frames
    if link.framing is not None:
        found["framing"] = framing_spec(link.framing)
    return found


def _ack_thinning(link: Link, path: KeyPath, report: Report) -> AckThinningSpec | None:
    """Return the ACK thinning of a link; None if it has none."""
    if link.ack_thinning is None:
        return None
    most, hold_ns = link.ack_thinning.max_acks, link.ack_thinning.max_delay
    if hold_ns > _LONGEST_HOLD_NS:
        message = "no ACK waits for longer than 200 ms, after which a sender's timer may run out"
        report.add((*path, "ack_thinning", "max_delay"), message)
    return {"most": most, "hold_ns": hold_ns}


def _median(points: QuantileTable) -> int:
    """Return the median of a quantile table by linear interpolation."""
    for (p0, v0), (p1, v1) in itertools.pairwise(points):
        if p0 <= 0.5 <= p1:
            return round(v0 + (v1 - v0) * (0.5 - p0) / (p1 - p0))
    return 0
