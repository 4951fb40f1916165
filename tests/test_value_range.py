"""Peaks of a queue in figures and charts."""

from __future__ import annotations

import jostle
import numpy as np
import polars as pl
import pytest
from jostle.figures import draw
from jostle.report.chart_data import charts
from jostle.results import ResultSet
from jostle.results.time_series_data import series_data
from jostle.results.value_range import has_range, value_range

SCENARIO = """
duration = "10 s"
sampling_interval = "1 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "20 ms"
start_jitter = "100 ms"
stop = "5.1 s"
"""


@pytest.fixture(scope="module")
def results() -> ResultSet:
    return jostle.run(jostle.Scenario.from_toml(SCENARIO), repeats=2, store=False)


def test_a_figure_shows_the_largest_queue(results: ResultSet) -> None:
    links = results.condition_links(0)
    low, mean, high = (
        links.group_by("time_s", maintain_order=True).agg(pl.col(f"queue_length_{name}_bytes"))
        for name in ("min", "mean", "max")
    )
    data = series_data(results, 0, ("queue_length", "queue_delay_estimate"))
    length, delay = (panel.lines[0] for panel in data.panels)
    assert length.low.tolist() == pytest.approx(low.select(pl.nth(1).list.min() / 1e3).to_series())
    assert length.mean.tolist() == pytest.approx(
        mean.select(pl.nth(1).list.mean() / 1e3).to_series()
    )
    assert length.high.tolist() == pytest.approx(
        high.select(pl.nth(1).list.max() / 1e3).to_series()
    )
    # 10 Mbit/s empty 1.25 kB per millisecond.
    assert delay.high.tolist() == pytest.approx((length.high / 1.25).tolist(), rel=0.02)
    # After 5.1 s the queue is empty: the peak of its interval is more than 1.5 times its mean.
    assert np.max(length.high[5:]) > 1.5 * np.max(length.mean[5:])
    for axis, line in zip(draw.stacked(data).axes, (length, delay), strict=True):
        assert axis.get_ylim()[1] >= line.high.max()
    assert "Band of queue length and estimated queueing delay" in data.caption


def test_a_chart_of_a_report_has_the_range(results: ResultSet) -> None:
    (condition,) = charts(results).data["conditions"]
    (trace,) = condition["traces"]["queue_length"]
    assert (trace["range"], trace["rows"]) == (True, 5)
    (trace,) = condition["traces"]["rtt"]
    assert "range" not in trace


def test_series_of_earlier_versions_have_no_range() -> None:
    assert not has_range("queue_length_mean_bytes", ["queue_length_mean_bytes"])


def test_an_empty_queue_has_no_delay() -> None:
    columns = {
        "queue_length_min_bytes": np.array([0.0, 500.0, 0.0]),
        "queue_length_mean_bytes": np.array([0.0, 1000.0, 0.0]),
        "queue_length_max_bytes": np.array([0.0, 4000.0, 0.0]),
        "queue_delay_estimate_mean_s": np.array([0.0, 0.1, np.nan]),
    }
    low, high = value_range("queue_delay_estimate_mean_s", columns.__getitem__)
    assert low.tolist()[:2] == [0.0, 0.05]
    assert high.tolist()[:2] == [0.0, 0.4]
    assert np.isnan([low[2], high[2]]).all()
