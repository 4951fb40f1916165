"""Queues with classes: resolves the classes and assigns flows to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jostle.run_spec import ClassSpec, LinkPart, LinkSpec
from jostle.scenario.dscp import codepoint_name
from jostle.scenario.flow_links import crossed_links
from jostle.scenario.models import Queue, QueueClass, RegistryChoice, ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import PACKET_BYTES
from jostle.scenario.registry import Registry, Row
from jostle.scenario.resolve.algorithms import whole_number
from jostle.scenario.resolve.sources import BACK, owner

__all__ = ["PRIO", "Resolver", "assign_flows", "by_dscp", "class_specs", "queue_disciplines"]

DEFAULT: Final = "default"
"""Class of flows that belong to no other class."""

PRIO: Final = "prio"
"""Queue discipline whose classes have strict priority."""

_MOST_BANDS: Final = 16
_INNER: Final = "drop_tail"
"""Queue discipline of a class without a `queue`."""


def queue_disciplines(queue: Queue) -> list[RegistryChoice]:
    """Return the queue discipline and the disciplines of its classes."""
    own = [one.queue for one in (queue.classes or {}).values() if one.queue is not None]
    return [queue, *own]


@dataclass(frozen=True)
class Resolver:
    """Context for resolving the queues of classes.

    Attributes
    ----------
    registry, report
        Registry of queue disciplines, and collector of problems.
    part
        Resolves a queue at a key path.
    """

    registry: Registry
    report: Report
    part: Callable[[RegistryChoice, KeyPath], LinkPart | None]


def class_specs(
    queue: Queue, spec: LinkPart, path: KeyPath, resolver: Resolver
) -> list[ClassSpec] | None:
    """Return the classes of a queue in the form of the run specification, without flows.

    Parameters
    ----------
    queue, path
        Queue in the scenario, and its key path.
    spec
        Resolved queue.
    resolver
        Resolves the queues of classes.

    Returns
    -------
    list of dict or None
        None if there are no classes, or a problem was reported.
    """
    at, registry, report = (*path, "classes"), resolver.registry, resolver.report
    if queue.classes is None:
        return None
    row = registry.queues[spec["kind"]]
    if not row.classful:
        kinds = ", ".join(name for name, one in registry.queues.items() if one.classful)
        report.add(at, f'"{row.name}" has no classes — kinds that have: {kinds}')
        return None
    if not queue.classes:
        report.add(at, "no class — write one or more, or remove this key")
        return None
    before = report.count
    _check_order(queue.classes, row, at, report)
    found: list[ClassSpec] = []
    for name, one in queue.classes.items():
        where = (*at, name)
        quantum_bytes = _quantum_bytes(one, spec, row, where, report)
        inner = _inner(one, spec, where, resolver)
        if inner is not None:
            one_spec: ClassSpec = {
                "name": name,
                "quantum_bytes": quantum_bytes,
                "flows": [],
                "queue": inner,
            }
            if one.dscp:
                one_spec["dscp"] = list(one.dscp)
            found.append(one_spec)
    return found if report.count == before else None


def _quantum_bytes(
    one: QueueClass, spec: LinkPart, row: Row, where: KeyPath, report: Report
) -> int:
    if row.name == PRIO:
        if one.weight != 1.0:
            report.add(
                (*where, "weight"), "classes of prio have an order and no weights — remove it"
            )
        return PACKET_BYTES
    parameter, quantum = row.parameters["quantum"], whole_number(spec["parameters"]["quantum"])
    found = round(quantum * one.weight)
    least, most = parameter.minimum or 0, parameter.maximum or 0
    if not least <= found <= most:
        message = (
            f"{one.weight:g} times the quantum of {quantum} B is {found} B per round — "
            f"accepted: {least:.0f} B to {most:.0f} B"
        )
        report.add((*where, "weight"), message, (*where[:-2], "quantum"))
    return found


def _check_order(classes: Mapping[str, QueueClass], row: Row, at: KeyPath, report: Report) -> None:
    """Report a codepoint of two classes, and a number of priorities that Linux does not have."""
    if row.name == PRIO and not 2 <= len(classes) <= _MOST_BANDS:
        report.add(at, f"{len(classes)} classes — prio has from 2 to {_MOST_BANDS}")
    owners: dict[int, str] = {}
    for name, one in classes.items():
        for dscp in one.dscp:
            if dscp in owners:
                message = f'{codepoint_name(dscp)} is of the class "{owners[dscp]}" as well'
                report.add((*at, name, "dscp"), f"{message} — keep one")
            owners.setdefault(dscp, name)


def _inner(one: QueueClass, spec: LinkPart, where: KeyPath, resolver: Resolver) -> LinkPart | None:
    if one.queue is None:
        return {"kind": _INNER, "parameters": {"limit": spec["parameters"]["limit"]}}
    at = (*where, "queue")
    row = resolver.registry.queues.get(one.queue.kind)
    if row is not None and row.classful:
        resolver.report.add(
            at, f'"{row.name}" inside of a class: classes have queues without classes'
        )
        return None
    return resolver.part(one.queue, at)


def by_dscp(classes: Iterable[ClassSpec], dscp: int) -> ClassSpec | None:
    """Return the class with a codepoint; None if no class has it."""
    return next((one for one in classes if dscp in one.get("dscp", ())), None)


def assign_flows(
    file: ScenarioFile,
    paths: Sequence[KeyPath],
    links: Sequence[LinkSpec | None],
    flows: Sequence[Mapping[str, Any]],
    report: Report,
) -> None:
    """Assign every flow to its class on each link of its path that has classes.

    Parameters
    ----------
    file
        Scenario with the classes of flows.
    paths, links
        Key path and specification of each link; None if a problem was reported.
    flows
        All flows, in order.
    report
        Collects problems: flows without a class, and classes that no queue of the path has. The
        latter are reported only if a queue of the path has classes, because a grid may vary the
        queue.
    """
    entries = {flow.name: (index, flow) for index, flow in enumerate(file.flows)}
    claimed, asked = set(), set()
    for number, (path, link) in enumerate(zip(paths, links, strict=True)):
        if link is None or not link["classes"]:
            continue
        classes = {one["name"]: one for one in link["classes"]}
        for position, spec in enumerate(flows):
            if number not in crossed_links(spec):
                continue
            group = flows[owner(flows, position)]["group"]
            index, flow = entries[group if group in entries else group.removesuffix(BACK)]
            wanted = flow.class_ or flow.name
            asked.add(index)
            if wanted in classes:
                claimed.add(index)
            found = classes.get(wanted) or by_dscp(classes.values(), flow.dscp)
            found = found or classes.get(DEFAULT)
            if found is None:
                where = ("flows", index, "class") if flow.class_ else (*path, "queue", "classes")
                message = (
                    f'link "{link["name"]}" has no class "{wanted}" for the flow "{flow.name}" — '
                    f'{did_you_mean(wanted, tuple(classes))}, or add a class "{DEFAULT}"'
                )
                report.add(where, message, (*path, "queue"))
                claimed.add(index)
                continue
            found["flows"].append(position)
    for index in sorted(asked - claimed):
        flow = file.flows[index]
        if flow.class_ is not None:
            message = f'no queue on the way of this flow has a class "{flow.class_}"'
            report.add(("flows", index, "class"), message)
