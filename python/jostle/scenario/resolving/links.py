"""Links: from what a scenario says to what a run is given, and what flows need to know of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.scenario.fields import QuantileTable
from jostle.scenario.models import LINK_TABLES, FromFile, Link, Part, RandomRate, ScenarioFile
from jostle.scenario.registry import Registry
from jostle.scenario.resolving.algorithms import part_spec, queue_limit_bytes
from jostle.scenario.resolving.classes import Resolver, class_specs, queue_parts
from jostle.scenario.resolving.from_files import recorded_delay, recorded_loss, recorded_rate
from jostle.scenario.resolving.handovers import (
    delays_with,
    jitter_of_none,
    rates_with,
    reorders,
    sensible,
)
from jostle.scenario.resolving.outages import outage_spec, quantile_points
from jostle.scenario.resolving.profiles import profile_rtt_ns
from jostle.scenario.resolving.rates import random_capacity
from jostle.scenario.resolving.slots import Slotted, slotted
from jostle.scenario.resolving.traces import TraceFiles
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import PACKET_BYTES, QuantityError

__all__ = ["LinkFacts", "bdp_bytes", "is_access_line", "link_facts", "link_spec", "topology"]

BOTTLENECK = "bottleneck"
"""Name of the one link of a dumbbell."""
DOWNLINK, UPLINK = "downlink", "uplink"
"""Names of the two links of an access line."""

_LONGEST_HOLD_NS = 200_000_000


@dataclass
class LinkFacts:
    """A link with what is derived from it.

    Parameters
    ----------
    name, path
        Its name, and where it stands in the document.
    link
        What the scenario says.
    capacity
        As in a run's specification; None if it was reported.
    initial_bps, peak_bps
        Rate at the start and largest rate; of a trace both are its mean rate, of a random one they
        are its mean and its upper bound, of a recorded one its mean and its largest.
    delay_steps
        Propagation delay: times and values in ns.
    base_delay_ns
        What the link contributes to a quiet round trip: its first delay (of a recorded one the
        median) and its median jitter.
    rtt_ns
        Default round trip of flows that cross it; None without a profile.
    queue_bytes
        Most that its queue holds.
    loss_steps
        Probability of loss over time, where it is recorded.
    slotted
        What is drawn anew in every run; None if it has no slots.
    """

    name: str
    path: KeyPath
    link: Link
    capacity: dict[str, Any] | None
    initial_bps: int
    peak_bps: int
    delay_steps: list[tuple[int, int]]
    base_delay_ns: int
    rtt_ns: int | None
    queue_bytes: int = 0
    loss_steps: list[dict[str, Any]] = field(default_factory=list)
    slotted: Slotted | None = None
    depends: tuple[KeyPath, ...] = field(default=())


def topology(file: ScenarioFile, report: Report) -> list[tuple[str, KeyPath, Link]]:
    """Name, place and text of every link; empty if the scenario does not settle which it has."""
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
            # What is wrong with an edge stands in the graph.
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
    """Whether the links are those of an access line: its downlink, then its uplink."""
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
    """Return what flows need to know of a link. The queue's limit may be in BDP: it comes later."""
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
    if isinstance(link.delay, FromFile):
        at = (*path, "delay")
        found = recorded_delay(link.delay, files, duration_ns, at, report)
        if found is not None:
            facts.delay_steps, base_ns = found
            facts.base_delay_ns = base_ns + median_ns
    else:
        facts.delay_steps = list(link.delay)
        facts.base_delay_ns = link.delay[0][1] + median_ns
    _set_capacity(facts, files, report, duration_ns)
    if isinstance(link.loss, FromFile):
        facts.loss_steps = recorded_loss(link.loss, files, duration_ns, (*path, "loss"), report)
    if link.handovers and sensible(link, path, report):
        _hand_over(facts, report)
    if link.slots is not None:
        facts.slotted = slotted(
            name, link.slots, facts.delay_steps, duration_ns, path=path, report=report
        )
    if facts.slotted is not None:
        slots = facts.slotted.slots
        facts.base_delay_ns += _median(slots.delay or ()) + _median(slots.place or ())
        if facts.slotted.mean_bps:
            facts.initial_bps, facts.peak_bps = facts.slotted.mean_bps, facts.slotted.peak_bps
        draw(facts, 0)
    return facts


def draw(facts: LinkFacts, seed: int) -> None:
    """Give a link with slots what it has in the run with that seed."""
    if facts.slotted is not None:
        rates, delays = facts.slotted.steps(seed)
        if rates:
            facts.capacity = rate_steps(rates)
        facts.delay_steps = delays


def rate_steps(steps: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return the capacity of a run's specification with these rates."""
    listed = [{"at_ns": at, "rate_bps": rate} for at, rate in steps]
    return {"kind": "steps", "steps": listed}


def _set_capacity(facts: LinkFacts, files: TraceFiles, report: Report, duration_ns: int) -> None:
    """Set rates and capacity; the capacity stays None if something was reported."""
    link, path = facts.link, facts.path
    rate_at, trace_at = (*path, "rate"), (*path, "trace")
    if link.slots is not None and link.slots.rate is not None and (link.rate or link.trace):
        given = rate_at if link.rate else trace_at
        report.add((*path, "slots", "rate"), "there is another rate as well — keep one", given)
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
    elif link.rate is None and link.slots is not None and link.slots.rate is not None:
        return
    elif link.rate is None:
        message = 'missing — write for example rate = "144 Mbit/s"'
        report.add(rate_at, message, trace_at, (*path, "profile"))
    elif isinstance(link.rate, FromFile):
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
    """Give a link with handovers its rates and delays."""
    link, path = facts.link, facts.path
    facts.delay_steps = delays_with(facts.delay_steps, link, path, report)
    if facts.capacity is None:
        return
    match facts.capacity["kind"]:
        case "constant":
            rates = [(0, int(facts.capacity["rate_bps"]))]
        case "steps":
            rates = [(it["at_ns"], it["rate_bps"]) for it in facts.capacity["steps"]]
        case _:
            message = "they are of a rate that is constant or has steps"
            report.add((*path, "handovers"), message, (*path, "rate"))
            return
    steps = rates_with(rates, link, path, report)
    facts.peak_bps = max(rate for _, rate in steps)
    if len(steps) > 1:
        facts.capacity = rate_steps(steps)


def bdp_bytes(rate_bps: int, rtt_ns: int) -> int:
    """Bytes on a path of that rate and round trip."""
    return rate_bps * rtt_ns // (8 * 10**9)


def link_spec(
    facts: LinkFacts,
    largest_rtt_ns: int | None,
    registry: Registry,
    report: Report,
    rtt_paths: Sequence[KeyPath],
) -> dict[str, Any] | None:
    """Return a link of a run's specification; None if something of it was reported.

    Parameters
    ----------
    facts
        The link; its `queue_bytes` is set.
    largest_rtt_ns
        Largest round trip of any flow, the one that "1 BDP" means.
    registry, report
        Where queues come from and where problems go.
    rtt_paths
        What `largest_rtt_ns` depends on.
    """
    link, path = facts.link, facts.path
    queue_at = (*path, "queue")
    if link.queue is None:
        example = 'queue = { kind = "drop_tail", limit = "1 BDP" }'
        report.add(queue_at, f"missing — write for example {example}", (*path, "profile"))
        return None
    bdp = bdp_bytes(facts.initial_bps, largest_rtt_ns) if largest_rtt_ns else None
    # A limit in BDP cannot be judged while the rate or a round trip is in doubt.
    given = [value for one in queue_parts(link.queue) for value in one.parameters.values()]
    in_bdp = any(isinstance(v, str) and "BDP" in v for v in given)
    if in_bdp and (facts.capacity is None or largest_rtt_ns is None):
        bdp = 10**9
    also = (*facts.depends, *rtt_paths) if in_bdp else ((*path, "profile"),)

    def part(one: Part, at: KeyPath) -> dict[str, Any] | None:
        return part_spec(one, registry.queues, "queue", at, report, *also, bdp_bytes=bdp)

    queue = part(link.queue, queue_at)
    classes = None
    if queue is not None:
        classes = class_specs(link.queue, queue, queue_at, Resolver(registry, report, part))
    loss = None
    if isinstance(link.loss, Part):
        loss = part_spec(link.loss, registry.losses, "loss", (*path, "loss"), report)
    outages = None
    if link.outage is not None:
        outages = outage_spec(link.outage, (*path, "outage"), report)
    if queue is None or facts.capacity is None:
        return None
    queues = [queue] if classes is None else [one["queue"] for one in classes]
    facts.queue_bytes = sum(map(queue_limit_bytes, queues))
    return {
        "name": facts.name,
        "capacity": facts.capacity,
        "queue": queue,
        "classes": classes,
        **_ack_thinning(link, path, report),
        "delay": {
            "steps": [{"at_ns": at, "delay_ns": delay} for at, delay in facts.delay_steps],
            "jitter": _jitter(link),
        },
        **_frames(link),
        "loss": loss,
        **({"loss_steps": facts.loss_steps} if facts.loss_steps else {}),
        "outages": outages,
        "quick_start": _quick_start(link),
    }


def link_names(facts: Sequence[LinkFacts]) -> list[str]:
    """Return the names of links in their order, each once."""
    return list(dict.fromkeys(one.name for one in facts))


def _jitter(link: Link) -> dict[str, Any] | None:
    if link.jitter is None:
        return jitter_of_none() if reorders(link) else None
    return {
        "quantiles": quantile_points(link.jitter.quantiles),
        "correlation_ns": link.jitter.correlation,
        "reorder": link.jitter.reorder,
    }


def _quick_start(link: Link) -> dict[str, Any] | None:
    if link.quick_start is None:
        return None
    given = link.quick_start
    return {"allowance_bps": given.allowance, "interval_ns": given.interval}


def _frames(link: Link) -> dict[str, Any]:
    """Return the frames of a link, if it sends any."""
    if link.frames is None:
        return {}
    contention = quantile_points(link.frames.contention)
    found = {"packets": link.frames.packets, "bytes": link.frames.bytes, "contention": contention}
    return {"frames": found}


def _ack_thinning(link: Link, path: KeyPath, report: Report) -> dict[str, Any]:
    """Return how a link thins ACKs out, if it does."""
    if link.ack_thinning is None:
        return {}
    most, hold_ns = link.ack_thinning.most, link.ack_thinning.hold
    if hold_ns > _LONGEST_HOLD_NS:
        message = "no ACK waits for longer than 200 ms, after which a sender's timer may run out"
        report.add((*path, "ack_thinning", "hold"), message)
    return {"ack_thinning": {"most": most, "hold_ns": hold_ns}}


def _median(points: QuantileTable) -> int:
    """Median of a quantile table, linear between its points."""
    for (p0, v0), (p1, v1) in itertools.pairwise(points):
        if p0 <= 0.5 <= p1:
            return round(v0 + (v1 - v0) * (0.5 - p0) / (p1 - p0))
    return 0
