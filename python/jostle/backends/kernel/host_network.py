"""The network of `jostle exec`: hosts whose packets cross the links of a file.

Every host sends through the links of its `up` to a router `core`, from which the links of the
destination's `down` lead to it::

    h0 ─out─ [up links] ── core ── [down links] ─in─ h1

All links use jostle's qdisc, so that packets are delayed by exactly their transmission time and the
delay of the link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from jostle.backends.base import Spec
from jostle.backends.kernel import impairment_playback
from jostle.backends.kernel.host_sysctls import EVERYWHERE, ROUTER
from jostle.backends.kernel.job import BACKLOG_PACKETS, MACHINES, PAGE_BYTES
from jostle.backends.kernel.network_hosts import Route
from jostle.backends.kernel.packet_sizes import PACKET_BYTES
from jostle.backends.kernel.topology import (
    Topology,
    lay_own_link,
    lay_route,
)
from jostle.run_spec import LinkSpec

__all__ = [
    "MOST_HOSTS", "NetworkHost", "files", "guest_host", "host_address", "network",
    "placeholder_spec",
]  # fmt: skip

MOST_HOSTS: Final = 64
_CORE: Final = "core"
_LARGEST_BUFFER_BYTES: Final = 32 << 20
"""Largest buffer that a program can request for a socket."""
_TCP_BUFFERS: Final = {
    # Linux's defaults on a machine with some GB of memory.
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}
_RIGHTS: Final = {
    # Programs have no capabilities: let them bind every port, and ping.
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ping_group_range": "0 2147483647",
}


@dataclass(frozen=True)
class NetworkHost:
    """A host of the network.

    Parameters
    ----------
    name
        Name in the file, and in the guest.
    down, up
        Links that carry packets to the host and from it, by position, in order.
    controller
        Congestion control of its TCP connections, by Linux's name.
    """

    name: str
    down: Sequence[int]
    up: Sequence[int]
    controller: str


def host_address(number: int) -> str:
    """Return the address of a host."""
    return f"10.3.0.{number + 1}"


def guest_host(number: int) -> str:
    """Return the name of a host in the job."""
    return f"h{number}"


def placeholder_spec(links: Sequence[LinkSpec], seed: int, duration_ns: int) -> Spec:
    """Return the RunSpec of a network, with a flow that is never started.

    A RunSpec needs a flow; the engine draws the impairments of links for a RunSpec.
    """
    from jostle.scenario import Scenario

    document = {
        "duration": "1 s",
        "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 MB"}},
        "flows": [{"name": "commands", "controller": "cubic", "rtt": "1 ms"}],
    }
    spec = Scenario.from_dict(document).plan(repeats=1).runs[0].spec
    spec["links"] = list(links)
    spec["flows"][0]["path"] = list(range(len(links)))
    spec["seed"] = seed
    spec["duration_ns"] = duration_ns
    spec["interval_ns"] = duration_ns
    spec["phases"] = [{"name": "overall", "from_ns": 0, "to_ns": duration_ns}]
    return spec


def network(spec: Spec, hosts: Sequence[NetworkHost], memory_mb: int) -> dict[str, Any]:
    """Return the network's part of the job.

    Parameters
    ----------
    spec
        Result of `placeholder_spec`.
    memory_mb
        Memory of the guest.
    """
    made, machine = Topology(), MACHINES["virtual"]
    made.host(_CORE).sysctls |= ROUTER
    for number, link in enumerate(spec["links"]):
        lay_own_link(made, number, link, machine, PACKET_BYTES)
    for number, host in enumerate(hosts):
        _lay_host(made, number, host)
    pages = (memory_mb << 20) // PAGE_BYTES
    limits = f"{pages // 2} {pages * 3 // 4} {pages}"
    return {
        "hosts": [asdict(host) for host in made.hosts.values()],
        "wires": [list(wire) for wire in made.wires],
        "queues": made.queues,
        "controllers": sorted({host.controller for host in hosts}),
        "sysctls": {
            "net.ipv4.tcp_mem": limits,
            "net.ipv4.udp_mem": limits,
            "net.core.netdev_max_backlog": str(BACKLOG_PACKETS),
            "net.core.rmem_max": str(_LARGEST_BUFFER_BYTES),
            "net.core.wmem_max": str(_LARGEST_BUFFER_BYTES),
        },
    }


def files(
    spec: Spec, drawn: Mapping[int, impairment_playback.DrawnImpairments]
) -> dict[str, bytes]:
    """Return the option files of all links, by name."""
    return impairment_playback.files(spec, lambda link: drawn[link])


def _lay_host(made: Topology, number: int, host: NetworkHost) -> None:
    name, address = guest_host(number), host_address(number)
    added = made.host(name)
    added.sysctls |= {**EVERYWHERE, **_TCP_BUFFERS, **_RIGHTS}
    added.sysctls["net.ipv4.tcp_congestion_control"] = host.controller
    added.addresses.append(address)
    added.routes.append(Route(None, "out", address))
    # UDP_SEGMENT bursts leave the host as packets, as in `topology`.
    added.single_segment.append("out")
    last = f"z{host.up[-1]}" if host.up else name
    lay_route(made, (name, "out"), host.up, (_CORE, f"in.{last}"), None)
    first = f"a{host.down[0]}" if host.down else name
    lay_route(made, (_CORE, f"to.{first}"), host.down, (name, "in"), address)
    made.host(_CORE).route(address, f"to.{first}")
