"""Proxies that split connections, on a real kernel beside the simulator."""

from __future__ import annotations

import pytest

from backends_kernel.kernel_specs import spec_of

SPLIT = """
duration = "12 s"
[phases]
steady = ["6 s", "12 s"]
[[links]]
name = "near"
rate = "50 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "500 kB" }
[[links]]
name = "far"
rate = "10 Mbit/s"
delay = "50 ms"
queue = { kind = "drop_tail", limit = "125 kB" }
[[flows]]
name = "flow"
controller = "cubic"
rtt = "120 ms"
path = ["near", "far"]
proxy = { link = "far", controller = "hybla", buffer = "500 kB", rtt = "20 ms" }
"""


def test_both_connections_are_those_of_the_simulator(backend, simulator):
    spec = spec_of(SPLIT)
    ours, theirs = (run.summary["flows"] for run in (simulator.run(spec), backend.run(spec)))
    assert [flow["name"] for flow in theirs] == ["flow", "flow@far"]
    assert [flow["controller"] for flow in theirs] == ["cubic", "hybla"]
    for ours_of, theirs_of in zip(ours, theirs, strict=True):
        before, after = (flow["phases"]["steady"] for flow in (ours_of, theirs_of))
        assert after["goodput_bps"] == pytest.approx(before["goodput_bps"], rel=0.02)
    behind = [flows[1]["phases"]["steady"]["rtt_mean_s"] for flows in (ours, theirs)]
    assert behind[1] == pytest.approx(behind[0], rel=0.05)
    # Who sends hears of the short way alone.
    assert theirs[0]["phases"]["overall"]["rtt_min_s"] == pytest.approx(0.02, abs=0.002)


def test_a_download_is_over_when_the_last_receiver_has_it(backend, simulator):
    # Hybla's slow start floods the link, and how that is repaired differs from run to run.
    cubic = {"flows.flow.size": '"2 MB"', "flows.flow.proxy.controller": '"cubic"'}
    spec = spec_of(SPLIT, cubic)
    ours, theirs = (run.summary["flows"] for run in (simulator.run(spec), backend.run(spec)))
    assert theirs[0]["completion_time_s"] == pytest.approx(ours[0]["completion_time_s"], rel=0.03)
    # 2 MB over 10 Mbit/s, long after the proxy has acknowledged them.
    assert theirs[0]["completion_time_s"] > 1.6


def test_a_proxy_holds_no_more_than_its_buffer(backend):
    phase = {"duration": '"6 s"', "phases.steady": '["3 s", "6 s"]'}
    spec = spec_of(SPLIT, {"flows.flow.proxy.buffer": '"100 kB"', **phase})
    flow, behind = (flow["phases"]["steady"] for flow in backend.run(spec).summary["flows"])
    # What is not acknowledged yet is held: 100 kB for each round trip of 100 ms.
    assert behind["goodput_bps"] == pytest.approx(100e3 * 8 / 0.1, rel=0.05)
    assert flow["goodput_bps"] == pytest.approx(behind["goodput_bps"], rel=0.05)
