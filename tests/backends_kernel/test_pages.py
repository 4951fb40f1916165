"""Browsers on a real kernel beside the simulator."""

from __future__ import annotations

import json

import pytest
from jostle import _core
from jostle.backends.kernel.web_pages import measures, pages

from backends_kernel.kernel_specs import spec_of

WEB = """
duration = "60 s"
[downlink]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[uplink]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "web"
controller = "cubic"
rtt = "40 ms"
start = "500 ms"
source = { kind = "web", think_time = { distribution = "exponential", mean = "2 s" } }
"""

# Two full segments, and no time but that of the network.
SMALL = (
    '{ kind = "web", main_object = "1448 B", object_count = 6, object_size = "1448 B", '
    'parse_time = "0 s", think_time = "1 s"'
)


@pytest.mark.parametrize(
    "source",
    [
        '{ kind = "web", think_time = "10 ms", parse_time = "0 s", pages = 30 }',
        '{ kind = "web", think_time = { distribution = "exponential", mean = "10 ms" }, '
        "pages = 30 }",
        '{ kind = "web", think_time = "1 ms", main_object = "9 kB", object_count = 3, '
        'object_size = "2 kB", pages = 30 }',
        '{ kind = "web", think_time = "1 ms", main_object = "9 kB", parse_time = "1 ms", '
        'object_count = 3, object_size = "1 B"'
        ", pages = 30 }",
    ],
    ids=["parse is none", "drawn", "times alone", "nothing drawn"],
)
def test_pages_are_those_of_the_simulator(source):
    spec = spec_of(WEB, {"flows.web.source": source})
    flow, duration_ns = spec["flows"][0], spec["duration_ns"]
    summary = json.loads(_core.run(json.dumps(spec)).summary)["flows"][0]
    assert summary["pages"] == 30
    drawn = pages(spec["seed"], flow, duration_ns)
    whole = [drawn[number % len(drawn)] for number in range(30)]
    size_bytes = sum(main_bytes + sum(others) for main_bytes, others, _, _ in whole)
    delivered_bps = summary["phases"]["overall"]["goodput_bps"]
    assert delivered_bps * duration_ns / 8e9 == pytest.approx(size_bytes, abs=1)


def test_there_are_pages_enough():
    spec = spec_of(WEB)
    flow = spec["flows"][0]
    drawn = pages(1, flow, 3600 * 10**9)
    times_ns = [parse_ns + think_ns for _, _, parse_ns, think_ns in drawn]
    assert sum(times_ns[:-1]) < 3600 * 10**9 <= sum(times_ns)
    assert drawn[:20] == pages(1, flow, 60 * 10**9)[:20] != pages(2, flow, 60 * 10**9)[:20]
    assert pages(1, {"name": "bulk", "source": {"kind": "bulk"}}, 10**9) == []


def test_pages_count_that_were_whole():
    s = 10**9
    loads = [(0, s), (2 * s, 3 * s), (6 * s, 5 * s), (8 * s, None), (11 * s, None)]
    assert measures(loads, 10 * s) == {
        "page_load_time_p50_s": 2.0,
        "page_load_time_mean_s": 2.0,
        "page_load_time_p95_s": pytest.approx(2.9),
        "pages": 2.0,
        "pages_unfinished": 2.0,
    }
    assert measures([], s)["page_load_time_p50_s"] is None


def test_pages_take_as_long_as_in_the_simulator(backend, simulator):
    spec = spec_of(WEB)
    ours, theirs = (run.summary["flows"][0] for run in (simulator.run(spec), backend.run(spec)))
    assert ours["pages"] > 15
    assert theirs["pages"] == pytest.approx(ours["pages"], abs=1)
    assert theirs["page_load_time_p50_s"] == pytest.approx(ours["page_load_time_p50_s"], rel=0.03)
    assert theirs["page_load_time_mean_s"] == pytest.approx(ours["page_load_time_mean_s"], rel=0.05)
    assert theirs["page_load_time_p95_s"] == pytest.approx(ours["page_load_time_p95_s"], rel=0.1)
    overall = [flow["phases"]["overall"] for flow in (ours, theirs)]
    assert overall[1]["goodput_bps"] == pytest.approx(overall[0]["goodput_bps"], rel=0.02)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", marks=pytest.mark.slow),
        ", multiplexed = true",
        ", connections = 1",
    ],
)
def test_small_pages_take_the_round_trips_that_they_need(more, backend, simulator):
    spec = spec_of(WEB, {"flows.web.source": SMALL + more + "}"})
    ours, theirs = (run.summary["flows"][0] for run in (simulator.run(spec), backend.run(spec)))
    assert ours["pages"] > 40
    assert theirs["pages"] == pytest.approx(ours["pages"], abs=1)
    # The kernel's client sends its SYN and its request apart.
    for name in ("page_load_time_p50_s", "page_load_time_mean_s"):
        assert theirs[name] == pytest.approx(ours[name], rel=0.03), name


def test_a_browser_that_is_stopped_gives_up(backend, simulator):
    spec = spec_of(
        WEB, {"flows.web.source": '{ kind = "web", main_object = "2 MB", object_count = 0 }'}
    )
    flow = spec["flows"][0]
    flow["source"]["parse_ns"] = flow["source"]["think_ns"] = 0
    flow["stop_ns"] = 5_000_000_000
    ours, theirs = (run.summary["flows"][0] for run in (simulator.run(spec), backend.run(spec)))
    for name in ("pages", "pages_unfinished"):
        assert theirs[name] == ours[name] > 0, name
    overall = [flow["phases"]["overall"] for flow in (ours, theirs)]
    assert overall[1]["goodput_bps"] == pytest.approx(overall[0]["goodput_bps"], rel=0.02)
