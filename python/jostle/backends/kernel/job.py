"""A RunSpec as a job for the guest program: plain data, with every decision taken."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jostle.backends.base import Spec, canonical_json
from jostle.backends.kernel import (
    captures,
    classes,
    controllers,
    modules,
    packets,
    playback,
    programs,
)
from jostle.backends.kernel.arrivals import connections, is_many
from jostle.backends.kernel.pages import pages
from jostle.backends.kernel.spans import factors, sizes_bytes, spans_ns, writes
from jostle.backends.kernel.topology import (
    Burst,
    Machine,
    Topology,
    receiver_address,
    sender_address,
    topology,
)
from jostle.kernel_images import Image, Kind
from jostle.run_spec import DelaySpec, FlowSpec, LinkPart

WITH_DETAILS = ("bbr", "dctcp", "illinois", "nv", "vegas", "yeah")
"""Controllers whose inside TCP_CC_INFO shows."""

# What a link may make up for if it was late. In virtual time that is a few microseconds, because
# reading the clock takes one (arch/um/kernel/time.c, `timer_read`), and more would let an idle link
# send two packets at once.
_MACHINES: dict[Kind, Machine] = {
    # HZ = 1000, see jostle/kernel_images/edits.py.
    "virtual": Machine(Burst(200, 0), own=True, tick_ns=1_000_000),
    "realtime": Machine(Burst(1600, 1000)),
    "native": Machine(Burst(1600, 100)),
}

# PIE waits for half a second before it begins to look at its queue.
_LEAD_NS = 1_000_000_000

# Each sample costs some system calls per flow.
_STEP_PER_FLOW_NS = 10_000_000
# A flow that comes as many connections has more than one of them at a time.
_AT_ONCE = 5
_LEAST_STEP_NS, _LONGEST_STEP_NS = 10_000_000, 50_000_000

# Receivers wake up once per so many bytes, or so many parts of their window if that is small.
_READ_BYTES = 128 << 10
_READ_PARTS = 8
# Senders write about as much at once.
_WRITE_BYTES = 1 << 20
# More than ever waits to be read.
_EVERYTHING_BYTES = 8 << 20

_MEMORY_BASE_MB, _MEMORY_MOST_MB = 512, 8192
# Kernel memory of what is in flight: the sender's copy of each byte, buffers around each packet.
_MEMORY_PER_BYTE, _MEMORY_PER_PACKET_BYTES = 2, 3028
_PAGE_BYTES = 4096
# What two programs take, and what the client has written and not yet been forgotten.
_MEMORY_PER_PROGRAMS_MB = 96
# Some thousand connections at a time: two sockets and two threads each.
_MEMORY_PER_MANY_MB = 256
# A datagram that waits for its program to read it; the usual default would lose them after some 90.
_UDP_BUFFER_BYTES = 32 << 20
# A file that nobody gets to the end of: what all links together could have carried.
_SPARE_BYTES = 1 << 20
# Without a packet for that long, or so many round trips, a peer is taken to hang.
_PATIENCE_NS, _PATIENCE_ROUND_TRIPS = 3_000_000_000, 10
_BACKLOG_PACKETS = 10_000_000


def build(spec: Spec, image: Image, defaults: controllers.Defaults) -> dict[str, Any]:
    """Translate a run that has no problems (see `capabilities`)."""
    made = topology(spec, _MACHINES[image.kind])
    of_tcp = [flow for flow in spec["flows"] if flow["transport"] == "tcp"]
    plan = controllers.plan(of_tcp, defaults, image.kind)
    names = iter(plan.names)
    return {
        "duration_ns": spec["duration_ns"],
        "interval_ns": spec["interval_ns"],
        "samples_per_interval": samples_per_interval(spec),
        "cuts_ns": cuts_ns(spec),
        "lead_ns": _LEAD_NS,
        "modules": []
        if image.modules is None
        else modules.files(modules.needed(spec), image.modules),
        "controllers": sorted(set(plan.names)),
        "parameters": plan.parameters,
        # Parameters and memory limits of this machine are not ours.
        "may_set_parameters": image.kind != "native",
        "sysctls": {} if image.kind == "native" else _machine_sysctls(spec),
        **_network(made),
        "captures": captures.wanted(spec),
        # A guest has memory of its own; this machine's is not ours to mount.
        "in_memory": image.kind != "native",
        "flows": [
            _program_flow(spec, number)
            if programs.is_program(flow)
            else _quic_flow(spec, number)
            if flow["transport"] == "quic"
            else _datagram_flow(spec, number)
            if flow["transport"] == "udp"
            else _flow(spec, number, next(names))
            for number, flow in enumerate(spec["flows"])
        ],
    }


def files(
    spec: Spec, image: Image, draw: Callable[[int], playback.DrawnImpairments]
) -> dict[str, bytes]:
    """Files that belong to a job, by name.

    Parameters
    ----------
    draw
        What the engine has drawn for a link; asked where it is needed.
    """
    made = playback.files(spec, draw) if _MACHINES[image.kind].own else {}
    if any(is_own_quic(flow) for flow in spec["flows"]):
        made["spec.json"] = canonical_json(spec).encode()
    return made


def is_own_quic(flow: FlowSpec) -> bool:
    """Tell whether jostle's own QUIC carries a flow."""
    return flow["transport"] == "quic" and not programs.is_program(flow)


def connections_of(job: Mapping[str, Any]) -> int:
    """Count the connections that come in a job."""
    return sum(len(flow.get("connections") or ()) for flow in job["flows"])


def samples_per_interval(spec: Spec) -> int:
    """Into how many parts samples divide an interval of the series."""
    flows = sum(_AT_ONCE if is_many(flow) else 1 for flow in spec["flows"])
    target_ns = _STEP_PER_FLOW_NS * flows
    target_ns = max(_LEAST_STEP_NS, min(_LONGEST_STEP_NS, target_ns))
    interval_ns: int = spec["interval_ns"]
    return math.ceil(interval_ns / target_ns)


def cuts_ns(spec: Spec) -> list[int]:
    """Moments that are sampled beside those: bounds of phases."""
    bounds = {bound for phase in spec["phases"] for bound in (phase["from_ns"], phase["to_ns"])}
    return sorted(bound for bound in bounds if bound <= spec["duration_ns"])


def memory_mb(spec: Spec) -> int:
    """Memory that a guest needs at most for what may be in flight."""
    network_bytes = 0
    longest_ns = max(_base_rtt_ns(spec, flow) for flow in spec["flows"])
    for number, link in enumerate(spec["links"]):
        in_flight_bytes = playback.peak_bps(link) * longest_ns // (8 * 10**9)
        largest_bytes = max(packets.sizes_on(number, spec["flows"]))
        waiting = list(classes.queues_of(number, spec).values())
        network_bytes += in_flight_bytes + sum(_queue_bytes(one, largest_bytes) for one in waiting)
    windows_bytes = sum(int(flow["receive_window_bytes"]) for flow in spec["flows"])
    many = sum(is_many(flow) for flow in spec["flows"])
    if many:
        # Nobody knows how many windows there are at a time.
        windows_bytes = network_bytes
    # What proxies hold beside what is on its way.
    network_bytes += sum(_buffer_bytes(flow) for flow in spec["flows"])
    held_bytes = min(network_bytes, windows_bytes)
    held_packets = held_bytes // min(map(packets.packet_bytes, spec["flows"]))
    needed_bytes = _MEMORY_PER_BYTE * held_bytes + _MEMORY_PER_PACKET_BYTES * held_packets
    needed_mb = needed_bytes >> 20
    # Each namespace, and each sender's unsent data.
    needed_mb += 4 * len(spec["flows"])
    needed_mb += _MEMORY_PER_PROGRAMS_MB * sum(
        flow["transport"] == "quic" for flow in spec["flows"]
    )
    needed_mb += _MEMORY_PER_MANY_MB * many
    needed_mb += captures.memory_bytes(spec) >> 20
    needed_mb += sum(
        programs.memory_bytes(flow, _file_bytes(spec, flow)) >> 20
        for flow in spec["flows"]
        if programs.is_program(flow)
    )
    return min(_MEMORY_BASE_MB + needed_mb, _MEMORY_MOST_MB)


def _buffer_bytes(flow: FlowSpec) -> int:
    source = flow["source"]
    return source["buffer_bytes"] if source["kind"] == "relay" else 0


def _queue_bytes(queue: LinkPart, packet_bytes: int) -> int:
    parameters: Mapping[str, Any] = queue["parameters"]
    limit = parameters["limit"]
    if isinstance(limit, dict) and "bytes" in limit:
        return int(limit["bytes"])
    return int(limit["packets"] if isinstance(limit, dict) else limit) * packet_bytes


def _base_rtt_ns(spec: Spec, flow: FlowSpec) -> int:
    links = [spec["links"][number] for number in (*flow["path"], *flow["reverse_path"])]
    return int(flow["access_delay_ns"] + sum(_longest_delay_ns(link["delay"]) for link in links))


def _longest_delay_ns(delay: DelaySpec) -> int:
    jitter = delay["jitter"]
    most_ns = 0 if jitter is None else jitter["quantiles"][-1]["value_ns"]
    return int(max(step["delay_ns"] for step in delay["steps"]) + most_ns)


def _machine_sysctls(spec: Spec) -> dict[str, str]:
    # Pages that all of TCP may use; by default a guest with little memory throttles itself.
    of_memory = (memory_mb(spec) << 20) // _PAGE_BYTES
    limits = f"{of_memory // 2} {of_memory * 3 // 4} {of_memory}"
    made = {
        "net.ipv4.tcp_mem": limits,
        # Packets between the two ends of a wire: of a burst, more than 1000 would be lost there.
        "net.core.netdev_max_backlog": str(_BACKLOG_PACKETS),
    }
    if any(flow["transport"] == "quic" for flow in spec["flows"]):
        made["net.core.rmem_default"] = made["net.core.rmem_max"] = str(_UDP_BUFFER_BYTES)
        made["net.core.wmem_default"] = made["net.core.wmem_max"] = str(_UDP_BUFFER_BYTES)
        made["net.ipv4.udp_mem"] = limits
    return made


def way_back_ns(spec: Spec, flow: FlowSpec) -> int:
    """Time that a small packet takes from a flow's receiver to its sender, if nothing waits."""
    links = [spec["links"][number]["delay"] for number in flow["reverse_path"]]
    return int(flow["access_delay_ns"]) + sum(int(one["steps"][0]["delay_ns"]) for one in links)


def _network(made: Topology) -> dict[str, Any]:
    return {
        "hosts": [asdict(host) for host in made.hosts.values()],
        "wires": [list(wire) for wire in made.wires],
        "queues": made.queues,
        "timetable": made.timetable,
    }


def continuations(spec: Spec) -> dict[int, int]:
    """Say for connections that end at a proxy which one goes on there."""
    found: dict[int, int] = {}
    for number, flow in enumerate(spec["flows"]):
        source = flow["source"]
        if source["kind"] == "relay":
            found[source["from"]] = number
    return found


def _owner(spec: Spec, number: int) -> FlowSpec:
    """Give the flow that a connection is a part of, over however many proxies its data came."""
    flow = spec["flows"][number]
    source = flow["source"]
    return _owner(spec, source["from"]) if source["kind"] == "relay" else flow


def _receiver_controller(flow: FlowSpec) -> str | None:
    """Tell which controller the receiver needs to echo marks; without it there is no ECN."""
    name: str = flow["controller"]["name"]
    return name if name in controllers.NEEDS_ECN and flow["ecn"] else None


def _read_bytes(flow: FlowSpec) -> int:
    """Amount that a receiver reads at once: of a window that grows, a part of the first one."""
    growing = flow["receive_window_autotuning"]
    window_bytes: int = flow["initial_receive_window_bytes" if growing else "receive_window_bytes"]
    return max(1, min(_READ_BYTES, window_bytes // _READ_PARTS))


def _flow(spec: Spec, number: int, controller: str) -> dict[str, Any]:
    flow = spec["flows"][number]
    portion = _read_bytes(flow)
    owner = _owner(spec, number)
    written = writes(owner, spec["duration_ns"])
    many = connections(spec, flow)
    sparing = portion == _READ_BYTES or flow["receive_window_autotuning"]
    return {
        "transport": "tcp",
        "sender": f"s{number}",
        "receiver": f"r{number}",
        "sender_address": sender_address(number),
        # Any that is free.
        "sender_port": 0,
        "receiver_address": receiver_address(number),
        "controller": controller,
        "receiver_controller": _receiver_controller(flow),
        "details": flow["controller"]["name"] in WITH_DETAILS,
        "read_bytes": portion,
        # Whole segments, so that none is short where a write ends.
        "write_bytes": _WRITE_BYTES - _WRITE_BYTES % packets.payload_bytes(flow),
        # All but a byte, see `guest/traffic.py`; but a segment that stays is a good part of a small
        # window.
        "read_most_bytes": _READ_BYTES - 1 if sparing else _EVERYTHING_BYTES,
        "after": flow["after"],
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
        # Of a trace the guest needs no more than what is in `writes`.
        "source": {"kind": "trace"} if flow["source"]["kind"] == "trace" else flow["source"],
        "segment_bytes": packets.payload_bytes(flow),
        "connections": many,
        "continues": continuations(spec).get(number),
        "spans_ns": [] if many else spans_ns(spec["seed"], flow, spec["duration_ns"]),
        "pages": pages(spec["seed"], flow, spec["duration_ns"]),
        "factors": factors(spec["seed"], flow, spec["duration_ns"]),
        "trip_ns": _way_back_ns(spec, flow),
        "sizes_bytes": [size for _, size in written]
        or ([] if many else sizes_bytes(spec["seed"], owner)),
        "writes": written,
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


def _way_back_ns(spec: Spec, flow: FlowSpec) -> int:
    """Add up the propagation from the receiver to the sender, as the run begins."""
    delays = (spec["links"][number]["delay"]["steps"][0] for number in flow["reverse_path"])
    return flow["access_delay_ns"] + sum(step["delay_ns"] for step in delays)


def _program_flow(spec: Spec, number: int) -> dict[str, Any]:
    """Let the server be the sender: the client, at the receiver, asks it for one file."""
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
        **programs.job(spec, flow, address, _file_bytes(spec, flow)),
    }


def _quic_flow(spec: Spec, number: int) -> dict[str, Any]:
    """Let two processes with the engine in them be the ends."""
    flow = spec["flows"][number]
    return {
        "sender": f"s{number}",
        "receiver": f"r{number}",
        "sender_address": sender_address(number),
        "receiver_address": receiver_address(number),
        "engine": str(engine_path()),
        "after": flow["after"],
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
    }


def engine_path() -> Path | None:
    """Find the compiled engine, which the ends of a QUIC flow load in the guest."""
    found = importlib.util.find_spec("jostle._core")
    return None if found is None or found.origin is None else Path(found.origin)


def _file_bytes(spec: Spec, flow: FlowSpec) -> int:
    if flow["source"]["kind"] == "fixed":
        return sizes_bytes(spec["seed"], flow)[0]
    rates_bps = [playback.peak_bps(spec["links"][number]) for number in flow["path"]]
    if flow["nic_rate_bps"] is not None:
        rates_bps.append(flow["nic_rate_bps"])
    return min(rates_bps) * spec["duration_ns"] // 8_000_000_000 + _SPARE_BYTES
