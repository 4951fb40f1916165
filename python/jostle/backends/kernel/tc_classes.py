"""`tc` commands for queues with classes: classes, their queues, and filters.

A `u32` filter per flow and direction matches the destination address. Without classes in the
RunSpec, each flow on the link is a class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jostle.backends.base import Spec
from jostle.run_spec import LinkPart, LinkSpec

_FIRST_CHILD = 0x100
"""Major number of the first class's queue; links and NICs use lower numbers."""


def is_classful(queue: LinkPart) -> bool:
    """Return whether a queue has classes."""
    return bool(queue["kind"] == "drr")


def classes_of(number: int, spec: Spec) -> list[dict[str, Any]]:
    """Return the classes of a classful link, each with its quantum, flows and queue."""
    link: LinkSpec = spec["links"][number]
    classes = link.get("classes")
    if classes is not None:
        return [dict(entry) for entry in classes]
    given: Mapping[str, Any] = link["queue"]["parameters"]
    return [
        {
            "name": flow["name"],
            "quantum_bytes": given["quantum"],
            "flows": [position],
            "queue": {"kind": "drop_tail", "parameters": {"limit": given["limit"]}},
        }
        for position, flow in enumerate(spec["flows"])
        if number in (*flow["path"], *flow["reverse_path"])
    ]


def queues_of(number: int, spec: Spec) -> dict[str, LinkPart]:
    """Return the queues of a link's packets, by handle."""
    link: LinkSpec = spec["links"][number]
    if not is_classful(link["queue"]):
        return {"10:": link["queue"]}
    found = enumerate(classes_of(number, spec), 1)
    return {_child(position): entry["queue"] for position, entry in found}


def _child(position: int) -> str:
    return f"{_FIRST_CHILD + position:x}:"


def commands(
    device: str,
    classes: Sequence[Mapping[str, Any]],
    words: Sequence[str],
    addresses: Sequence[Sequence[str]],
) -> Iterator[str]:
    """Yield the commands that create the classes of the discipline `10:` of a device.

    Parameters
    ----------
    device
        The device.
    classes
        Result of `classes_of`.
    words
        `tc` words for the queue of each class.
    addresses
        Destination addresses of the packets of each class.
    """
    for number, (entry, queue, destinations) in enumerate(
        zip(classes, words, addresses, strict=True), 1
    ):
        name = f"10:{number:x}"
        quantum = entry["quantum_bytes"]
        yield f"class add dev {device} parent 10: classid {name} drr quantum {quantum}"
        yield f"qdisc add dev {device} parent {name} handle {_child(number)} {queue}"
        for address in destinations:
            match = f"protocol ip prio 1 u32 match ip dst {address}/32"
            yield f"filter add dev {device} parent 10: {match} flowid {name}"
