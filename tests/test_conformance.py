"""Conformance of flows to a reference: points, pairs of runs, tables, figures, the command."""

from __future__ import annotations

import json
from pathlib import Path

import jostle as package
import numpy as np
import polars as pl
import pytest
from jostle.cli import status
from jostle.errors import InputError
from jostle.figures.charts import multiples
from jostle.results import ResultSet
from jostle.results.conformance import conformance_figure, conformance_results
from jostle.results.flow_paths import base_rtt_s, rate_bps
from jostle.results.measures import measure, measures
from jostle.results.operating_points import operating_points

SCENARIO = """
title = "Two stacks"
duration          = "20 s"
sampling_interval = "200 ms"
repeats = 3
[phases]
late = ["10 s", "20 s"]
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "test"
controller = "cubic"
rtt = "40 ms"
start_jitter = "1 s"
[[flows]]
name = "other"
controller = "cubic"
rtt = "20 ms"
start_jitter = "1 s"
[grid]
"flows.test.controller" = ["cubic", "reno"]
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conformance") / "two.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="module")
def results(scenario: Path) -> ResultSet:
    return package.run(scenario, store=False)


def test_points_are_in_parts_of_the_path(results):
    run = results.runs_of(0)[0].run
    assert (base_rtt_s(run.spec, "test"), rate_bps(run.spec, "test")) == (0.04, 1e7)
    found = operating_points(run, "test")
    facts = run.summary["flows"][0]
    # A point for every 10 RTTs of 40 ms in 95 % of the flow's life.
    assert found.delay.size == int(0.95 * (20 - facts["start_s"]) / 0.4 + 1e-6)
    whole = measure("throughput").of_entry(facts, "overall") / 1e7
    assert np.nanmean(found.throughput) == pytest.approx(whole, rel=0.1)
    # The queue holds one BDP of the longer round trip: delays end at one base RTT, and a packet.
    assert 0.0 <= np.nanmin(found.delay) <= np.nanmax(found.delay) <= 1.05


def test_a_phase_counts_alone(results):
    found = operating_points(results.runs_of(0)[0].run, "test", "late")
    assert found.delay.size == 25


def test_the_same_runs_conform(results):
    frame = results.conformance(results)
    assert frame["conformance"].to_list() == [1.0] * 4
    assert frame["deviation"].to_list() == [0.0] * 4
    # Runs with other seeds do not quite.
    assert frame.filter(flow="test")["itself"].is_between(0.5, 0.99).all()


def test_sides_are_exchanged_without_a_difference(results):
    there = conformance_results(results, results, ("test",), against="other")
    back = conformance_results(results, results, ("other",), against="test")
    for one, other in zip(there, back, strict=True):
        assert one.values("conformance") == other.values("conformance")
        assert one.values("deviation") == other.values("deviation")
        assert one.values("delay_shift") == [-value for value in other.values("delay_shift")]


def test_conditions_belong_together_by_their_keys(results):
    cubic, reno = (results.where(controller=name) for name in ("cubic", "reno"))
    (one,) = conformance_results(reno, cubic, ("test",))
    assert (one.condition, len(one.pairs)) == ({}, 3)
    assert 0.0 < one.estimate("conformance").value < 1.0
    (same,) = conformance_results(results, cubic, ("test",))
    assert same.condition == {"flows.test.controller": "cubic"}
    assert same.values("conformance") == [1.0] * 3


def test_runs_are_paired_in_the_order_of_their_seeds(results):
    (one,) = conformance_results(results.where(controller="reno"),
        results.where(controller="cubic"),
                       ("test",))  # fmt: skip
    first = [
        min(side.runs_of(0), key=lambda r: r.seed).run
        for side in (results.where(controller="reno"), results.where(controller="cubic"))
    ]
    points = [operating_points(run, "test") for run in first]
    assert np.array_equal(one.pairs[0].test.delay, points[0].delay, equal_nan=True)
    assert np.array_equal(one.pairs[0].reference.delay, points[1].delay, equal_nan=True)


def test_a_flow_that_never_started_has_none(scenario):
    late = package.load(scenario, {"flows.test.start": "19.9 s", "flows.test.start_jitter": "0 s"})
    results = package.run(late, repeats=1, store=False)
    (row,) = results.conformance(flows="test").filter(condition="cubic").iter_rows(named=True)
    assert (row["conformance"], row["n"]) == (None, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.conformance(flows="tset"), "did you mean `test`"),
        (lambda r: r.conformance(against="nobody"), "no flow `nobody`"),
        (lambda r: r.conformance(phase="early"), "no phase `early`"),
        (
            lambda r: r.where(controller="reno").conformance(
                package.run(
                    package.load(
                        "scenarios/parking-lot.toml",
                        {"duration": "2 s", "phases.steady": ["1 s", "2 s"]},
                    ),
                    repeats=1, store=False,
                )
            ),
            "no condition in common",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_told(results, call, message, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    with pytest.raises(InputError, match=message):
        call(results)


def test_a_coarse_series_is_told(scenario):
    results = package.run(
        package.load(scenario, {"sampling_interval": "1 s"}), repeats=1, store=False
    )
    with pytest.raises(InputError, match='set sampling_interval = "400 ms" or less'):
        results.conformance(flows="test")


def test_measures_of_pairs_are_in_the_registry():
    assert [m.name for m in measures().values() if m.place == "pairs"] == [
        "conformance", "deviation", "throughput_shift", "delay_shift", "repeatability",
    ]  # fmt: skip
    assert measure("conformance").bounds == (0.0, 1.0)
    with pytest.raises(InputError, match="is of two runs"):
        package.run("scenarios/first.toml", store=False).estimate("conformance")


def test_the_figure_has_both_envelopes(results):
    found = conformance_results(results, results, ("test",), against="other")
    data = conformance_figure(found, ("test", "other"))
    assert [title for title, _ in data.parts] == [
        f"{name}, conformance {one.estimate('conformance').value:.2f}"
        for name, one in zip(("cubic", "reno"), found, strict=True)
    ]
    for _, part in data.parts:
        assert [cloud.label for cloud in part.clouds] == ["test", "other"]
        assert all(cloud.around.corners.shape[0] > 2 for cloud in part.clouds)
    assert multiples(data).axes


def test_the_command(scenario, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = ("--store", str(tmp_path / "runs"))
    arguments = (
        "compare",
        "--method",
        "envelope",
        str(scenario),
        *store,
        "--vary",
        "test.controller=reno,cubic",
    )
    assert status([*arguments, "--flow", "test", "-o", "out/envelopes.svg"]) == 0
    out = capsys.readouterr().out
    assert "Two stacks: reno against cubic" in out
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert Path("out/envelopes.svg").stat().st_size > 1000
    assert status([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "jostle.conformance/1"
    flows = document["comparisons"][0]["flows"]
    assert [one["flow"] for one in flows] == ["test", "other"]
    assert len(flows[0]["conformance"]["runs"]) == 3
    assert (flows[0]["base_rtt_s"], flows[0]["rate_bps"]) == (0.04, 1e7)
    assert status([*arguments, "-o", "table.csv"]) == 0
    frame = pl.read_csv("table.csv")
    assert frame["conformance"][0] == pytest.approx(flows[0]["conformance"]["mean"])
    capsys.readouterr()
    assert status(["compare", str(scenario), "--method", "envelope", *store,
                   "--flow", "test", "--reference-flow", "other",
                   "--filter", "controller=cubic"]) == 0  # fmt: skip
    assert "test against other" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there are two sides"),
        (("--vary", "test.controller=cubic,vegas"), "no value of"),
        (("--reference-flow", "nobody"), "no flow `nobody`"),
        (("--reference-flow", "other", "--filter", "controller"), "write it as KEY=VALUE"),
    ],
)
def test_mistakes_of_the_command(scenario, tmp_path, capsys, arguments, message):
    store = ("--store", str(tmp_path), "--repeats", "1")
    assert status(["compare", str(scenario), "--method", "envelope", *store, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_plot_of_envelopes(results):
    figure = results.plot.envelope(by="controller", flows="test")
    assert figure.axes[0].get_xlabel() == "Queueing delay (÷ base RTT)"
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"cubic", "reno"}
