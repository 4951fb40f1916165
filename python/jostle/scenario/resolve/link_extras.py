"""Faults, habits of netem and grants of a link, in the form of the run specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jostle.run_spec import FlowSpec, LinkSpec
from jostle.scenario.flow_links import crossed_links
from jostle.scenario.link_extras import Faults, Grants, NumberedFaults, Occurrence
from jostle.scenario.models import Link, ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import format_amount
from jostle.scenario.resolve.sources import owner

__all__ = ["assign_fault_flows", "extra_specs"]

_FLOW: Final = "flow"
_KINDS: Final = ("lose", "mark", "corrupt", "duplicate", "delay")
_MOST_GRANTED_BPS: Final = 10**10
_INTERVALS_NS: Final = (10**6, 10**9)


def extra_specs(
    link: Link, capacity: Mapping[str, Any] | None, path: KeyPath, report: Report
) -> Any:
    """Return the parts of a link that few links have; empty if it has none of them.

    The faults by number still contain the names of flows; see `assign_fault_flows`.
    """
    found: dict[str, Any] = {}
    if link.faults is not None:
        found["faults"] = _faults(link, link.faults, (*path, "faults"), report)
    if link.netem is not None:
        limit = {} if link.netem.limit is None else {"limit_packets": link.netem.limit}
        found["netem"] = {
            **limit,
            "limit_includes_queue": link.netem.limit_covers != "delay",
            "jitter_per_batch": link.netem.jitter_per_batch,
        }
        if link.netem.jitter_per_batch and link.jitter is None:
            message = "the link has no jitter — add jitter, or remove this key"
            report.add((*path, "netem", "jitter_per_batch"), message)
    if link.grants is not None:
        _check_grants(link, link.grants, capacity, path, report)
        found["grants"] = _grants(link.grants)
    return found


def _occurrence(given: Occurrence) -> dict[str, Any]:
    return {"probability": given.probability, "correlation": given.correlation}


def _faults(link: Link, faults: Faults, path: KeyPath, report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, event in (("duplicate", faults.duplicate), ("corrupt", faults.corrupt)):
        if event is not None:
            found[key] = _occurrence(event)
    reorder = faults.reorder
    if reorder is not None:
        found["reorder"] = {"occurrence": _occurrence(reorder), "gap": reorder.gap}
        if reorder.late is not None:
            found["reorder"]["late_ns"] = reorder.late
        elif isinstance(link.delay, tuple) and not any(delay for _, delay in link.delay):
            message = (
                "reordered packets skip the link's delay, which is 0 — "
                'write for example late = "5 ms", or give the link a delay'
            )
            report.add((*path, "reorder"), message, (*path[:-1], "delay"))
    rules = [
        _rule(rule, (*path, "packets", index), report) for index, rule in enumerate(faults.packets)
    ]
    if rules:
        found["packets"] = rules
    return found


def _rule(rule: NumberedFaults, path: KeyPath, report: Report) -> dict[str, Any]:
    kinds: dict[int, str] = {}
    for kind in _KINDS:
        for number in getattr(rule, kind):
            if number in kinds:
                message = f"packet {number} is in `{kinds[number]}` as well — keep one"
                report.add((*path, kind), message)
                break
            kinds[number] = kind
    if not kinds:
        report.add(path, "no packet — write for example lose = [100]")
    if rule.delay and rule.late is None:
        report.add((*path, "late"), 'missing — write for example late = "20 ms"')
    if rule.late is not None and not rule.delay:
        report.add((*path, "late"), "no packet is delayed — write for example delay = [100]")
    faults = [
        {
            "number": number,
            "fault": (
                {"kind": "late", "by_ns": rule.late or 1}
                if kinds[number] == "delay"
                else {"kind": kinds[number]}
            ),
        }
        for number in sorted(kinds)
    ]
    of = {} if rule.count == "all" else {"class": rule.count}
    named = {} if rule.flow is None else {_FLOW: rule.flow}
    return {**named, **of, "faults": faults}


def _check_grants(
    link: Link, grants: Grants, capacity: Mapping[str, Any] | None, path: KeyPath, report: Report
) -> None:
    at = (*path, "grants")
    if link.frame_aggregation is not None:
        message = "the link has frame_aggregation as well — keep one"
        report.add(at, message, (*path, "frame_aggregation"))
    if link.framing is not None:
        message = "the link has grants as well, whose slots count bytes of packets — keep one"
        report.add((*path, "framing"), message, at)
    for key, value in (("superframe", grants.superframe), ("request_every", grants.request_every)):
        least, most = _INTERVALS_NS
        if not least <= value <= most:
            shown = format_amount(value, "time")
            report.add((*at, key), f'"{shown}" — accepted: from "1 ms" to "1 s"')
    if capacity is None:
        return
    if capacity["kind"] != "constant":
        message = "the rate must be constant: it is the most that is granted"
        report.add(at, message, (*path, "rate"))
        return
    most_bps = capacity["rate_bps"]
    if most_bps > _MOST_GRANTED_BPS:
        report.add(at, 'the rate of a link with grants is at most "10 Gbit/s"', (*path, "rate"))
    for key, bps in (
        ("constant", grants.constant),
        ("free", grants.free),
        ("quantum", grants.quantum),
    ):
        if bps > most_bps:
            shown = format_amount(most_bps, "rate")
            message = f"more than the link's rate, {shown}, which is the most that is granted"
            report.add((*at, key), message, (*path, "rate"))
    classes = (grants.constant, grants.rate_based, grants.volume_based, grants.free)
    if not any(classes) and grants.contention is None:
        message = (
            "no class of capacity — set constant, rate_based, volume_based, free or contention"
        )
        report.add(at, message)


def _grants(grants: Grants) -> dict[str, Any]:
    found: dict[str, Any] = {
        "superframe_ns": grants.superframe,
        "latency_ns": grants.latency,
        "request_interval_ns": grants.request_every,
        "constant_bps": grants.constant,
        "volume_based": grants.volume_based,
        "free_bps": grants.free,
        "quantum_bps": grants.quantum,
        "request_loss": grants.request_loss,
        "spread": grants.slots == "spread",
    }
    if grants.rate_based is not None:
        found["rate_based"] = {
            "over_per_mille": round(grants.rate_based.over_estimation * 1000),
            "gain_per_mille": round(grants.rate_based.gain * 1000),
            "persistence_ns": grants.rate_based.persistence,
        }
    if grants.contention is not None:
        found["contention"] = {
            "bytes": grants.contention.size,
            "collision": grants.contention.collision,
            "backoff_superframes": grants.contention.backoff,
        }
    return found


def assign_fault_flows(
    file: ScenarioFile,
    paths: Sequence[KeyPath],
    links: Sequence[LinkSpec | None],
    flows: Sequence[FlowSpec],
    report: Report,
) -> None:
    """Replace the names of flows in faults by number with the positions of their connections."""
    names = [flow.name for flow in file.flows]
    for number, (path, link) in enumerate(zip(paths, links, strict=True)):
        faults: Any = None if link is None else link.get("faults")
        if link is None or not faults or not faults.get("packets"):
            continue
        rules: list[dict[str, Any]] = []
        for index, rule in enumerate(faults["packets"]):
            if _FLOW not in rule:
                rules.append(rule)
                continue
            at = (*path, "faults", "packets", index, _FLOW)
            if rule[_FLOW] not in names:
                hint = did_you_mean(rule[_FLOW], names, listed="flows")
                report.add(at, f'there is no flow "{rule[_FLOW]}" — {hint}')
                continue
            crossing = list(_crossing(rule[_FLOW], number, flows))
            if not crossing:
                report.add(at, f'the flow "{rule[_FLOW]}" does not cross this link')
            elif rule.get("class") in ("acks", "handshake") and any(
                flows[position]["transport"] != "tcp" for position in crossing
            ):
                message = f'"{rule["class"]}" are of TCP, which this flow does not use'
                report.add((*at[:-1], "count"), message)
            rules += [{**rule, _FLOW: position} for position in crossing]
        assigned: Any = {**faults, "packets": rules}
        link["faults"] = assigned


def _crossing(name: str, link: int, flows: Sequence[FlowSpec]) -> Iterator[int]:
    for position, flow in enumerate(flows):
        is_named = flows[owner(flows, position)]["group"] == name
        if is_named and link in crossed_links(flow):
            yield position
