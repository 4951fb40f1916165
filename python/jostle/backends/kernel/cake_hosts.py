"""Tells CAKE which flows share a host.

Every flow has its own addresses here. Where flows share a host, `tc` filters express it: CAKE uses
the major number of a class as the host, for source and destination, and the minor number as the
flow (`sch_cake.c::cake_classify`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jostle.backends.base import Spec
from jostle.backends.kernel.unsupported import Problem, flow_key
from jostle.run_spec import LinkPart
from jostle.scenario.flow_links import forward_links, opposites, reverse_links

_MOST_HOSTS = 1024
# Ends of a packet's path that an isolation mode considers: 0 is the source, 1 the destination.
_ENDS = {
    "srchost": (0,),
    "dual-srchost": (0,),
    "dsthost": (1,),
    "dual-dsthost": (1,),
    "hosts": (0, 1),
    "triple-isolate": (0, 1),
}


@dataclass(frozen=True)
class _FlowPath:
    """Packets of a flow that cross a link in one direction.

    Attributes
    ----------
    flow
        Index of the flow.
    backward
        Whether they travel from the receiver to the sender.
    hosts
        Source and destination host; None if no other packets on the link share it.
    """

    flow: int
    backward: bool
    hosts: tuple[str | None, str | None]


def _mode(queue: LinkPart) -> str:
    return str(queue["parameters"]["isolation"]) if queue["kind"] == "cake" else "none"


def _flow_paths(number: int, spec: Spec) -> list[_FlowPath]:
    found = []
    shared_flows = opposites(spec["flows"])
    for position, flow in enumerate(spec["flows"]):
        ends = (flow.get("sender_host"), flow.get("receiver_host"))
        if number in forward_links(flow):
            found.append(_FlowPath(position, backward=False, hosts=ends))
        if number in reverse_links(flow) and position not in shared_flows:
            found.append(_FlowPath(position, backward=True, hosts=ends[::-1]))
    shared = [Counter(path.hosts[end] for path in found) for end in (0, 1)]

    def known(path: _FlowPath, end: int) -> str | None:
        return path.hosts[end] if shared[end][path.hosts[end]] > 1 else None

    return [_FlowPath(path.flow, path.backward, (known(path, 0), known(path, 1))) for path in found]


def problems(number: int, spec: Spec, queue: LinkPart) -> Iterator[Problem]:
    """Yield the host isolation of a link's queue that filters cannot express."""
    mode = _mode(queue)
    if mode not in _ENDS:
        return
    paths = _flow_paths(number, spec)
    if mode == "triple-isolate":
        for path in paths:
            if None not in path.hosts:
                text = "CAKE sees one host per packet here, and other flows share both with "
                text += "this one: the simulator can, or say dual-srchost or dual-dsthost"
                yield Problem(flow_key(spec["flows"][path.flow], "receiver_host"), text)
    if len({path.hosts for path in paths}) > _MOST_HOSTS:
        text = f"CAKE distinguishes {_MOST_HOSTS} hosts: the simulator can"
        yield Problem("flows", text)


def filters(
    number: int,
    spec: Spec,
    queue: LinkPart,
    handle: str,
    address_of: Callable[[int, bool], str],
) -> Iterator[str]:
    """Yield the filters that tell a queue which packets share a host.

    Parameters
    ----------
    number
        Index of the link.
    queue
        The queue, which must have no problems.
    handle
        Device and handle of the queue: `dev queue parent 10:`.
    address_of
        Returns the destination address of a flow's packets, given the flow and `backward`.
    """
    ends = _ENDS.get(_mode(queue), ())
    numbers: dict[tuple[str | None, ...], int] = {}
    for path in _flow_paths(number, spec):
        shared = tuple(path.hosts[end] for end in ends)
        if all(name is None for name in shared):
            continue
        if _mode(queue) == "hosts":
            # CAKE hashes the pair of hosts. Packets with an unshared host form a separate pair.
            alone = str(path.flow) if None in shared else ""
            minor = numbers.setdefault((*shared, alone), len(numbers) + 1)
            major = 1
        else:
            name = next(name for name in shared if name is not None)
            major, minor = numbers.setdefault((name,), len(numbers) + 1), 0
        match = f"protocol ip prio 1 u32 match ip dst {address_of(path.flow, path.backward)}/32"
        yield f"filter add {handle} {match} flowid {major:x}:{minor:x}"
