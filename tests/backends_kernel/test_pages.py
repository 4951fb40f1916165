"""Browsers on a real kernel beside the simulator."""

from __future__ import annotations

import json

import pytest

from backends_kernel.kernel_specs import record_of_logs, spec_of

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


def test_pages_count_that_were_whole():
    s = 10**9
    loads = [(0, s), (2 * s, 3 * s), (6 * s, 5 * s), (8 * s, None), (11 * s, None)]
    pages = [{"requested_ns": at_ns, "load_ns": took_ns} for at_ns, took_ns in loads]
    spec = spec_of(WEB, {"duration": '"10 s"'})

    def measures(pages):
        (flow,) = json.loads(record_of_logs(spec, [{"pages": json.dumps(pages)}]).summary)["flows"]
        return {name: value for name, value in flow.items() if name.startswith("page")}

    assert measures(pages) == {
        "page_load_time_p50_s": 2.0,
        "page_load_time_mean_s": 2.0,
        "page_load_time_p95_s": pytest.approx(2.9),
        "pages": 2.0,
        "pages_unfinished": 2.0,
    }
    assert measures([])["page_load_time_p50_s"] is None


def test_pages_take_as_long_as_in_the_simulator(backend, simulator):
    spec = spec_of(WEB)
    ours, theirs = (run.summary["flows"][0] for run in (simulator.run(spec), backend.run(spec)))
    assert ours["pages"] > 15
    assert theirs["pages"] == pytest.approx(ours["pages"], abs=1)
    # The median is the time of a single page, so it varies more than the mean.
    for name, part in (("mean", 0.02), ("p50", 0.05)):
        key = f"page_load_time_{name}_s"
        assert theirs[key] == pytest.approx(ours[key], rel=part), name
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


FILM = 'source = { kind = "video", length = "8 s", bitrates = ["1 Mbit/s"] }'
FOLLOWED = (
    WEB
    + f"""
[[flows]]
name = "film"
controller = "cubic"
rtt = "40 ms"
after = "web"
start = "1 s"
{FILM}
[[flows]]
name = "last"
controller = "cubic"
rtt = "40 ms"
after = "film"
size = "100 kB"
[[flows]]
name = "endless"
controller = "cubic"
rtt = "40 ms"
after = "last"
source = {{ kind = "web", pages = 1000 }}
"""
)


def followed(backend):
    values = {"duration": '"20 s"', "flows.web.source": SMALL + ", pages = 2 }"}
    return backend.run(spec_of(FOLLOWED, values)).summary["flows"]


def check_followed(flows):
    web, film, last, endless = flows
    assert [flow["unfinished"] for flow in flows] == [0, 0, 0, 1]
    assert web["pages"] == 2
    assert endless["completion_time_s"] is None
    for before, after, wait_s in ((web, film, 1), (film, last, 0), (last, endless, 0)):
        ends_s = before["start_s"] + before["completion_time_s"]
        assert after["start_s"] == pytest.approx(ends_s + wait_s, abs=0.01)


def test_flows_follow_the_last_page_and_the_end_of_a_film(simulator):
    check_followed(followed(simulator))


def test_flows_follow_pages_and_films_on_the_kernel(backend):
    check_followed(followed(backend))
