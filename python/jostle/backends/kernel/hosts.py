"""Which flows share a host, told to CAKE.

Every flow has addresses of its own here. Where flows share a host, filters of `tc` say so: CAKE
takes the major number of a class for the host, source and destination alike, and the minor one for
the flow (`cake_classify` of Linux's `net/sched/sch_cake.c`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jostle.backends.base import Spec
from jostle.backends.kernel.problems import Problem, flow_key
from jostle.run_spec import LinkPart

_MOST_HOSTS = 1024
# Ends of a packet's way that matter to a mode.
_ENDS = {
    "srchost": (0,),
    "dual-srchost": (0,),
    "dsthost": (1,),
    "dual-dsthost": (1,),
    "hosts": (0, 1),
    "triple-isolate": (0, 1),
}


@dataclass(frozen=True)
class _Way:
    """Packets of a flow that cross a link in one direction.

    Attributes
    ----------
    flow
        Position of the flow.
    backward
        Whether they go from its receiver to its sender.
    hosts
        Source and destination; None for one that no other packets of the link have.
    """

    flow: int
    backward: bool
    hosts: tuple[str | None, str | None]


def _mode(queue: LinkPart) -> str:
    return str(queue["parameters"]["isolation"]) if queue["kind"] == "cake" else "none"


def _ways(number: int, spec: Spec) -> list[_Way]:
    found = []
    for position, flow in enumerate(spec["flows"]):
        ends = (flow.get("sender_host"), flow.get("receiver_host"))
        if number in flow["path"]:
            found.append(_Way(position, backward=False, hosts=ends))
        if number in flow["reverse_path"]:
            found.append(_Way(position, backward=True, hosts=ends[::-1]))
    shared = [Counter(way.hosts[end] for way in found) for end in (0, 1)]

    def known(way: _Way, end: int) -> str | None:
        return way.hosts[end] if shared[end][way.hosts[end]] > 1 else None

    return [_Way(way.flow, way.backward, (known(way, 0), known(way, 1))) for way in found]


def problems(number: int, spec: Spec, queue: LinkPart) -> Iterator[Problem]:
    """List what a queue of a link would have to know of hosts and cannot be told."""
    mode = _mode(queue)
    if mode not in _ENDS:
        return
    ways = _ways(number, spec)
    if mode == "triple-isolate":
        for way in ways:
            if None not in way.hosts:
                text = "CAKE is told of one host per packet here, and other flows share both with "
                text += "this one: the simulator can, or say dual-srchost or dual-dsthost"
                yield Problem(flow_key(spec["flows"][way.flow], "receiver_host"), text)
    if len({way.hosts for way in ways}) > _MOST_HOSTS:
        text = f"CAKE tells {_MOST_HOSTS} hosts apart: the simulator can"
        yield Problem("flows", text)


def filters(
    number: int,
    spec: Spec,
    queue: LinkPart,
    handle: str,
    address_of: Callable[[int, bool], str],
) -> Iterator[str]:
    """Yield the filters that tell a queue which packets have a host in common.

    Parameters
    ----------
    number
        Of the link.
    queue
        The queue, with no problems.
    handle
        Device and handle of its discipline: `dev queue parent 10:`.
    address_of
        The address that packets of a flow go to, given whether they go to its sender.
    """
    ends = _ENDS.get(_mode(queue), ())
    numbers: dict[tuple[str | None, ...], int] = {}
    for way in _ways(number, spec):
        shared = tuple(way.hosts[end] for end in ends)
        if all(name is None for name in shared):
            continue
        if _mode(queue) == "hosts":
            # The hash of a pair. Packets of which one end is their own are a pair of their own.
            alone = str(way.flow) if None in shared else ""
            minor = numbers.setdefault((*shared, alone), len(numbers) + 1)
            major = 1
        else:
            name = next(name for name in shared if name is not None)
            major, minor = numbers.setdefault((name,), len(numbers) + 1), 0
        match = f"protocol ip prio 1 u32 match ip dst {address_of(way.flow, way.backward)}/32"
        yield f"filter add {handle} {match} flowid {major:x}:{minor:x}"
