"""Flows that open one after the other, as studies have and see them."""

from __future__ import annotations

from pathlib import Path

import jostle
import pytest
from jostle.results.measures import measure
from jostle.scenario import load_text
from jostle.studies.time_windows import MeasureArguments, RunView, TimeWindow

STUDIES = Path(__file__).parents[2] / "studies"

VISITS = """
duration          = "10 s"
sampling_interval = "50 ms"
bottleneck = { rate = "20 Mbit/s", queue = { kind = "drop_tail", limit = "1 MB" } }

[[flows]]
name          = "visit"
controller    = "reno"
rtt           = "50 ms"
size          = "1 MB"
count         = 3
start         = "1 s"
one_at_a_time = "700 ms"

[[flows]]
name       = "endless"
controller = "reno"
rtt        = "50 ms"
size       = "1 GB"
start      = "5 s"

[[flows]]
name       = "never"
controller = "reno"
rtt        = "50 ms"
size       = "1 kB"
after      = "endless"
"""


def test_downloads_count_from_when_a_flow_opened():
    view = RunView(jostle.run(load_text(VISITS)).results[0].run)
    whole = TimeWindow(0.0, 0.0)

    def download_s(flow, size_bytes):
        return view.value(measure("download_time"), flow, whole, MeasureArguments(size_bytes))

    for visit in ("visit-1", "visit-2", "visit-3"):
        completion_time_s = view.value(measure("completion_time"), visit, whole)
        # The last ACK is half a round trip younger than the last byte; bins are 50 ms long.
        assert download_s(visit, 1_000_000) == pytest.approx(completion_time_s, abs=0.08)
        assert download_s(visit, 500_000) < completion_time_s
        assert download_s(visit, 1_000_001) is None
    assert download_s("endless", 1_000_000) < 3
    assert download_s("never", 1_000) is None


def test_a_loss_in_a_remembered_flight_does_not_stop_a_visit():
    """The hole closes, the window is full, and what was in it is read: that has to be told."""
    scenario = jostle.load(
        STUDIES / "slow-start" / "mobile-5g.toml",
        {
            "flows.visit.receive_window_autotuning": "true",
            "flows.visit.peer_cache": "stateful",
            "bottleneck.loss": "0.1 %",
        },
    )
    flows = jostle.run(scenario, repeats=1, seed=4).flows
    completion_time_s = flows["completion_time_s"].drop_nulls()
    assert completion_time_s.len() == flows.height
    assert completion_time_s.max() < 2
