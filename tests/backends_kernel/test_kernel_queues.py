"""Queues of the registry beside Linux's own, on a real kernel in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend

from backends_kernel.kernel_specs import spec_of

SHARED = """
duration = "20 s"
[phases]
late = ["5 s", "20 s"]
[bottleneck]
rate = "20 Mbit/s"
queue = "drop_tail"
[[flows]]
name = "cubic"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "reno"
controller = "reno"
rtt = "40 ms"
start = "100 ms"
"""


def both(backend: KernelBackend, queue: str, **flow: str) -> list[Any]:
    overrides = {"bottleneck.queue": queue}
    overrides |= {f"flows.*.{key}": value for key, value in flow.items()}
    spec = spec_of(SHARED, overrides)
    return [one.run(spec) for one in (backend, SimBackend())]


def late(record: Any, flow: int) -> dict[str, Any]:
    found: dict[str, Any] = record.summary["flows"][flow]["phases"]["late"]
    return found


def link(record: Any) -> dict[str, Any]:
    found: dict[str, Any] = record.summary["links"][0]["phases"]["late"]
    return found


def goodputs(record: Any) -> list[float]:
    return [late(record, flow)["goodput_bps"] for flow in (0, 1)]


# Rate that is left to flows by a bucket of 10 Mbit/s on a link of 20 Mbit/s.
SHAPED_BPS = 10e6 * 1448 / 1514


@pytest.mark.parametrize(
    "limit", ['"100 kB"', pytest.param('"66 packets"', marks=pytest.mark.slow)]
)
def test_a_shaper_sends_at_its_rate(limit, backend):
    queue = f'{{ kind = "tbf", rate = "10 Mbit/s", burst = "15 kB", limit = {limit} }}'
    real, simulated = both(backend, queue)
    for record in (real, simulated):
        assert sum(goodputs(record)) == pytest.approx(SHAPED_BPS, rel=0.005)
    delays = [link(record)["queueing_delay_mean_s"] for record in (real, simulated)]
    assert delays[0] == pytest.approx(delays[1], rel=0.1)
    lost = [link(record)["dropped_overflow_packets"] for record in (real, simulated)]
    assert lost[0] == pytest.approx(lost[1], rel=0.4)


PAUSES = """
duration = "4 s"
[bottleneck]
rate = [["0 s", "10 Mbit/s"], ["1 s", "0 bit/s"], ["1.5 s", "10 Mbit/s"]]
queue = { kind = "drop_tail", limit = "20 packets" }
[[flows]]
name = "one"
controller = "reno"
rtt = "40 ms"
"""


def test_packets_wait_while_a_link_pauses(backend):
    """Little's law: the mean queue is the throughput times the mean delay, as in the simulator."""
    spec = spec_of(PAUSES)
    for record in (backend.run(spec), SimBackend().run(spec)):
        found = record.summary["links"][0]["phases"]["overall"]
        throughput_bps = record.summary["flows"][0]["phases"]["overall"]["throughput_bps"]
        little_s = found["queue_length_mean_bytes"] * 8 / throughput_bps
        assert found["queueing_delay_mean_s"] == pytest.approx(little_s, rel=0.02)


@pytest.mark.parametrize("burst", ["20 kB", "100 kB"])
def test_a_policer_costs_tcp_the_same(burst, backend):
    queue = f'{{ kind = "policer", rate = "10 Mbit/s", burst = "{burst}", limit = "100 kB" }}'
    real, simulated = both(backend, queue)
    totals = [sum(goodputs(record)) for record in (real, simulated)]
    assert totals[0] == pytest.approx(totals[1], rel=0.05)
    assert totals[0] < SHAPED_BPS
    for record in (real, simulated):
        # Nothing waits: what the bucket lets through is less than what the link carries.
        assert link(record)["queueing_delay_mean_s"] < 0.002
        assert link(record)["dropped_policer_packets"] > 0
        assert link(record)["dropped_overflow_packets"] == 0
    policed = [link(record)["dropped_policer_packets"] for record in (real, simulated)]
    assert policed[0] == pytest.approx(policed[1], rel=0.25)


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        pytest.param('{ kind = "cake", rate = "18 Mbit/s" }', "cobalt", marks=pytest.mark.slow),
        ('"cake"', "cobalt"),
        ('"fq_pie"', "pie"),
        pytest.param(
            '{ kind = "sfq", limit = "100 packets", depth = "60 packets" }',
            "overflow",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_queues_by_flow_share_and_delay_as_linux(queue, reason, backend):
    real, simulated = both(backend, queue)
    rate_bps = 18e6 if "18" in queue else 20e6
    for record in (real, simulated):
        # Reno, after a drop, may leave the link idle for a moment.
        assert sum(goodputs(record)) == pytest.approx(rate_bps * 1448 / 1514, rel=0.06)
    for ours, theirs in zip(goodputs(simulated), goodputs(real), strict=True):
        assert ours == pytest.approx(theirs, rel=0.05)
    for flow in (0, 1):
        delays = [late(record, flow)["rtt_mean_s"] for record in (real, simulated)]
        assert delays[0] == pytest.approx(delays[1], rel=0.1)
    assert all(link(record)[f"dropped_{reason}_packets"] > 0 for record in (real, simulated))


@pytest.mark.parametrize("queue", ['"cake"', '{ kind = "fq_pie", ecn = true }'])
def test_queues_by_flow_mark(queue, backend):
    real, simulated = both(backend, queue, ecn="true")
    marks = [link(record)["marked_packets"] for record in (real, simulated)]
    assert marks[0] == pytest.approx(marks[1], rel=0.25)
    assert min(marks) > 0
