"""Applications that read slowly, on a real kernel beside the simulator."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pcapng
import pytest
from jostle.backends.kernel import job
from jostle.kernel_images import Image

from backends_kernel.kernel_specs import spec_of

SLOW = """
duration = "14 s"
capture = true
[phases]
reads = ["2 s", "6 s"]
paused = ["7 s", "10 s"]
again = ["10 s", "14 s"]
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
receive_window = "500 kB"
reader = { rate = "8 Mbit/s", pauses = [{ at = "6 s", duration = "4 s" }] }
"""
# A second over QUIC takes thirty times the CPU time of one over TCP.
QUIC = {
    "flows.one.transport": '"quic"',
    "duration": '"8 s"',
    "phases.reads": '["1 s", "3 s"]',
    "phases.paused": '["4 s", "5 s"]',
    "phases.again": '["6 s", "8 s"]',
    "flows.one.reader": '{ rate = "8 Mbit/s", pauses = [{ at = "3 s", duration = "2 s" }] }',
}


def phases(record: Any) -> dict[str, Any]:
    found: dict[str, Any] = record.summary["flows"][0]["phases"]
    return found


def received_bytes(record: Any) -> int:
    """What the receiver had acknowledged in the pause."""
    capture = pcapng.read(record.captures["one.receiver"])
    first = capture.of(1)[0]
    acks = [it for it in capture.of(2) if it.time_ns < first.time_ns + 9_500_000_000]
    return (acks[-1].acknowledgment - first.sequence - 1) % 2**32


def probes(record: Any) -> list[float]:
    """When the sender probed the window, which is not at its first ACK."""
    packets = pcapng.read(record.captures["one.sender"]).of(1)
    empty = [it.time_ns for it in packets[2:] if not it.payload and not it.flags & pcapng.SYN]
    return [(at - packets[0].time_ns) / 1e9 for at in empty if at > packets[0].time_ns + 10**9]


@pytest.mark.parametrize("transport", [{}, QUIC], ids=["tcp", "quic"])
def test_a_slow_reader_limits_both_alike(transport, backend, simulator):
    spec = spec_of(SLOW, transport)
    theirs, ours = (phases(run.run(spec)) for run in (backend, simulator))
    for phase in ("reads", "again", "overall"):
        goodput = ours[phase]["goodput_bps"]
        assert theirs[phase]["goodput_bps"] == pytest.approx(goodput, rel=0.03), phase
    # In the pause nothing arrives.
    assert theirs["paused"]["goodput_bps"] == ours["paused"]["goodput_bps"] == 0
    assert ours["reads"]["goodput_bps"] == pytest.approx(8e6, rel=0.03)
    if not transport:
        limited = [it["overall"]["receive_window_limited"] for it in (theirs, ours)]
        assert limited[0] == pytest.approx(limited[1], abs=0.03)
        assert limited[1] > 0.9


def test_a_window_closes_and_is_probed_as_on_the_kernel(backend, simulator):
    records = [run.run(spec_of(SLOW)) for run in (backend, simulator)]
    theirs, ours = (received_bytes(record) for record in records)
    assert theirs == pytest.approx(ours, rel=0.01)
    # More than 500 kB beyond what was read, because the segments share their memory.
    assert ours > 6_000_000 + 800_000
    theirs_at, ours_at = (probes(record) for record in records)
    assert len(theirs_at) == len(ours_at) == 3
    # The first probe of Linux is a part of a segment, which the simulator does not have; then both
    # double their intervals.
    theirs_gaps, ours_gaps = ([b - a for a, b in pairwise(at)] for at in (theirs_at, ours_at))
    assert theirs_gaps == pytest.approx(ours_gaps, rel=0.1)


def test_responses_are_complete_when_they_are_read(backend, simulator):
    source = '{ kind = "request_response", size = "1 MB", think_time = "0 s", count = 3 }'
    spec = spec_of(SLOW, {"flows.one.source": source})
    theirs, ours = (phases(run.run(spec))["overall"] for run in (backend, simulator))
    assert theirs["responses"] == ours["responses"] == 3
    times = [it["response_time_mean_s"] for it in (theirs, ours)]
    assert times[0] == pytest.approx(times[1], rel=0.03)


@pytest.mark.parametrize(
    ("keys", "sizes"),
    [
        ({"receive_window_bytes": 32 << 20}, (128 << 10, (128 << 10) - 1)),
        ({"receive_window_bytes": 1 << 20}, (8192, 8191)),
        ({"receive_window_bytes": 200_000}, (1562, 8 << 20)),
        ({"receive_window_autotuning": True, "initial_receive_window_bytes": 80}, (10, 131_071)),
    ],
)
def test_unread_data_are_a_small_part_of_the_receive_window(defaults, keys, sizes):
    spec = spec_of()
    spec["flows"][0] |= keys
    flow = job.build(spec, Image("virtual", None, "6.1.0"), defaults)["flows"][0]
    assert (flow["read_bytes"], flow["read_most_bytes"]) == sizes


WINDOW = """
duration = "8 s"
[phases]
steady = ["3 s", "8 s"]
[bottleneck]
rate = "100 Mbit/s"
queue = { kind = "drop_tail", limit = "1000 packets" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "80 ms"
receive_window = "200 kB"
"""


def test_a_window_is_offered_as_in_the_simulator(backend, simulator):
    theirs, ours = (
        run.run(spec_of(WINDOW)).summary["flows"][0]["phases"]["steady"]["goodput_bps"]
        for run in (backend, simulator)
    )
    assert theirs == pytest.approx(ours, rel=0.02)
