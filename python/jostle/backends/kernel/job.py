"""Converts a RunSpec to a job for the guest program: plain data, with all decisions made."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jostle.backends import crate_libraries
from jostle.backends.base import Spec, canonical_json
from jostle.backends.kernel import (
    bridged_controllers,
    captures,
    controllers,
    impairment_playback,
    kernel_controllers,
    kernel_modules,
    packet_sizes,
    quic_programs,
    tc_classes,
)
from jostle.backends.kernel.addresses import receiver_address, sender_address
from jostle.backends.kernel.arrivals import arrivals_ns, is_many
from jostle.backends.kernel.topology import (
    Burst,
    Machine,
    Topology,
    ends,
    topology,
)
from jostle.kernel_images import Image, Kind
from jostle.kernel_images.controller_modules import is_kernel_controller
from jostle.kernel_images.source_patches import VIRTUAL_HZ
from jostle.run_spec import DelaySpec, FlowSpec, LinkPart
from jostle.scenario.flow_links import opposites, paths, reverse_paths
from jostle.scenario.resolve.algorithms import queue_limit_bytes

WITH_DETAILS = ("bbr", "dctcp", "illinois", "nv", "vegas", "yeah")
"""Controllers with details in TCP_CC_INFO."""

# Burst with which a link compensates a late timer. In virtual time, this is a few microseconds,
# because reading the clock takes one (arch/um/kernel/time.c, `timer_read`). A larger burst would
# let an idle link send two packets at once.
MACHINES: dict[Kind, Machine] = {
    "virtual": Machine(Burst(200, 0), own=True, tick_ns=10**9 // VIRTUAL_HZ),
    "realtime": Machine(Burst(1600, 1000)),
    "native": Machine(Burst(1600, 100)),
}
"""Properties of the kernels, by kind."""

# PIE starts to monitor its queue after half a second.
_LEAD_NS = 1_000_000_000

# A sample costs some system calls per flow.
_STEP_PER_FLOW_NS = 10_000_000
# Assumed number of concurrent connections of a multi-connection flow.
_AT_ONCE = 5
_LEAST_STEP_NS, _LONGEST_STEP_NS = 10_000_000, 50_000_000

# Receivers wake up once per number of bytes, or per fraction of a small receive window.
_READ_BYTES = 128 << 10
_READ_PARTS, _READ_PARTS_GROWING = 128, 8
_LARGE_WINDOW_BYTES = 1 << 20
# Senders write about this many bytes at once.
_WRITE_BYTES = 1 << 20
# More than the maximum amount of unread data.
_EVERYTHING_BYTES = 8 << 20

_MEMORY_BASE_MB, _MEMORY_MOST_MB = 512, 8192
# Kernel memory of data in flight: the sender's copy of each byte, and buffers per packet.
_MEMORY_PER_BYTE, _MEMORY_PER_PACKET_BYTES = 2, 3028
PAGE_BYTES = 4096
"""Size of a page of memory."""
# Memory of two programs, and of the client's file before its memory is released.
_MEMORY_PER_PROGRAMS_MB = 96
# Some thousand concurrent connections with two sockets and two threads each.
_MEMORY_PER_MANY_MB = 256
# Socket buffers for datagrams; the default would overflow after about 90.
_UDP_BUFFER_BYTES = 32 << 20
# Spare bytes of a file that must not end during the run.
_SPARE_BYTES = 1 << 20
# Time, or number of round trips, without a packet after which a peer is considered hung.
_PATIENCE_NS, _PATIENCE_ROUND_TRIPS = 3_000_000_000, 10
BACKLOG_PACKETS = 10_000_000
"""Packets in the backlog of a veth device, which are never as many."""


def plan(
    spec: Spec, offer: kernel_controllers.KernelOffer, defaults: controllers.Defaults, kind: Kind
) -> controllers.Plan:
    """Return the controllers of a run's TCP flows."""
    tcp_flows = [flow for flow in spec["flows"] if flow["transport"] == "tcp"]
    return controllers.plan(tcp_flows, defaults, kind, offer)


def build(
    spec: Spec,
    image: Image,
    defaults: controllers.Defaults,
    offer: kernel_controllers.KernelOffer | None = None,
) -> dict[str, Any]:
    """Return the job of a run, which must have no problems (see `capabilities`).

    Parameters
    ----------
    offer
        Controllers that only this kernel has.
    """
    network = topology(spec, MACHINES[image.kind])
    offer = kernel_controllers.KernelOffer(image) if offer is None else offer
    chosen = plan(spec, offer, defaults, image.kind)
    tcp_flows = [at for at, flow in enumerate(spec["flows"]) if flow["transport"] == "tcp"]
    names = dict(zip(tcp_flows, chosen.names, strict=True))
    libraries = {digest: str(file) for digest, file in crate_libraries.libraries(spec).items()}
    return {
        "duration_ns": spec["duration_ns"],
        "interval_ns": spec["interval_ns"],
        "samples_per_interval": samples_per_interval(spec),
        "cuts_ns": cuts_ns(spec),
        "lead_ns": _LEAD_NS,
        "modules": []
        if image.modules is None
        else kernel_modules.files(kernel_modules.needed(spec), image.modules),
        "own_modules": [one.job() for one in kernel_controllers.modules_of(spec, image)],
        "registrations": [
            bridged_controllers.registrations(module, flows, spec["seed"])
            for module, flows in chosen.bridged.items()
        ],
        "controllers": sorted(set(chosen.names)),
        "parameters": chosen.parameters,
        # On this machine's kernel, parameters and memory limits are not changed.
        "may_set_parameters": image.kind != "native",
        "sysctls": {} if image.kind == "native" else _machine_sysctls(spec),
        **_network(network),
        "captures": captures.wanted(spec),
        "engine": str(engine_path()),
        # A guest has its own memory for a tmpfs; on this machine nothing is mounted.
        "in_memory": image.kind != "native",
        "flows": [
            _program_flow(spec, number)
            if quic_programs.is_program(flow)
            else _quic_flow(spec, number, libraries)
            if flow["transport"] == "quic"
            else _datagram_flow(spec, number)
            if flow["transport"] == "udp"
            else _flow(spec, number, names, bridged=chosen.has_bridged(flow))
            for number, flow in enumerate(spec["flows"])
        ],
    }


def files(
    spec: Spec, image: Image, draw: Callable[[int], impairment_playback.DrawnImpairments]
) -> dict[str, bytes]:
    """Return the files of a job, by name.

    Parameters
    ----------
    draw
        Returns the impairments that the engine draws for a link.
    """
    contents = impairment_playback.files(spec, draw) if MACHINES[image.kind].own else {}
    own = {one.file: one.module.content for one in kernel_controllers.modules_of(spec, image)}
    return {**contents, **own, "spec.json": canonical_json(spec).encode()}


def is_own_quic(flow: FlowSpec) -> bool:
    """Return whether a flow uses jostle's own QUIC."""
    return flow["transport"] == "quic" and not quic_programs.is_program(flow)


def connections_of(job: Mapping[str, Any]) -> int:
    """Return the number of connections of multi-connection flows in a job."""
    return sum(len(flow.get("arrivals_ns") or ()) for flow in job["flows"])


def samples_per_interval(spec: Spec) -> int:
    """Return the number of samples per sampling interval."""
    flows = sum(_AT_ONCE if is_many(flow) else 1 for flow in spec["flows"])
    target_ns = _STEP_PER_FLOW_NS * flows
    target_ns = max(_LEAST_STEP_NS, min(_LONGEST_STEP_NS, target_ns))
    interval_ns: int = spec["interval_ns"]
    return math.ceil(interval_ns / target_ns)


def cuts_ns(spec: Spec) -> list[int]:
    """Return the additional sample times: the bounds of phases."""
    bounds = {bound for phase in spec["phases"] for bound in (phase["from_ns"], phase["to_ns"])}
    return sorted(bound for bound in bounds if bound <= spec["duration_ns"])


def memory_mb(spec: Spec) -> int:
    """Return the memory of a guest, based on the maximum amount of data in flight."""
    network_bytes = 0
    longest_ns = max(_base_rtt_ns(spec, flow) for flow in spec["flows"])
    for number, link in enumerate(spec["links"]):
        in_flight_bytes = impairment_playback.peak_bps(link) * longest_ns // (8 * 10**9)
        largest_bytes = max(packet_sizes.sizes_on(number, spec["flows"]))
        waiting = list(tc_classes.queues_of(number, spec).values())
        network_bytes += in_flight_bytes + sum(
            _queue_bytes(queue, largest_bytes) for queue in waiting
        )
    windows_bytes = sum(int(flow["receive_window_bytes"]) for flow in spec["flows"])
    many = sum(is_many(flow) for flow in spec["flows"])
    if many:
        # The number of concurrent receive windows is unknown.
        windows_bytes = network_bytes
    # Data in the buffers of proxies, in addition to data in flight.
    network_bytes += sum(_buffer_bytes(flow) for flow in spec["flows"])
    held_bytes = min(network_bytes, windows_bytes)
    held_packets = held_bytes // min(map(packet_sizes.packet_bytes, spec["flows"]))
    needed_bytes = _MEMORY_PER_BYTE * held_bytes + _MEMORY_PER_PACKET_BYTES * held_packets
    needed_mb = needed_bytes >> 20
    # Memory per namespace, and for unsent data.
    needed_mb += 4 * len(spec["flows"])
    needed_mb += _MEMORY_PER_PROGRAMS_MB * sum(
        flow["transport"] == "quic" for flow in spec["flows"]
    )
    needed_mb += _MEMORY_PER_MANY_MB * many
    needed_mb += captures.memory_bytes(spec) >> 20
    needed_mb += sum(
        quic_programs.memory_bytes(flow, _file_bytes(spec, number)) >> 20
        for number, flow in enumerate(spec["flows"])
        if quic_programs.is_program(flow)
    )
    return min(_MEMORY_BASE_MB + needed_mb, _MEMORY_MOST_MB)


def _buffer_bytes(flow: FlowSpec) -> int:
    source = flow["source"]
    return source["buffer_bytes"] if source["kind"] == "relay" else 0


def _queue_bytes(queue: LinkPart, packet_bytes: int) -> int:
    parameters: Mapping[str, Any] = queue["parameters"]
    if "memory_limit" in parameters:
        return queue_limit_bytes(queue)
    limit = parameters["limit"]
    if isinstance(limit, dict) and "bytes" in limit:
        return int(limit["bytes"])
    return int(limit["packets"] if isinstance(limit, dict) else limit) * packet_bytes


def _base_rtt_ns(spec: Spec, flow: FlowSpec) -> int:
    """Return the longest base RTT of a flow's routes."""
    delays_ns = [longest_delay_ns(link["delay"]) for link in spec["links"]]
    ways = zip(paths(flow), reverse_paths(flow), strict=True)
    return flow["base_delay_ns"] + max(
        sum(delays_ns[number] for number in (*there, *back)) for there, back in ways
    )


def longest_delay_ns(delay: DelaySpec) -> int:
    """Return the maximum delay of a link, jitter included."""
    jitter = delay["jitter"]
    most_ns = 0 if jitter is None else jitter["quantiles"][-1]["value_ns"]
    return int(max(step["delay_ns"] for step in delay["steps"]) + most_ns)


def _machine_sysctls(spec: Spec) -> dict[str, str]:
    # Page limit for all TCP sockets. With the default, a guest with little memory limits itself.
    pages = (memory_mb(spec) << 20) // PAGE_BYTES
    limits = f"{pages // 2} {pages * 3 // 4} {pages}"
    sysctls = {
        "net.ipv4.tcp_mem": limits,
        # Packets in the backlog of a veth device; the default of 1000 would drop packets of a
        # burst.
        "net.core.netdev_max_backlog": str(BACKLOG_PACKETS),
    }
    if any(flow["transport"] == "quic" for flow in spec["flows"]):
        sysctls["net.core.rmem_default"] = sysctls["net.core.rmem_max"] = str(_UDP_BUFFER_BYTES)
        sysctls["net.core.wmem_default"] = sysctls["net.core.wmem_max"] = str(_UDP_BUFFER_BYTES)
        sysctls["net.ipv4.udp_mem"] = limits
    return sysctls


def reverse_propagation_ns(spec: Spec, flow: FlowSpec) -> int:
    """Return the propagation delay from a flow's receiver to its sender."""
    links = [spec["links"][number]["delay"] for number in flow["reverse_path"]]
    return int(flow["base_delay_ns"]) + sum(int(delay["steps"][0]["delay_ns"]) for delay in links)


def _network(made: Topology) -> dict[str, Any]:
    return {
        "hosts": [asdict(host) for host in made.hosts.values()],
        "wires": [list(wire) for wire in made.wires],
        "queues": made.queues,
        "timetable": made.timetable,
    }


def continuations(spec: Spec) -> dict[int, int]:
    """Return, for connections that end at a proxy, the connection that continues there."""
    found: dict[int, int] = {}
    for number, flow in enumerate(spec["flows"]):
        source = flow["source"]
        if source["kind"] == "relay":
            found[source["from"]] = number
    return found


def _receiver_controller(
    flow: FlowSpec, controller: str, opposite_controller: str | None
) -> str | None:
    """Return the controller of the receiver: for its own data, or to echo marks; None for any."""
    if opposite_controller is not None:
        return opposite_controller
    name: str = flow["controller"]["name"]
    # The user's may be one that echoes marks, as dctcp does (`TCP_CONG_NEEDS_ECN`).
    needed = name in controllers.NEEDS_ECN or is_kernel_controller(name)
    if not needed or not flow["ecn"]:
        return None
    return controller if is_kernel_controller(name) else name


def _read_bytes(flow: FlowSpec) -> tuple[int, int]:
    """Return how many bytes wake a receiver, and how many it then reads at most.

    Unread data occupy the receive window, so a fraction of it wakes the receiver. While the window
    grows, its initial size counts, with a larger fraction.
    """
    if flow["receive_window_autotuning"]:
        part_bytes = flow["initial_receive_window_bytes"] // _READ_PARTS_GROWING
        return max(1, min(_READ_BYTES, part_bytes)), _READ_BYTES - 1
    window_bytes: int = flow["receive_window_bytes"]
    portion_bytes = max(1, min(_READ_BYTES, window_bytes // _READ_PARTS))
    # All but one byte, see `guest/receiver.py`. An unread segment would occupy too much of a small
    # receive window.
    is_large = window_bytes >= _LARGE_WINDOW_BYTES
    return portion_bytes, portion_bytes - 1 if is_large else _EVERYTHING_BYTES


def _flow(spec: Spec, number: int, names: Mapping[int, str], *, bridged: bool) -> dict[str, Any]:
    flow, controller = spec["flows"][number], names[number]
    sender, receiver = ends(spec, number)
    opposite = opposites(spec["flows"]).get(number)
    opposite_controller = None if opposite is None else names[opposite]
    source = flow["source"]
    portion_bytes, most_bytes = _read_bytes(flow)
    return {
        "transport": "tcp",
        "sender": sender,
        "receiver": receiver,
        "sender_address": sender_address(number),
        # Any free port.
        "sender_port": 0,
        "receiver_address": receiver_address(number),
        "controller": controller,
        "receiver_controller": _receiver_controller(flow, controller, opposite_controller),
        "connection_of": flow.get("connection_of"),
        "details": flow["controller"]["name"] in WITH_DETAILS and not bridged,
        # The module writes more than Linux has in TCP_CC_INFO.
        "states": bridged,
        "read_bytes": portion_bytes,
        # Full segments, so that no segment is short at the end of a write.
        "write_bytes": _WRITE_BYTES - _WRITE_BYTES % packet_sizes.payload_bytes(flow),
        "read_most_bytes": most_bytes,
        # Sockets are sampled until the end of the run, but a peer cache learns from the end of the
        # connection.
        "closes": flow["memory"] is not None,
        "after": flow["after"],
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
        # The engine has the applications; only a proxy needs more than the kind here.
        "source": source if source["kind"] == "relay" else {"kind": source["kind"]},
        "segment_bytes": packet_sizes.payload_bytes(flow),
        "arrivals_ns": arrivals_ns(spec, number),
        "continues": continuations(spec).get(number),
    }


def _datagram_flow(spec: Spec, number: int) -> dict[str, Any]:
    flow = spec["flows"][number]
    return {
        "transport": "udp",
        "sender": f"s{number}",
        "receiver": f"r{number}",
        "sender_address": sender_address(number),
        "receiver_address": receiver_address(number),
        "after": flow["after"],
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
        "source": flow["source"],
    }


def _program_flow(spec: Spec, number: int) -> dict[str, Any]:
    """Return a job in which the sender is the server, and the receiver requests one file."""
    flow = spec["flows"][number]
    address = sender_address(number)
    patience_ns = max(_PATIENCE_NS, _PATIENCE_ROUND_TRIPS * _base_rtt_ns(spec, flow))
    return {
        "sender": f"s{number}",
        "receiver": f"r{number}",
        "sender_address": address,
        "after": flow["after"],
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
        "patience_ns": patience_ns,
        **quic_programs.job(spec, flow, address, _file_bytes(spec, number)),
    }


def _quic_flow(spec: Spec, number: int, libraries: Mapping[str, str]) -> dict[str, Any]:
    """Return a job whose ends are two processes that load the engine."""
    flow = spec["flows"][number]
    return {
        "transport": "quic",
        "sender": f"s{number}",
        "receiver": f"r{number}",
        "sender_address": sender_address(number),
        "receiver_address": receiver_address(number),
        "after": flow["after"],
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
        "libraries": libraries,
    }


def engine_path() -> Path | None:
    """Return the path of the compiled engine, which the guest loads."""
    found = importlib.util.find_spec("jostle._core")
    return None if found is None or found.origin is None else Path(found.origin)


def _file_bytes(spec: Spec, number: int) -> int:
    flow = spec["flows"][number]
    if flow["source"]["kind"] == "fixed":
        from jostle import _core

        size_bytes = _core.Traffic(canonical_json(spec)).application(number).next_message_bytes()
        assert size_bytes is not None, "a transfer has a size"
        return size_bytes
    peaks_bps = [impairment_playback.peak_bps(link) for link in spec["links"]]
    rate_bps = max(min(peaks_bps[link] for link in path) for path in paths(flow))
    if flow["nic_rate_bps"] is not None:
        rate_bps = min(rate_bps, flow["nic_rate_bps"])
    return rate_bps * spec["duration_ns"] // 8_000_000_000 + _SPARE_BYTES
