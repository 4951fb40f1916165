"""Access lines: a downlink and an uplink, and flows that go either way."""

from __future__ import annotations

import jostle
import numpy as np
import pytest
from jostle.errors import InputError
from jostle.results.measures import measure
from jostle.results.rrul import MEAN, rrul_data
from jostle.scenario import Scenario, load_text

LINE = """
title    = "An access line"
duration = "10 s"
[downlink]
rate  = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
[uplink]
rate  = "5 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name       = "download"
count      = 2
controller = "cubic"
rtt        = "20 ms"
[[flows]]
name       = "upload"
count      = 2
controller = "cubic"
direction  = "up"
rtt        = "20 ms"
"""

PINGS = """
[[flows]]
name       = "ping"
controller = "none"
direction  = "up"
rtt        = "20 ms"
source     = { kind = "ping", size = "56 B", period = "100 ms" }
"""


def spec(scenario: Scenario):
    return scenario.plan().runs[0].spec


def test_data_go_one_way_and_acks_the_other():
    run = spec(load_text(LINE))
    assert [link["name"] for link in run["links"]] == ["downlink", "uplink"]
    ways = {flow["name"]: (flow["path"], flow["reverse_path"]) for flow in run["flows"]}
    assert ways == {
        "download-1": ([0], [1]),
        "download-2": ([0], [1]),
        "upload-1": ([1], [0]),
        "upload-2": ([1], [0]),
    }
    # Both links' delays are part of the 20 ms.
    assert {flow["base_delay_ns"] for flow in run["flows"]} == {10_000_000}


def test_up_takes_the_way_back_of_named_links():
    named = LINE.replace("[downlink]", '[[links]]\nname = "there"').replace(
        "[uplink]", '[[links]]\nname = "back"'
    )
    text = named.replace(
        'rtt        = "20 ms"', 'rtt = "20 ms"\npath = ["there"]\nreverse_path = ["back"]'
    )
    ways = [(flow["path"], flow["reverse_path"]) for flow in spec(load_text(text))["flows"]]
    assert ways == [([0], [1]), ([0], [1]), ([1], [0]), ([1], [0])]


def test_a_grid_changes_both_links_by_one_key_and_each_by_its_name():
    grid = '[grid."links.*.queue"]\ncodel = "codel"\nfq = "fq_codel"\n'
    kinds = [
        [link["queue"]["kind"] for link in run.spec["links"]]
        for run in load_text(LINE + grid).plan().runs
    ]
    assert kinds == [["codel", "codel"], ["fq_codel", "fq_codel"]]
    one = load_text(LINE + '[grid]\n"links.uplink.rate" = ["1 Mbit/s", "2 Mbit/s"]\n')
    rates = [[link["capacity"]["rate_bps"] for link in r.spec["links"]] for r in one.plan().runs]
    assert rates == [[20_000_000, 1_000_000], [20_000_000, 2_000_000]]


def test_a_profile_fills_in_either_link():
    text = LINE.replace('rate  = "5 Mbit/s"\ndelay = "5 ms"', 'profile = "viasat-2"')
    _, uplink = spec(load_text(text.replace('"20 ms"', '"700 ms"')))["links"]
    assert uplink["delay"]["jitter"] is not None


@pytest.fixture(scope="module")
def results():
    return jostle.run(load_text(LINE + PINGS), store=False)


def test_an_upload_is_not_slowed_by_the_downlink(results):
    (run,) = (result.run for result in results.results)
    goodput = measure("goodput")
    rates = {flow["name"]: goodput.of_entry(flow, "overall") for flow in run.summary["flows"]}
    uploads = rates["upload-1"] + rates["upload-2"]
    assert 3e6 < uploads < 5e6 < rates["download-1"] + rates["download-2"] < 20e6


def test_response_under_load_has_a_panel_each_way_and_one_of_pings(results):
    data = rrul_data(results, 0)
    assert [(panel.quantity, panel.unit) for panel in data.panels] == [
        ("download", "Mbit/s"),
        ("upload", "Mbit/s"),
        ("ping", "ms"),
    ]
    down, up, ping = data.panels
    assert [line.label for line in up.lines] == ["flow 1", "flow 2", MEAN]
    one, two, mean = (line.mean for line in down.lines)
    assert mean == pytest.approx((one + two) / 2, nan_ok=True)
    assert [line.label for line in ping.lines] == [MEAN]
    assert np.nanmin(ping.lines[0].mean) >= 20
    results.plot.rrul().canvas.draw()


def test_response_under_load_asks_for_pings():
    without = jostle.run(load_text(LINE.replace('"10 s"', '"1 s"')), store=False)
    with pytest.raises(InputError, match="response under load needs pings"):
        rrul_data(without, 0)
