"""Connections with data in both directions, on a real kernel beside the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from selection import one_in

from backends_kernel.kernel_specs import spec_of

BOTH = """
duration = "30 s"
[phases]
steady = ["10 s", "30 s"]
[downlink]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
[uplink]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name = "down"
controller = "cubic"
rtt = "40 ms"
timers = { hz = 1000 }
[[flows]]
name = "up"
controller = "cubic"
connection_of = "down"
"""
ACK_BITS = 66 * 8
BBR = {"flows.down.controller": '"bbr"', "flows.up.controller": '"bbr"'}
RENO = {"flows.down.controller": '"reno"', "flows.up.controller": '"reno"'}


def queues(kind: str) -> dict[str, str]:
    queue = f'{{ kind = "{kind}", limit = "1000 packets" }}'
    return {"downlink.queue": queue, "uplink.queue": queue}


def slow_uplink(rate: str, limit: str) -> dict[str, str]:
    return {"uplink.rate": f'"{rate}"', "uplink.queue.limit": f'"{limit}"'}


# Condition, and the tolerances of the goodputs, RTTs and retransmissions.
CONDITIONS: dict[str, tuple[dict[str, str], tuple[float, float, float]]] = {
    "symmetric": ({}, (0.02, 0.02, 12)),
    "bbr": (BBR, (0.03, 0.03, 500)),
    "uplink of a tenth": (slow_uplink("2 Mbit/s", "30 kB"), (0.12, 0.02, 12)),
    "uplink of a fiftieth": (
        {"downlink.rate": '"50 Mbit/s"', **slow_uplink("1 Mbit/s", "15 kB")},
        (0.02, 0.02, 30),
    ),
    "slow uplink with CoDel": (
        {"uplink.rate": '"2 Mbit/s"', "uplink.queue": '{ kind = "codel", limit = "1000 packets" }'},
        (0.02, 0.02, 12),
    ),
    "fq_codel": (queues("fq_codel"), (0.02, 0.05, 12)),
    "loss": ({"downlink.loss": '"0.5 %"', "uplink.loss": '"0.5 %"'}, (0.02, 0.05, 12)),
    "reno": ({"flows.down.rtt": '"80 ms"', **RENO}, (0.15, 0.05, 60)),
    "cubic and bbr": ({"flows.up.controller": '"bbr"'}, (0.02, 0.05, 300)),
}
STARTS_MS = range(0, 400, 50)
"""Starts of the upload. Which packets full queues drop depends on it."""


def pure_acks_per_s(record: Any, flow: int) -> float:
    """What the sender of a flow sends in addition to its data: ACKs without data."""
    rate_bps = record.spec["links"][flow]["capacity"]["rate_bps"]
    carried_bps = record.summary["links"][flow]["phases"]["steady"]["utilisation"] * rate_bps
    data_bps = record.summary["flows"][flow]["phases"]["steady"]["throughput_bps"]
    return float(carried_bps - data_bps) / ACK_BITS


@pytest.mark.parametrize("condition", one_in(2, CONDITIONS))
def test_both_directions_are_as_on_the_kernel(condition, backend, simulator):
    """The kernel is in the range of the simulator's runs with other starts, widened by a tolerance.

    Two differences that remain cannot be seen in it: Linux shortens segments by their SACK blocks
    (`tcp_output.c::tcp_current_mss`), and the rest of a socket buffer is a short segment then.
    """
    overrides, (goodput, rtt, retransmitted) = CONDITIONS[condition]
    theirs = backend.run(spec_of(BOTH, overrides)).summary["flows"]
    starts = [overrides | {"flows.up.start": f'"{start} ms"'} for start in STARTS_MS]
    ours = [simulator.run(spec_of(BOTH, each)).summary["flows"] for each in starts]
    for flow in (0, 1):
        for phase, measure, relative, absolute in (
            ("steady", "goodput_bps", goodput, 0.0),
            ("steady", "rtt_mean_s", rtt, 0.0),
            ("steady", "rtt_p95_s", rtt, 0.0),
            ("overall", "retransmitted_packets", 0.0, retransmitted),
        ):
            found = [each[flow]["phases"][phase][measure] for each in ours]
            least, most = min(found) * (1 - relative), max(found) * (1 + relative)
            linux = theirs[flow]["phases"][phase][measure]
            assert least - absolute <= linux <= most + absolute, (measure, found)


def test_data_carry_the_acks_as_on_the_kernel(backend, simulator):
    spec = spec_of(BOTH)
    theirs, ours = backend.run(spec), simulator.run(spec)
    for flow in (0, 1):
        acks = pure_acks_per_s(ours, flow)
        assert acks == pytest.approx(pure_acks_per_s(theirs, flow), abs=60)
        # 1,600 data segments per second, of which an end without data acknowledges every second.
        assert 50 < acks < 300


def test_an_end_without_data_acknowledges_every_second_segment(backend, simulator):
    spec = spec_of(BOTH, {"flows.up.size": '"14480 B"'})
    for run in (backend, simulator):
        record = run.run(spec)
        assert pure_acks_per_s(record, 1) == pytest.approx(1650 / 2, rel=0.1)
        up = record.summary["flows"][1]
        assert up["phases"]["overall"]["goodput_bps"] == pytest.approx(14_480 * 8 / 30, rel=0.01)


def test_messages_in_both_directions_take_as_long_as_on_the_kernel(backend, simulator):
    def messages(size: str, think: str) -> str:
        return f'{{ kind = "request_response", size = "{size}", think_time = "{think}" }}'

    sources = {
        "flows.down.source": messages("50 kB", "30 ms"),
        "flows.up.source": messages("20 kB", "100 ms"),
    }
    spec = spec_of(BOTH, sources)
    theirs, ours = backend.run(spec), simulator.run(spec)
    for flow in (0, 1):
        linux, own = (it.summary["flows"][flow]["phases"]["steady"] for it in (theirs, ours))
        times = [it["response_time_mean_s"] for it in (linux, own)]
        assert times[0] == pytest.approx(times[1], rel=0.02)
        assert own["responses"] == pytest.approx(linux["responses"], rel=0.08)


def test_a_slow_reader_limits_one_direction_on_both(backend, simulator):
    overrides = {
        "flows.up.reader": '{ rate = "4 Mbit/s" }',
        "flows.up.receive_window": '"300 kB"',
        "flows.up.pacing": '"fq"',
    }
    spec = spec_of(BOTH, overrides)
    for run in (backend, simulator):
        down, up = (it["phases"]["steady"] for it in run.run(spec).summary["flows"])
        assert up["goodput_bps"] == pytest.approx(4e6, rel=0.03)
        assert up["receive_window_limited"] > 0.8
        assert down["goodput_bps"] > 17e6
        assert down["receive_window_limited"] < 0.02


def test_a_reply_follows_its_request_on_both(backend, simulator):
    overrides = {"flows.down.size": '"100 kB"', "flows.up.size": '"200 kB"'}
    overrides["flows.up.after"] = '"down"'
    spec = spec_of(BOTH, overrides)
    theirs, ours = (
        [flow["completion_time_s"] for flow in run.run(spec).summary["flows"]]
        for run in (backend, simulator)
    )
    assert theirs == pytest.approx(ours, rel=0.03)


def test_faults_by_flow_are_refused(backend):
    rule = '{ packets = [{ flow = "up", lose = [10] }] }'
    spec = spec_of(BOTH, {"uplink.faults": rule})
    with pytest.raises(Exception, match="both flows of a connection have the same addresses"):
        backend.check(spec)
