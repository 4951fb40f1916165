"""Queues with classes as a classful discipline of `tc`: its classes, their queues, and its filters.

A filter of `u32` per flow and direction tells its packets by the address that they go to. Without
classes in the RunSpec every flow that crosses the link is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jostle.backends.base import Spec
from jostle.run_spec import LinkPart, LinkSpec

_FIRST_CHILD = 0x100
"""Major number of the first class's queue; those of links and cards are below."""


def is_classful(queue: LinkPart) -> bool:
    """Whether a queue has classes."""
    return bool(queue["kind"] == "drr")


def classes_of(number: int, spec: Spec) -> list[dict[str, Any]]:
    """Return the classes of a classful link, each with its quantum, flows and queue."""
    link: LinkSpec = spec["links"][number]
    classes = link.get("classes")
    if classes is not None:
        return [dict(one) for one in classes]
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
    """Return the queues in which packets of a link wait, by their handles."""
    link: LinkSpec = spec["links"][number]
    if not is_classful(link["queue"]):
        return {"10:": link["queue"]}
    found = enumerate(classes_of(number, spec), 1)
    return {_child(position): one["queue"] for position, one in found}


def _child(position: int) -> str:
    return f"{_FIRST_CHILD + position:x}:"


def commands(
    device: str,
    classes: Sequence[Mapping[str, Any]],
    words: Sequence[str],
    addresses: Sequence[Sequence[str]],
) -> Iterator[str]:
    """Yield what makes the classes of the discipline `10:` of a device.

    Parameters
    ----------
    device
        The device.
    classes
        As `classes_of` returns them.
    words
        Words of `tc` for the queue of each.
    addresses
        Where packets of each class go to.
    """
    for number, (one, queue, ways) in enumerate(zip(classes, words, addresses, strict=True), 1):
        name = f"10:{number:x}"
        yield f"class add dev {device} parent 10: classid {name} drr quantum {one['quantum_bytes']}"
        yield f"qdisc add dev {device} parent {name} handle {_child(number)} {queue}"
        for address in ways:
            match = f"protocol ip prio 1 u32 match ip dst {address}/32"
            yield f"filter add dev {device} parent 10: {match} flowid {name}"
