"""Plots of any measure over any grid, as data and as files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from fake_core import MS, spec
from fake_plan import make_plan, plan_of
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.errors import InputError
from jostle.figures.data import CurvesData, GroupsData, HeatMapData, MapData, ScatterData
from jostle.figures.renderer import render_bytes, render_figure
from jostle.results import figure_files, plot_data
from jostle.results.cwnd_events import events_data
from jostle.results.grid_axis import Axis, without_unit
from jostle.results.phase_portrait import phase_data
from jostle.results.plot_data import PlotSelection
from jostle.results.plots import check, data_of
from jostle.results.time_series_data import series_data
from jostle.scenario import PlannedRun
from jostle.stats import sigma_ellipse

KEY = "flows.newcomer.controller"


@pytest.fixture
def results(carry_out):
    return carry_out(make_plan())


@pytest.fixture
def sweep(carry_out):
    """Two controllers over three limits of the queue, two runs each."""
    conditions, runs = [], []
    for rival in ("cubic", "bbr"):
        for limit in ("25 kB", "50 kB", "100 kB"):
            for seed in (1, 2):
                made = spec(seed, ("cubic", rival))
                size = {"bytes": 1000 * int(limit.split()[0])}
                made["links"][0]["queue"]["parameters"]["limit"] = size
                runs.append(PlannedRun(len(conditions), seed, made))
            conditions.append({KEY: rival, "bottleneck.queue.limit": limit})
    return carry_out(plan_of("A sweep", conditions, runs))


@pytest.fixture
def sampled(carry_out):
    """Six points over a rate and a limit, the rival's controller by turns."""
    places = [("1 Mbit/s", "25 kB"), ("2 Mbit/s", "200 kB"), ("5 Mbit/s", "50 kB"),
              ("10 Mbit/s", "100 kB"), ("20 Mbit/s", "40 kB"), ("500 kbit/s", "80 kB")]  # fmt: skip
    conditions, runs = [], []
    for at, (rate, limit) in enumerate(places):
        made = spec(1, ("cubic", ("cubic", "bbr")[at % 2]))
        runs.append(PlannedRun(at, 1, made))
        conditions.append({"bottleneck.rate": rate, "bottleneck.queue.limit": limit})
    return carry_out(plan_of("A sample", conditions, runs))


def crowd(number, **changes):
    made = spec(1, ("cubic",) * number)
    for at, flow in enumerate(made["flows"], start=1):
        flow.update({"name": f"web-{at}", **changes})
    return made


def one(carry, made):
    return carry(plan_of("", [{}], [PlannedRun(0, 1, made)]))


def test_lines_over_a_key_are_its_estimates(sweep):
    data = plot_data.lines_data(
        sweep, "limit", "share", ["newcomer.controller"], PlotSelection(("steady",), ("newcomer",))
    )
    ((title, part),) = data.parts
    assert title == ""
    assert isinstance(part, CurvesData)
    assert (part.x_label, part.y_label) == ("limit (kB)", "Share (%)")
    assert [curve.label for curve in part.curves] == ["cubic", "bbr"]
    expected = sweep.estimate("share", "steady").filter(flow="newcomer")
    for curve, name in zip(part.curves, ("cubic", "bbr"), strict=True):
        assert curve.x.tolist() == [25, 50, 100]
        rows = expected.filter(pl.col(KEY) == name)
        assert curve.y.tolist() == pytest.approx([100 * v for v in rows["value"]])
        assert curve.high.tolist() == pytest.approx([100 * v for v in rows["high"]])
    assert data.caption == "Mean and 95 % interval of 2 runs, in phase “steady”."


def test_what_is_not_asked_for_is_never_pooled(sweep):
    data = plot_data.lines_data(sweep, "limit", "rtt")
    assert [title for title, _ in data.parts] == [
        "newcomer.controller cubic", "newcomer.controller bbr",
    ]  # fmt: skip
    assert [c.label for c in data.parts[0][1].curves] == ["incumbent", "newcomer"]
    data = plot_data.lines_data(sweep, "limit", "rtt", ["newcomer.controller"])
    assert [title for title, _ in data.parts] == ["incumbent", "newcomer"]


def test_a_key_that_is_the_phase_has_every_phase(sweep):
    sweep = sweep.where({KEY: "bbr"})
    every = ["steady", "startup", "overall"]
    assert [phase.name for phase in sweep.phases] == every

    def labels(kind, **given):
        return [[one.label for one in part.curves] for _, part in shown(kind, **given).parts]

    def shown(kind, **given):
        return data_of(sweep, kind, {"flows": ("incumbent",), **given})

    assert labels("lines", x="limit", y="throughput", by=("phase",)) == [every]
    assert labels("lines", x="limit", y="throughput", by=("phase",), phase="steady") == [["steady"]]
    ((_, part), *_) = shown("lines", x="phase", y="throughput").parts
    assert part.x_names == tuple(every)
    assert labels("cdf", y="throughput", by=("phase",))[0] == every
    (_, part), *_ = shown("box", x="phase", y="throughput").parts
    assert part.groups == tuple(every)
    (_, part), *_ = shown("scatter", by=("phase",)).parts
    # The fake engine has no RTT in `startup`.
    assert [cloud.label for cloud in part.clouds] == ["steady", "overall"]


def test_an_envelope_has_the_points_of_its_phase(sweep, monkeypatch):
    seen = []

    def points(run, flow, phase):
        seen.append(phase)
        return SimpleNamespace(delay=np.array([1.0, 2.0, 3.0]), throughput=np.array([1.0, 3.0, 2]))

    monkeypatch.setattr(plot_data, "operating_points", points)
    data_of(sweep, "envelope", {"phase": ("steady", "overall"), "by": ("phase",)})
    assert set(seen) == {"steady", "overall"}
    seen.clear()
    data_of(sweep, "envelope", {})
    assert set(seen) == {""}


def test_heat_map_over_two_keys(sweep):
    data = plot_data.heat_map_data(
        sweep, "limit", "queue_length", ["newcomer.controller"], PlotSelection(("steady",))
    )
    ((_, part),) = data.parts
    assert isinstance(part, HeatMapData)
    assert part.rows == ("cubic", "bbr")
    assert (part.columns, part.column_label) == (("25", "50", "100"), "limit (kB)")
    expected = sweep.estimate("queue_length", "steady")["value"].to_numpy() / 1e3
    assert part.values.ravel().tolist() == pytest.approx(expected.tolist())
    with pytest.raises(InputError, match="one of rows"):
        plot_data.heat_map_data(sweep, "limit", "queue_length", [])
    with pytest.raises(InputError, match="choose two keys"):
        plot_data.heat_map_data(sweep, "limit", "queue_length", ["bottleneck.queue.limit"])


def test_cdf_has_every_interval_or_every_flow(results, carry_out):
    data = plot_data.cdf_data(results, "rtt", [KEY], PlotSelection(("steady",), ("incumbent",)))
    ((_, part),) = data.parts
    assert isinstance(part, CurvesData)
    rows = results.condition_series(0).filter(
        pl.col("flow") == "incumbent", pl.col("time_s") > 5.0, pl.col("rtt_mean_s").is_not_null()
    )
    assert part.curves[0].x.tolist() == pytest.approx(sorted(1e3 * rows["rtt_mean_s"]))
    made = crowd(5, source={"kind": "fixed", "bytes": 50_000})
    ((_, part),) = plot_data.cdf_data(one(carry_out, made), "completion_time").parts
    assert part.curves[0].x.size == 5
    assert part.curves[0].y.tolist() == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_lines_of_a_group_say_mean_per_flow(carry_out, sweep):
    conditions = [{"flows.web.rtt": "10 ms"}, {"flows.web.rtt": "20 ms"}]
    runs = [PlannedRun(at, 1, crowd(5)) for at in range(2)]
    results = carry_out(plan_of("", conditions, runs))
    data = plot_data.lines_data(results, "rtt", "throughput")
    assert data.caption.endswith(" Of flows of one `count`: mean per flow.")
    assert "mean per flow" not in plot_data.lines_data(sweep, "limit", "throughput").caption


def test_boxes_hold_every_run(sweep):
    data = plot_data.box_data(sweep, "throughput", "limit", ["flow"], PlotSelection(("steady",)))
    assert [title for title, _ in data.parts] == [
        "newcomer.controller cubic", "newcomer.controller bbr",
    ]  # fmt: skip
    part = data.parts[1][1]
    assert isinstance(part, GroupsData)
    assert part.groups == ("25 kB", "50 kB", "100 kB")
    assert part.labels == ("incumbent", "newcomer")
    rows = sweep.flows.filter(pl.col(KEY) == "bbr", phase="steady", flow="newcomer")
    rates = rows.filter(pl.col("bottleneck.queue.limit") == "50 kB")["throughput_bps"]
    box = part.boxes[1][1]
    assert box is not None
    assert (box.low, box.high) == pytest.approx((rates.min() / 1e6, rates.max() / 1e6))
    assert box.values.size == 2
    marks = "Circle: a value. Cross: mean."
    assert data.caption == f"2 runs of each condition, in phase “steady”. {marks}"


def test_scatter_has_an_ellipse_for_each_controller(carry_out):
    conditions = [{"flows.incumbent.controller": name} for name in ("cubic", "bbr")]
    runs = [
        PlannedRun(at, seed, spec(seed, (name,)))
        for at, name in enumerate(("cubic", "bbr"))
        for seed in (1, 2, 3)
    ]
    data = plot_data.scatter_data(carry_out(plan_of("", conditions, runs)))
    # The key's value follows from the controller: one chart.
    ((_, part),) = data.parts
    assert isinstance(part, ScatterData)
    assert part.reverse_x
    assert [cloud.label for cloud in part.clouds] == ["cubic", "bbr"]
    assert all(cloud.x.size == 3 and cloud.around is not None for cloud in part.clouds)


def test_the_ellipse_is_one_standard_deviation():
    random = np.random.default_rng(1)
    x = random.normal(5.0, 2.0, 4000)
    y = 3.0 + 0.5 * x + random.normal(0.0, 0.1, 4000)
    found = sigma_ellipse(x, y)
    assert found is not None
    assert (found.x, found.y) == pytest.approx((5.0, 5.5), abs=0.1)
    # Its extent along each axis is the deviation of that coordinate.
    assert found.outline_x.max() - found.x == pytest.approx(x.std(ddof=1), rel=0.01)
    assert found.outline_y.max() - found.y == pytest.approx(y.std(ddof=1), rel=0.01)
    assert sigma_ellipse(x[:1], y[:1]) is None


def test_phase_portraits(results):
    data = phase_data(results, 1)
    assert data.diagonal
    assert data.x_label == "Throughput (Mbit/s)\nof incumbent (cubic)"
    series = results.condition_series(1).filter(flow="incumbent").group_by("time_s")
    expected = series.agg(pl.col("throughput_bps").mean()).sort("time_s")["throughput_bps"] / 1e6
    assert data.clouds[0].x.tolist() == pytest.approx(expected.to_list())
    data = phase_data(results, 1, "rtt", "cwnd")
    assert [cloud.label for cloud in data.clouds] == ["incumbent (cubic)", "newcomer (bbr)"]


def test_more_flows_than_colours_become_groups_with_their_extremes(carry_out):
    made = crowd(20)
    # One of them is starved: it starts late.
    made["flows"][13]["start_ns"] += 8000 * MS
    results = one(carry_out, made)
    data = series_data(results, 0, ("throughput", "cwnd", "queue_length"))
    labels = [line.label for line in data.panels[0].lines]
    rates = results.flows.filter(phase="overall").sort("throughput_bps")["flow"].to_list()
    assert labels == [f"{rates[0]} (cubic)", f"{rates[-1]} (cubic)", "web ×20 (cubic)"]
    assert rates[0] == "web-14"
    group = data.panels[0].lines[2]
    series = results.condition_series(0).group_by("time_s", maintain_order=True)
    expected = series.agg(pl.col("throughput_bps").mean())["throughput_bps"] / 1e6
    assert group.mean.tolist() == pytest.approx(expected.to_list())
    highest = series.agg(pl.col("throughput_bps").max())["throughput_bps"] / 1e6
    assert group.high.tolist() == pytest.approx(highest.to_list())
    assert "by name, those with the least and the most throughput" in data.caption
    named = series_data(results, 0, ("throughput",), ("web-3", "web-5"))
    assert [line.label for line in named.panels[0].lines] == ["web-3 (cubic)", "web-5 (cubic)"]


def test_a_series_shows_the_named_link_or_flow(carry_out):
    made = spec()
    made["links"].append({**made["links"][0], "name": "back"})
    first = made["links"][0]["name"]
    results = one(carry_out, made)

    def lines(names, *flows):
        panels = series_data(results, 0, names, flows).panels
        return [[line.label for line in panel.lines] for panel in panels]

    assert lines(("utilisation",), "back") == [["back"]]
    assert lines(("utilisation",)) == [[first, "back"]]
    flows = results.flow_names(0)
    both = lines(("throughput", "utilisation"), flows[0], "back")
    assert [len(panel) for panel in both] == [1, 1]
    assert [len(panel) for panel in lines(("throughput", "utilisation"), flows[0])] == [1, 2]
    # Without a measure of links, the name of a link is an error.
    with pytest.raises(InputError, match="`back` is a link: name a flow, or a measure of links"):
        lines(("throughput",), "back")
    with pytest.raises(InputError, match="no flow or link `backs`; did you mean `back`"):
        lines(("utilisation",), "backs")


def test_a_single_flow_beside_many_keeps_its_name(carry_out):
    made = crowd(12)
    made["flows"][0]["name"] = "bulk"
    for at, flow in enumerate(made["flows"][1:], start=1):
        flow["name"] = f"web-{at}"
    labels = [line.label for line in series_data(one(carry_out, made), 0).panels[0].lines]
    assert labels[0] == "bulk (cubic)"
    assert labels[-1] == "web ×11 (cubic)"
    assert len(labels) == len(set(labels)) == 4


def test_a_capacity_that_varies_is_shaded(carry_out):
    made = spec()
    made["links"][0]["capacity"] = {
        "kind": "steps",
        "steps": [
            {"at_ns": 0, "rate_bps": 10_000_000},
            {"at_ns": 5000 * MS, "rate_bps": 5_000_000},
        ],
    }  # fmt: skip
    (area,) = series_data(one(carry_out, made), 0).panels[0].areas
    assert area.label == "capacity of bottleneck"
    assert area.top.tolist() == pytest.approx([10.0] * 5 + [5.0] * 5)
    assert series_data(one(carry_out, spec()), 0).panels[0].areas == ()


def test_a_window_within_one_interval_is_drawn(carry_out):
    made = crowd(1, source={"kind": "fixed", "bytes": 20_000})
    data = series_data(one(carry_out, made), 0, ("cwnd",))
    assert np.isfinite(data.panels[0].lines[0].mean).sum() == 1
    axis = render_figure(data).axes[0]
    # A line through one point is none: it has a mark.
    assert any(line.get_marker() == "o" and line.get_xdata().size == 1 for line in axis.lines)


def test_bins_with_few_runs_are_told(carry_out):
    plan = make_plan(2, ("bbr",))
    runs = list(plan.runs)
    runs[1].spec["flows"][1]["start_ns"] += 3000 * MS
    data = series_data(carry_out(plan_of("", [{}], runs)), 0, ("rtt",))
    few = data.panels[0].lines[1].few
    assert few is not None
    assert few.any()
    assert "Pale: fewer than all 2 runs have a value." in data.caption


def test_events_of_a_window(carry_out):
    made = spec(1, ("cubic",))
    made["record"] = "acks"
    results = one(carry_out, made)
    data = events_data(results, 0)
    (flow,) = data.flows
    acks = results.runs_of(0)[0].run.acks
    assert flow.lost_s.tolist() == acks.filter(pl.col("lost_packets") > 0)["time_s"].to_list()
    assert {span.mode for span in flow.modes} <= {"slow_start", "concave", "convex", "recovery"}
    assert all(a.to_s <= b.from_s for a, b in zip(flow.modes, flow.modes[1:], strict=False))
    assert not np.isnan(flow.threshold).all()
    (flow,) = events_data(one(carry_out, spec(1, ("bbr",))), 0).flows
    assert "probe_bw" in {span.mode for span in flow.modes}
    assert np.isnan(flow.threshold).all(), "BBR does not use ssthresh"
    # Before it starts it has no window.
    assert np.isnan(flow.window[0])
    with pytest.raises(InputError, match="no flow `incumbnt`"):
        events_data(results, 0, ["incumbnt"])


@pytest.mark.parametrize(
    ("values", "places", "label", "log"),
    [
        (("500 kbit/s", "1 Mbit/s"), [500, 1000], "k (kbit/s)", False),
        (("1 ms", "10 ms", "0.1 s"), [1, 10, 100], "k (ms)", True),
        (("4", "10", "32"), [4, 10, 32], "k", False),
        (("1 BDP", "2 BDP"), [1, 2], "k (BDP)", False),
        (("1 BDP", "20 packets"), [0, 1], "k", False),
        (("cubic", "bbr"), [0, 1], "k", False),
    ],
)
def test_places_on_an_axis(results, values, places, label, log):
    axis = Axis.of(results, "k", values)
    assert [axis.places[value] for value in values] == pytest.approx(places)
    assert (axis.label, axis.log) == (label, log)


def test_units_that_all_names_have():
    assert without_unit(("1 ms", "20 ms"), "rtt") == (("1", "20"), "rtt (ms)")
    assert without_unit(("1 ms", "2 s"), "rtt") == (("1 ms", "2 s"), "rtt")


def test_every_kind_is_drawn_in_python(sweep):
    by = {"by": "newcomer.controller", "phase": "steady"}
    figures = [
        sweep.plot.series(condition={KEY: "bbr", "bottleneck.queue.limit": "50 kB"}),
        sweep.plot.series(condition=0, events=True),
        sweep.plot.lines("limit", "share", **by),
        sweep.plot.heatmap("limit", "queue_length", **by),
        sweep.plot.cdf("rtt", **by),
        sweep.plot.box("rtt", "limit", **by),
        sweep.plot.scatter(),
        sweep.plot.phase(condition=0),
    ]
    for figure in figures:
        figure.canvas.draw()
        width, height = figure.get_size_inches()
        assert width <= 8
        assert height <= 11
        renderer = figure.canvas.get_renderer()
        for legend in figure.legends:
            box = legend.get_window_extent(renderer)
            assert box.x0 >= -1
            assert box.x1 <= figure.bbox.width + 1


def test_eighty_conditions_fit_a_page(carry_out):
    names = tuple(f"rate {n} Mbit/s, controller newcomer" for n in range(80))
    data = HeatMapData("Jain's index", "", names, ("overall", "steady"),
                       np.full((80, 2), 0.5), 0.5, 1.0, False, ("a", "b"))  # fmt: skip
    width, height = render_figure(data).get_size_inches()
    assert height <= 11
    assert width <= 8
    many = HeatMapData("Jain's index", "", tuple(map(str, range(300))), ("overall",),
                       np.full((300, 1), 0.5), 0.5, 1.0, False, ("a", "b"))  # fmt: skip
    figure = render_figure(many)
    assert figure.get_size_inches()[1] <= 11
    assert sum(len(axis.get_yticklabels()) for axis in figure.axes) >= 300


@pytest.mark.slow
def test_other_processes_draw_the_same(results):
    data = [make() for make in figure_files.all_data(results).values()]
    assert len(data) == 6
    here = list(render_bytes(data, ("png",)))
    assert list(render_bytes(data, ("png",), jobs=2)) == here


def test_figures_only_where_they_mean_something(carry_out):
    def named(controllers, source=None):
        runs = []
        for at in (0, 1):
            made = spec(1, controllers)
            if source:
                made["flows"][1]["source"] = source
            runs.append(PlannedRun(at, 1, made))
        conditions = [{"k": "a"}, {"k": "b"}]
        return list(figure_files.all_data(carry_out(plan_of("", conditions, runs))))

    series = ["series-a", "series-b"]
    assert named(("cubic", "bbr")) == [*series, "jain", "throughput-difference"]
    assert named(("cubic", "bbr", "reno")) == [*series, "jain"]
    assert named(("cubic",)) == series
    assert named(("cubic", "bbr"), {"kind": "fixed", "bytes": 1000}) == series


SCENARIO = """
duration          = "4 s"
sampling_interval = "1 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "other"
controller = "cubic"
rtt = "40 ms"
[grid]
"flows.other.controller" = ["cubic", "bbr"]
"bottleneck.queue.limit" = ["1 BDP", "2 BDP"]
"""


@pytest.fixture
def jostle(engine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SCENARIO)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(("plot", "sweep.toml", *arguments), Environment(engine))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_command_draws_and_names_its_files(jostle, engine):
    code, out, _ = jostle("--kind", "lines", "--x", "limit", "--y", "share", "--flow", "other",
                          "--group-by", "other.controller", "-o", "out/share.svg")  # fmt: skip
    assert code == 0
    assert out == "figure: out/share.svg\n"
    assert "<svg" in Path("out/share.svg").read_text()
    code, out, _ = jostle("--filter", "other.controller=bbr", "--filter", "limit=1 BDP",
                          "--y", "throughput", "--y", "queue_length",
                          "-o", "series.png", "-o", "series.pdf")  # fmt: skip
    assert out.split() == ["figure:", "series.png", "figure:", "series.pdf"]
    assert engine.calls == 4


@pytest.mark.parametrize(
    ("kind", "arguments", "columns"),
    [
        ("series", ("--filter", "limit=1 BDP", "--filter", "other.controller=bbr"), {"x", "y"}),
        ("lines", ("--x", "limit", "--y", "rtt"), {"x", "y", "low", "high"}),
        (
            "heatmap",
            ("--x", "limit", "--y", "queue_length", "--group-by", "other.controller"),
            {"row", "value"},
        ),
        ("cdf", ("--y", "rtt"), {"x", "y"}),
        ("box", ("--y", "rtt", "--x", "limit"), {"group", "median", "outliers"}),
        ("scatter", (), {"label", "x", "y"}),
    ],
)
def test_what_is_drawn_is_written(jostle, kind, arguments, columns):
    files = ("-o", "d/p.png", "-o", "p.csv", "-o", "d/p.parquet")
    code, out, err = jostle("--kind", kind, *arguments, *files)
    assert code == 0
    assert out == "figure: d/p.png\n"
    assert "csv: p.csv\nparquet: d/p.parquet\n" in err
    frame = pl.read_parquet("d/p.parquet")
    assert {"chart", *columns} <= set(frame.columns)
    assert frame.height == len(Path("p.csv").read_text().splitlines()) - 1 > 0
    assert not any(frame[c].is_nan().any() for c in frame.columns if frame[c].dtype == pl.Float64)


@pytest.mark.parametrize(
    ("kind", "arguments", "one_condition"),
    [
        ("lines", ("--x", "limit", "--y", "rtt"), ("chart", "x")),
        ("heatmap", ("--x", "limit", "--y", "jain", "--group-by", "other.controller"),
         ("row", "column")),
        ("cdf", ("--y", "rtt"), ("chart",)),
        ("box", ("--y", "rtt"), ("chart",)),
        ("scatter", (), ("chart",)),
    ],
)  # fmt: skip
def test_failed_runs_are_told_of_their_condition(jostle, engine, kind, arguments, one_condition):
    """Of four conditions, one has no finished run, and one has one of two."""
    run = engine.run

    def fail(spec_json, *more):
        made_of = json.loads(spec_json)
        limit = made_of["links"][0]["queue"]["parameters"]["limit"]["bytes"]
        rival = made_of["flows"][1]["controller"]["name"]
        if limit > 60_000 and (rival == "bbr" or made_of["seed"] == 2):
            raise ValueError("upside down")
        return run(spec_json, *more)

    engine.run = fail
    jitter = 'rtt = "40 ms"\nstart_jitter = "9 ms"'
    text = Path("sweep.toml").read_text().replace('rtt = "40 ms"', jitter)
    Path("sweep.toml").write_text(f"repeats = 2\n{text}")
    assert jostle("--kind", kind, *arguments, "-o", "p.csv")[0] == 1
    frame = pl.read_csv("p.csv").fill_null("")
    if kind == "heatmap":
        # The table of a heat map has an empty cell for the condition without values, too.
        frame = frame.filter(pl.col("value").is_not_null() | (pl.col("incomplete") != ""))
    told = frame.group_by("incomplete").agg(pl.struct(one_condition).n_unique()).rows()
    assert dict(told) == {
        "": 2,
        "1 of 2 runs, 1 failed: upside down": 1,
        "0 of 2 runs, 2 failed: upside down": 1,
    }
    last = frame.rows(named=True)[-1]
    assert last["chart"] == "other.controller bbr, limit 2 BDP"


def test_distributions_of_rtts_are_of_all_acks_where_they_are_recorded(carry_out):
    results = one(carry_out, crowd(2))
    ((_, part),) = plot_data.cdf_data(results, "rtt").parts
    data = plot_data.cdf_data(results, "rtt")
    assert "Of all intervals of the series" in data.caption
    assert 'record = "acks"' in data.caption
    frame = pl.DataFrame(
        {
            "time_s": [0.5, 1.0, 1.5, 2.0],
            "flow": ["web-1", "web-2", "other", "web-1"],
            "rtt_s": [0.03, 0.01, 0.5, None],
        }
    )
    with_acks = [
        r._replace(run=replace(r.run, tables={**r.run.tables, "acks": frame}))
        for r in results.results
    ]
    traced = type(results)("", "sim", "1", conditions=[{}], results=with_acks)
    data = plot_data.cdf_data(traced, "rtt")
    ((_, part),) = data.parts
    assert part.curves[0].x.tolist() == pytest.approx([10.0, 30.0])
    assert "Of all ACKs." in data.caption


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "lines", "--x", "limit"), "lines: give --y"),
        (("--kind", "lines", "--x", "limt", "--y", "rtt"), "did you mean `limit`"),
        (("--kind", "lines", "--x", "limit", "--y", "rt"), "no measure `rt`"),
        (
            ("--kind", "box", "--y", "rtt", "--group-by", "flw"),
            "no key `flw`; did you mean `flow`?",
        ),
        (("--kind", "cdf", "--y", "rtt", "--x", "limit"), "cdf has no --x"),
        (("--kind", "cdf", "--y", "rtt", "--phase", "later"), "no phase `later`"),
        (("--kind", "cdf", "--y", "rtt", "--y", "queue_length"), "give --y once"),
        (("--kind", "pie"), "Invalid value for '--kind'"),
        (("-o", "a.gif"), "no content has the ending .gif"),
    ],
)
def test_mistakes_are_told_before_anything_runs(jostle, engine, arguments, message):
    code, _, err = jostle(*arguments)
    assert code == 2
    assert message in err
    assert engine.calls == 0


def test_an_ambiguous_condition_is_asked_for(jostle):
    code, _, err = jostle()
    assert code == 2
    assert re.search(r'one condition of 4: .* --filter "controller=cubic"', err)


def test_check_knows_what_a_kind_takes():
    check("scatter", {"x": "rtt", "y": "goodput"}, [], [])
    with pytest.raises(InputError, match="no measure `limit`"):
        check("scatter", {"x": "limit"}, [], [])


def test_a_controller_of_the_grid_is_a_key_of_whole_runs(results):
    ((_, part),) = plot_data.lines_data(results, "controller", "jain").parts
    assert isinstance(part, CurvesData)
    assert part.x_names == ("cubic", "bbr", "vivace", "hybla")


def test_sampled_keys_have_a_map_of_points(sampled):
    data = plot_data.heat_map_data(sampled, "rate", "jain", ["limit"])
    ((title, part),) = data.parts
    assert title == ""
    assert isinstance(part, MapData)
    assert part.x.tolist() == [1, 2, 5, 10, 20, 0.5]
    assert part.y.tolist() == [25, 200, 50, 100, 40, 80]
    assert (part.x_label, part.y_label) == ("rate (Mbit/s)", "limit (kB)")
    assert part.log_x
    assert not part.log_y
    assert part.values.shape == (6,)
    assert part.lowest <= part.values.min() <= part.values.max() <= part.highest
    assert len(render_figure(data).axes) == 2
    assert len(render_figure(part).axes) == 2


def test_a_table_of_all_combinations_stays_a_table(sweep):
    made = plot_data.heat_map_data(sweep, "limit", "jain", [KEY])
    assert all(isinstance(part, HeatMapData) for _, part in made.parts)


def test_between_points_of_a_sample_nothing_is_drawn(sampled, sweep):
    ((_, points),) = plot_data.lines_data(sampled, "rate", "jain").parts
    assert not points.joined
    axis = render_figure(points).axes[0]
    assert {line.get_linestyle() for line in axis.lines} == {"None"}
    for _, lines in plot_data.lines_data(sweep, "limit", "jain", [KEY]).parts:
        assert lines.joined


@pytest.mark.parametrize("by", [KEY, "controller"])
def test_lines_are_drawn_between_the_values_of_a_grid_key(sweep, by):
    """`controller` is the flow's, and determines the key of the grid that sets it."""
    choice = plot_data.PlotSelection(flows=("newcomer",))
    ((_, lines),) = plot_data.lines_data(sweep, "limit", "rtt", [by], choice).parts
    assert len(lines.curves) == 2
    assert lines.joined
    styles = {line.get_linestyle() for line in render_figure(lines).axes[0].lines}
    assert styles
    assert "None" not in styles


def test_a_map_shows_the_nearest_point():
    from jostle.figures.scatter_map import _nearest

    places = [(0.0, 10.0, np.array([0.0, 10.0])), (0.0, 1.0, np.array([0.0, 1.0]))]
    middles = [np.array([1.0, 4.0, 9.5]), np.array([0.2, 0.7])]
    assert _nearest(places, middles).tolist() == [[0, 0, 1], [0, 1, 1]]
