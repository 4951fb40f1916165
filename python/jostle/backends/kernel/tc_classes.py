"""`tc` commands for queues with classes: classes, their queues, and filters.

A `u32` filter per flow and direction matches the destination address, or one per codepoint the
DSCP.
Without classes in the RunSpec, each flow on the link is a class of `drr`, and `prio` has its three
bands without filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jostle.backends.base import Spec
from jostle.run_spec import FlowSpec, LinkPart, LinkSpec
from jostle.scenario.flow_links import crossed_links

PRIO = "prio"
_DRR = "drr"
_DEFAULT_BANDS = 3
_FIRST_CHILD = 0x100
"""Major number of the first class's queue; links and NICs use lower numbers."""


def is_classful(queue: LinkPart) -> bool:
    """Return whether a queue has classes."""
    return queue["kind"] in (_DRR, PRIO)


def classes_of(number: int, spec: Spec) -> list[dict[str, Any]]:
    """Return the classes of a classful link, each with its quantum, flows and queue."""
    link: LinkSpec = spec["links"][number]
    classes = link.get("classes")
    if classes is not None:
        return [dict(entry) for entry in classes]
    given: Mapping[str, Any] = link["queue"]["parameters"]
    tail = {"kind": "drop_tail", "parameters": {"limit": given["limit"]}}
    if link["queue"]["kind"] == PRIO:
        return [{"name": f"band {n}", "flows": [], "queue": tail} for n in range(_DEFAULT_BANDS)]
    return [
        {
            "name": flow["name"],
            "quantum_bytes": given["quantum"],
            "flows": [position],
            "queue": tail,
        }
        for position, flow in enumerate(spec["flows"])
        if number in crossed_links(flow)
    ]


def queues_of(number: int, spec: Spec) -> dict[str, LinkPart]:
    """Return the queues of a link's packets, by handle."""
    link: LinkSpec = spec["links"][number]
    if not is_classful(link["queue"]):
        return {"10:": link["queue"]}
    found = enumerate(classes_of(number, spec), 1)
    return {_child(position): entry["queue"] for position, entry in found}


def class_queues(spec: Spec) -> list[tuple[int, str, LinkPart]]:
    """Return the queues of all classes: link, handle and queue.

    Their samples follow the links' samples, in this order.
    """
    return [
        (number, handle, queue)
        for number, link in enumerate(spec["links"])
        if is_classful(link["queue"])
        for handle, queue in queues_of(number, spec).items()
    ]


def _child(position: int) -> str:
    return f"{_FIRST_CHILD + position:x}:"


def is_by_dscp(flow: FlowSpec, entry: Mapping[str, Any]) -> bool:
    """Return whether a flow is in a class because of its codepoint."""
    return (flow.get("dscp") or 0) in entry.get("dscp", ())


def commands(
    device: str,
    kind: str,
    classes: Sequence[Mapping[str, Any]],
    words: Sequence[str],
    addresses: Sequence[Sequence[str]],
) -> Iterator[str]:
    """Yield the commands that create the classes of the discipline `10:` of a device.

    Parameters
    ----------
    device, kind
        The device, and the kind of the discipline.
    classes
        Result of `classes_of`.
    words
        `tc` words for the queue of each class.
    addresses
        Destination addresses of the packets of each class that are not in it by their DSCP.
    """
    for number, (entry, queue, destinations) in enumerate(
        zip(classes, words, addresses, strict=True), 1
    ):
        name = f"10:{number:x}"
        if kind == _DRR:
            quantum = entry["quantum_bytes"]
            yield f"class add dev {device} parent 10: classid {name} drr quantum {quantum}"
        yield f"qdisc add dev {device} parent {name} handle {_child(number)} {queue}"
        for address in destinations:
            match = f"protocol ip prio 1 u32 match ip dst {address}/32"
            yield f"filter add dev {device} parent 10: {match} flowid {name}"
        for dscp in entry.get("dscp", ()):
            match = f"protocol ip prio 2 u32 match ip dsfield {dscp << 2:#x} 0xfc"
            yield f"filter add dev {device} parent 10: {match} flowid {name}"
