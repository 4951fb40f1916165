"""A RunSpec as a job for the guest program: plain data, with every decision taken."""

from __future__ import annotations

import math
from typing import Any

from jostle.backends.base import Spec
from jostle.backends.kernel import captures, controllers
from jostle.backends.kernel.modules import files, needed
from jostle.backends.kernel.spans import spans_ns
from jostle.backends.kernel.topology import (
    Burst,
    Topology,
    receiver_address,
    sender_address,
    topology,
)
from jostle.kernel import Image, Kind

WITH_DETAILS = ("bbr", "vegas")
"""Controllers whose inside TCP_CC_INFO shows."""

# What a link may make up for if it was late. In virtual time that is a few microseconds, because
# reading the clock takes one (arch/um/kernel/time.c, `timer_read`), and more would let an idle link
# send two packets at once.
_BURSTS: dict[Kind, Burst] = {
    "virtual": Burst(200, 0),
    "realtime": Burst(1600, 1000),
    "native": Burst(1600, 100),
}

# Each sample costs some system calls per flow.
_STEP_PER_FLOW_NS = 10_000_000
_LEAST_STEP_NS, _LONGEST_STEP_NS = 10_000_000, 50_000_000

# Receivers wake up once per so many bytes, or so many parts of their window if that is small.
_READ_BYTES = 128 << 10
_READ_PARTS = 8

_MEMORY_BASE_MB, _MEMORY_MOST_MB = 512, 8192
# Kernel memory per byte in flight: the sender's copy, and buffers around each packet.
_MEMORY_PER_BYTE = 4
_PAGE_BYTES = 4096


def build(spec: Spec, image: Image, defaults: controllers.Defaults) -> dict[str, Any]:
    """Translate a run that has no problems (see `capabilities`)."""
    made = topology(spec, _BURSTS[image.kind])
    parameters, _ = controllers.module_parameters(spec["flows"], defaults)
    return {
        "duration_ns": spec["duration_ns"],
        "interval_ns": spec["interval_ns"],
        "samples_per_interval": samples_per_interval(spec),
        "cuts_ns": cuts_ns(spec),
        "modules": [] if image.modules is None else files(needed(spec), image.modules),
        "controllers": sorted({flow["controller"]["name"] for flow in spec["flows"]}),
        "parameters": parameters,
        # Parameters and memory limits of this machine are not ours.
        "may_set_parameters": image.kind != "native",
        "sysctls": {} if image.kind == "native" else _memory_sysctls(spec),
        **_network(made),
        "captures": captures.wanted(spec),
        "flows": [_flow(spec, number) for number in range(len(spec["flows"]))],
    }


def samples_per_interval(spec: Spec) -> int:
    """Into how many parts samples divide an interval of the series."""
    target_ns = _STEP_PER_FLOW_NS * len(spec["flows"])
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
    for link in spec["links"]:
        capacity = link["capacity"]
        steps = capacity.get("steps", [capacity])
        rate_bps = max(step["rate_bps"] for step in steps)
        network_bytes += int(rate_bps) * longest_ns // (8 * 10**9) + _queue_bytes(link["queue"])
    windows_bytes = sum(int(flow["receive_window_bytes"]) for flow in spec["flows"])
    needed_mb = _MEMORY_PER_BYTE * min(network_bytes, windows_bytes) >> 20
    # Each namespace, and each sender's unsent data.
    needed_mb += 4 * len(spec["flows"])
    needed_mb += captures.memory_bytes(spec) >> 20
    return min(_MEMORY_BASE_MB + needed_mb, _MEMORY_MOST_MB)


def _queue_bytes(queue: dict[str, Any]) -> int:
    limit = queue.get("limit", {"packets": queue.get("limit_packets", 0)})
    return int(limit.get("bytes", limit.get("packets", 0) * 1514))


def _base_rtt_ns(spec: Spec, flow: dict[str, Any]) -> int:
    links = [spec["links"][number] for number in (*flow["path"], *flow["reverse_path"])]
    delays = (link["delay"]["steps"][0]["delay_ns"] for link in links)
    return int(flow["access_delay_ns"] + sum(delays))


def _memory_sysctls(spec: Spec) -> dict[str, str]:
    # Pages that all of TCP may use; by default a guest with little memory throttles itself.
    pages = (memory_mb(spec) << 20) // _PAGE_BYTES
    return {"net.ipv4.tcp_mem": f"{pages // 2} {pages * 3 // 4} {pages}"}


def _network(made: Topology) -> dict[str, Any]:
    return {
        "hosts": [
            {"name": host.name, "sysctls": host.sysctls, "ip": host.ip, "tc": host.tc}
            for host in made.hosts.values()
        ],
        "wires": [list(wire) for wire in made.wires],
        "queues": made.queues,
        "timetable": made.timetable,
    }


def _flow(spec: Spec, number: int) -> dict[str, Any]:
    flow = spec["flows"][number]
    window_bytes = flow["receive_window_bytes"]
    return {
        "sender": f"s{number}",
        "receiver": f"r{number}",
        "sender_address": sender_address(number),
        "receiver_address": receiver_address(number),
        "controller": flow["controller"]["name"],
        "details": flow["controller"]["name"] in WITH_DETAILS,
        "read_bytes": max(1, min(_READ_BYTES, window_bytes // _READ_PARTS)),
        "start_ns": flow["start_ns"],
        "stop_ns": flow["stop_ns"],
        "source": flow["source"],
        "spans_ns": spans_ns(spec["seed"], flow, spec["duration_ns"]),
    }
