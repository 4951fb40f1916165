"""Queues with classes: what each class is, and which flows are of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jostle.scenario.models import Part, Queue, QueueClass, ScenarioFile
from jostle.scenario.registry import Registry, Row
from jostle.scenario.resolving.sources import owner
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report, did_you_mean

__all__ = ["Resolver", "assign_flows", "class_specs", "queue_parts"]

DEFAULT: Final = "default"
"""The class of flows that no other one claims."""

_INNER: Final = "drop_tail"
"""What a class waits in that has no queue of its own."""


def queue_parts(queue: Queue) -> list[Part]:
    """Return the discipline, and those of its classes."""
    own = [one.queue for one in (queue.classes or {}).values() if one.queue is not None]
    return [queue, *own]


@dataclass(frozen=True)
class Resolver:
    """What resolves the parts of a queue.

    Attributes
    ----------
    registry, report
        Where queues come from and where problems go.
    part
        Resolves a queue that stands at a place.
    """

    registry: Registry
    report: Report
    part: Callable[[Part, KeyPath], dict[str, Any] | None]


def class_specs(
    queue: Queue, spec: Mapping[str, Any], path: KeyPath, resolver: Resolver
) -> list[dict[str, Any]] | None:
    """Return the classes of a queue, as a run's specification has them, but without flows yet.

    Parameters
    ----------
    queue, path
        What the scenario says, and where.
    spec
        The queue itself, resolved.
    resolver
        Resolves the queues of classes.

    Returns
    -------
    list of dict or None
        None if there are none, or if something was reported.
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
    found = []
    for name, one in queue.classes.items():
        where = (*at, name)
        found.append(
            {
                "name": name,
                "quantum_bytes": _quantum_bytes(one, spec, row, where, report),
                "flows": [],
                "queue": _inner(one, spec, where, resolver),
            }
        )
    return found if report.count == before else None


def _quantum_bytes(
    one: QueueClass, spec: Mapping[str, Any], row: Row, where: KeyPath, report: Report
) -> int:
    parameter, quantum = row.parameters["quantum"], spec["parameters"]["quantum"]
    found = round(int(quantum) * one.weight)
    least, most = parameter.minimum or 0, parameter.maximum or 0
    if not least <= found <= most:
        message = (
            f"{one.weight:g} times the quantum of {quantum} B is {found} B per round — "
            f"accepted: {least:.0f} B to {most:.0f} B"
        )
        report.add((*where, "weight"), message, (*where[:-2], "quantum"))
    return found


def _inner(
    one: QueueClass, spec: Mapping[str, Any], where: KeyPath, resolver: Resolver
) -> dict[str, Any] | None:
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


def assign_flows(
    file: ScenarioFile,
    paths: Sequence[KeyPath],
    links: Sequence[Mapping[str, Any] | None],
    flows: Sequence[Mapping[str, Any]],
    report: Report,
) -> None:
    """Put every flow into its class of every link that it crosses and that has classes.

    Parameters
    ----------
    file
        Says which class flows want.
    paths, links
        Place and specification of each link; None of one that was reported.
    flows
        All flows, in their order.
    report
        Takes problems: flows without a class, and classes that no queue of a flow's way has, if
        any has classes: where the grid varies the queue, a condition may have none.
    """
    entries = {flow.name: (index, flow) for index, flow in enumerate(file.flows)}
    claimed, asked = set(), set()
    for number, (path, link) in enumerate(zip(paths, links, strict=True)):
        if link is None or link["classes"] is None:
            continue
        classes = {one["name"]: one for one in link["classes"]}
        for position, spec in enumerate(flows):
            if number not in (*spec["path"], *spec["reverse_path"]):
                continue
            index, flow = entries[flows[owner(flows, position)]["group"]]
            wanted = flow.class_ or flow.name
            asked.add(index)
            if wanted in classes:
                claimed.add(index)
            found = classes.get(wanted) or classes.get(DEFAULT)
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
