"""Access lines on a real kernel, compared with the simulator: CAKE's tins and cells, strict
priority, and framing of the wire."""

from __future__ import annotations

from typing import Any

import pytest
from jostle.backends.kernel import capabilities
from jostle.backends.kernel.topology import Burst, Machine, topology
from selection import one_in

from backends_kernel.kernel_specs import spec_of

# Two uploads and a call; each with its own codepoint.
SHARED = """
duration = "24 s"
[phases]
steady = ["4 s", "24 s"]
[bottleneck]
rate  = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name       = "plain"
controller = "cubic"
rtt        = "40 ms"
[[flows]]
name       = "marked"
controller = "cubic"
rtt        = "40 ms"
start      = "30 ms" # flows that start together share by which of them meets the first drop
dscp       = "AF41"
[[flows]]
name       = "call"
controller = "none"
rtt        = "40 ms"
dscp       = "EF"
source     = { kind = "cbr", codec = "g711" }
"""
PLAIN, MARKED, CALL = range(3)
CLASSES = (
    '{ kind = "prio", classes = { voice = { dscp = ["EF", "CS6"] }, '
    'video = { dscp = "AF41", queue = { kind = "codel", limit = "1000 packets" } }, '
    'default = { queue = "fq_codel" } } }'
)


def steady(record: Any, kind: str, position: int) -> dict[str, Any]:
    found: dict[str, Any] = record.summary[kind][position]["phases"]["steady"]
    return found


QUEUES = {
    "one tin": '{ kind = "cake", rate = "8 Mbit/s" }',
    "diffserv3": '{ kind = "cake", rate = "8 Mbit/s", diffserv = "diffserv3" }',
    "diffserv4": '{ kind = "cake", rate = "8 Mbit/s", diffserv = "diffserv4" }',
    "diffserv8": '{ kind = "cake", rate = "8 Mbit/s", diffserv = "diffserv8" }',
    "precedence": '{ kind = "cake", rate = "8 Mbit/s", diffserv = "precedence" }',
    "unlimited tins": '{ kind = "cake", diffserv = "diffserv4" }',
    "cells": '{ kind = "cake", rate = "8 Mbit/s", overhead = 40, atm = "atm" }',
    "codewords": '{ kind = "cake", rate = "8 Mbit/s", overhead = 30, mpu = 64, atm = "ptm" }',
    "priority of tc": '{ kind = "prio", limit = "60 packets" }',
    "priority by DSCP": CLASSES,
}


@pytest.mark.parametrize("queue", one_in(4, QUEUES.values()), ids=list(QUEUES))
def test_queues_share_by_codepoint_as_linux_does(queue, backend, simulator):
    spec = spec_of(SHARED, {"bottleneck.queue": queue})
    runs = backend.run(spec), simulator.run(spec)
    for flow in (PLAIN, MARKED):
        theirs, ours = (steady(run, "flows", flow)["throughput_bps"] for run in runs)
        # The time of a single drop moves an upload's rate by 0.1 Mbit/s.
        assert theirs == pytest.approx(ours, rel=0.05, abs=150_000)
    theirs, ours = (steady(run, "flows", CALL)["one_way_delay_mean_s"] for run in runs)
    assert theirs == pytest.approx(ours, rel=0.02, abs=150e-6)
    theirs, ours = (steady(run, "links", 0)["utilisation"] for run in runs)
    assert theirs == pytest.approx(ours, abs=0.015)


def test_tins_mark_as_linux_does(backend, simulator):
    changed = {
        "bottleneck.queue": QUEUES["diffserv4"],
        "flows.plain.ecn": "true",
        "flows.marked.ecn": "true",
    }
    spec = spec_of(SHARED, changed)
    links = [steady(run, "links", 0) for run in (backend.run(spec), simulator.run(spec))]
    assert [link["dropped_packets"] for link in links] == [0, 0]
    theirs, ours = (link["marked_cobalt_packets"] for link in links)
    assert ours > 15
    assert theirs == pytest.approx(ours, rel=0.15)


def test_a_codepoint_is_that_of_quic_as_well(backend, simulator):
    changed = {
        "duration": '"9 s"',
        "phases.steady": '["4 s", "9 s"]',
        "bottleneck.queue": CLASSES,
        "flows.marked.transport": '"quic"',
        "flows.plain.receive_window": '"20 kB"',
    }
    spec = spec_of(SHARED, changed)
    for run in (backend.run(spec), simulator.run(spec)):
        # Priority over the plain flow, which is not paced by a window of its own.
        assert steady(run, "flows", MARKED)["throughput_bps"] > 8e6
        assert steady(run, "flows", PLAIN)["throughput_bps"] < 1.5e6


LINES = {
    "ADSL": '"pppoe-llcsnap"',
    "VDSL2": '"bridged-ptm"',
    "cable": '"docsis"',
    "less than Ethernet": "{ overhead = -20 }",
}


@pytest.mark.parametrize("framing", one_in(2, LINES.values()), ids=list(LINES))
@pytest.mark.parametrize("frames", one_in(2, ['{ access_delay = "2 ms", size = "20 kB" }', "none"]))
def test_lines_send_as_many_packets_as_in_the_simulator(framing, frames, backend, simulator):
    frames = frames if frames.startswith("{") else f'"{frames}"'
    changed = {"bottleneck.framing": framing, "bottleneck.frame_aggregation": frames}
    spec = spec_of(SHARED, changed)
    runs = backend.run(spec), simulator.run(spec)
    links = [steady(run, "links", 0) for run in runs]
    uploads = (PLAIN, MARKED)
    sent = [sum(steady(run, "flows", flow)["throughput_bps"] for flow in uploads) for run in runs]
    assert sent[0] == pytest.approx(sent[1], rel=0.003)
    # Whatever a packet is on the wire, a line that is never idle is used completely.
    for link in links:
        assert link["utilisation"] == pytest.approx(1, abs=0.005)
    theirs, ours = (steady(run, "flows", CALL)["one_way_delay_mean_s"] for run in runs)
    assert theirs == pytest.approx(ours, rel=0.05)


def test_tc_is_told_codepoints_and_cells():
    queue = '{ kind = "cake", rate = "8 Mbit/s", diffserv = "diffserv4", atm = "ptm", mpu = 64 }'
    made = topology(spec_of(SHARED, {"bottleneck.queue": queue}), Machine(Burst(200, 0)))
    assert any(
        "cake bandwidth 8000000bit diffserv4 flows" in line and "overhead 14 mpu 64 ptm" in line
        for line in made.hosts["a0"].tc
    )
    [mark] = [line for line in made.hosts["s2"].tc if "pedit" in line]
    assert "ip tos set 0xb8 retain 0xfc" in mark
    assert not any("pedit" in line for line in made.hosts["s0"].tc)
    made = topology(spec_of(SHARED, {"bottleneck.queue": CLASSES}), Machine(Burst(200, 0)))
    lines = made.hosts["a0"].tc
    assert any("prio bands 3 priomap 0 0" in line for line in lines)
    codepoints = [line for line in lines if "dsfield" in line]
    assert [line.split("dsfield ")[1] for line in codepoints] == [
        "0xb8 0xfc flowid 10:1",
        "0xc0 0xfc flowid 10:1",
        "0x88 0xfc flowid 10:2",
    ]
    # A flow without a codepoint has a filter for its address.
    assert sum("ip dst" in line for line in lines) == 1


def test_framing_needs_the_virtual_time_kernel():
    spec = spec_of(SHARED, {"bottleneck.framing": '"docsis"'})
    problems = capabilities.problems(spec, {}, "realtime")
    assert "bottleneck.framing" in [problem.key for problem in problems]
