"""Figures as data, and what is written of them."""

from __future__ import annotations

import re
import struct
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from fake_core import spec
from fake_plan import make_plan, plan_of
from jostle.errors import InputError
from jostle.figures import HeatMapData, PhaseBand, draw, heat_map, save
from jostle.figures import stacked as stacked_panels
from jostle.figures.data import flow_label
from jostle.figures.style import COLUMN_IN, legend_columns, shortened
from jostle.results import figure_files
from jostle.results.time_series_data import panels
from jostle.scenario import PlannedRun


def series(**columns):
    rows = {
        "seed": [1, 1, 2, 2],
        "time_s": [1.0, 2.0, 1.0, 2.0],
        "flow": ["a"] * 4,
        "throughput_bps": [1e6, 2e6, 3e6, 2e6],
        "rtt_mean_s": [None, 0.1, None, 0.3],
        "cwnd_bytes": [5e6, 5e6, 5e6, 5e6],
        "sent_packets": [100, 0, 200, 0],
        "retransmission_ratio": [0.01, None, 0.02, None],
    }
    return pl.DataFrame(rows | columns)


def stacked(frame, labels, *arguments):
    return stacked_panels(frame, labels, panels(), *arguments)


@pytest.fixture
def results(carry_out):
    return carry_out(make_plan())


def test_stacked_data_by_hand():
    data = stacked(series(), {"a": "A"}, "title", [PhaseBand("steady", 1, 2)])
    assert [(p.quantity, p.unit) for p in data.panels] == [
        ("Throughput", "Mbit/s"), ("RTT", "ms"), ("cwnd", "MB"), ("Retransmission rate", "%"),
    ]  # fmt: skip
    throughput, rtt, cwnd, again = (panel.lines[0] for panel in data.panels)
    assert throughput.time_s.tolist() == [0.5, 1.5]
    assert throughput.mean.tolist() == [2.0, 2.0]
    assert throughput.high[0] == pytest.approx(2 + 12.7062)
    assert throughput.low[1] == throughput.high[1] == 2.0
    assert np.isnan(rtt.mean[0])
    assert rtt.mean[1] == pytest.approx(200.0)
    assert cwnd.mean[0] == 5.0
    assert np.isnan(cwnd.mean[1])  # Nothing is sent any more.
    assert again.mean[0] == pytest.approx(1.5)
    assert np.isnan(again.mean[1])
    assert (data.runs, data.title) == (2, "title")


def test_small_windows_are_shown_in_kilobytes():
    panel = stacked(series(cwnd_bytes=[15e3] * 4), {"a": "A"}).panels[2]
    assert panel.unit == "kB"
    assert panel.lines[0].mean[0] == pytest.approx(15.0)


def test_windows_are_shown_from_the_first_packet_to_the_last():
    rows = {"seed": [1] * 5, "time_s": [1.0, 2.0, 3.0, 4.0, 5.0], "flow": ["a"] * 5}
    rows |= {"sent_packets": [0, 9, 0, 9, 0], "retransmission_ratio": [0.0] * 5}
    rows |= {"throughput_bps": [0.0] * 5, "rtt_mean_s": [0.1] * 5, "cwnd_bytes": [3e6] * 5}
    both = pl.DataFrame(rows)
    pings = both.with_columns(flow=pl.lit("pings"), cwnd_bytes=0.0)
    cwnd = stacked(pl.concat([both, pings]), {"a": "A", "pings": "P"}).panels[2]
    assert np.isnan(cwnd.lines[0].mean).tolist() == [True, False, False, False, True]
    assert np.isnan(cwnd.lines[1].mean).all()


@pytest.mark.parametrize(
    ("name", "controller", "label"),
    [("first", "cubic", "first (cubic)"), ("cubic", "cubic", "cubic"), ("pings", "none", "pings")],
)
def test_a_legend_says_nothing_twice(name, controller, label):
    assert flow_label({"name": name, "controller": controller}) == label


@pytest.mark.parametrize("peak", [1.3, 4.8, 20.0, 50.0, 79.0, 144.0, 1328.0])
def test_ticks_are_round_and_three_at_least(peak):
    high = series(throughput_bps=[peak * 1e6] * 4)
    axis = draw.stacked(stacked(high, {"a": "A"})).axes[0]
    ticks = [tick for tick in axis.get_yticks() if tick <= axis.get_ylim()[1]]
    assert len(ticks) >= 3
    mantissa = float(f"{ticks[1] - ticks[0]:e}".split("e")[0])
    assert mantissa == pytest.approx(round(mantissa))
    assert round(mantissa) in (1, 2, 5)


def test_data_of_the_heat_maps(results):
    jain = figure_files.jain_data(results)
    assert jain.rows == ("cubic", "bbr", "vivace", "hybla")
    assert jain.columns == ("steady", "startup", "overall")
    assert (jain.lowest, jain.highest) == (0.5, 1.0)
    expected = results.estimate("jain", "steady")["value"].to_list()
    assert jain.values[:, 0].tolist() == pytest.approx(expected)

    difference = figure_files.difference_data(results)
    means = results.estimate("throughput", "overall").filter(condition="bbr")["value"]
    assert difference.values[1, 2] == pytest.approx((means[0] - means[1]) / 1e6)
    assert difference.lowest == -difference.highest
    assert difference.ends == ("newcomer ahead", "incumbent ahead")


def test_first_ahead_is_blue_and_the_other_is_red(results):
    figure = figure_files.difference(results)
    mesh = figure.axes[0].collections[0]
    red, _, blue, _ = mesh.cmap(mesh.norm(80.0))
    assert blue > red
    red, _, blue, _ = mesh.cmap(mesh.norm(-80.0))
    assert red > blue
    assert mesh.norm(0.0) == 0.5
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert len(texts) == 12
    assert texts[3].startswith("−")


def test_drawn_panels_have_units_and_a_legend_outside(results):
    figure = figure_files.series(results, 1)
    assert figure.get_size_inches()[0] == COLUMN_IN
    assert [axis.get_ylabel().split()[-1] for axis in figure.axes] == [
        "(Mbit/s)", "(ms)", "(kB)", "(%)", "(kB)",
    ]  # fmt: skip
    assert figure.axes[-1].get_xlabel() == "Time (s)"
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["incumbent (cubic)", "newcomer (bbr)", "bottleneck"]
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert all(legend.y0 >= axis.get_window_extent().y1 for axis in figure.axes)


def test_everything_lies_within_the_figure(carry_out):
    plan = make_plan(2)
    value = "cubic (hystart = false, beta = 0.7)"
    conditions = [*plan.conditions[:3], {"flows.newcomer.controller": value}]
    results = carry_out(plan_of("", conditions, plan.runs))
    for name, make in figure_files.all_figures(results).items():
        figure = make()
        figure.canvas.draw()
        width, height = figure.bbox.size
        box = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
        assert box.x0 >= -1, name
        assert box.y0 >= -1, name
        assert box.x1 <= width + 1, name
        assert box.y1 <= height + 1, name


def test_no_axis_goes_far_beyond_100_percent():
    wild = series(retransmission_ratio=[1.0, None, 0.0, None])
    assert draw.stacked(stacked(wild, {"a": "A"})).axes[3].get_ylim()[1] <= 106


def test_empty_lines_can_be_drawn():
    empty = series(rtt_mean_s=[None] * 4, throughput_bps=[0.0] * 4)
    figure = draw.stacked(stacked(empty, {"a": "A"}))
    assert len(figure.axes) == 4


@pytest.mark.parametrize("suffix", save.FORMATS)
def test_same_figure_same_bytes(results, suffix):
    first = save.to_bytes(figure_files.series(results, 0), suffix)
    assert first == save.to_bytes(figure_files.series(results, 0), suffix)
    assert not re.search(rb"20\d\d-\d\d-\d\d|CreationDate", first)


def test_png_is_wide_enough_for_print(results):
    png = save.to_bytes(figure_files.jain(results), "png")
    assert struct.unpack(">I", png[16:20])[0] == COLUMN_IN * 300


def test_every_figure_is_written_under_its_conditions_name(results, tmp_path):
    paths = figure_files.save_all(results, tmp_path / "demo", ("png",))
    stems = ["series-cubic", "series-bbr", "series-vivace", "series-hybla", "jain",
             "throughput-difference"]  # fmt: skip
    assert [p.name for p in paths] == [f"{stem}.png" for stem in stems]
    assert sorted(tmp_path.joinpath("demo").iterdir()) == sorted(paths)
    assert all(p.stat().st_size > 1000 for p in paths)


def test_one_condition_has_no_heat_maps(carry_out):
    plan = plan_of("", [{}], [PlannedRun(0, 1, spec(1, ("cubic",)))])
    results = carry_out(plan)
    assert list(figure_files.all_figures(results)) == ["series"]
    with pytest.raises(InputError, match="two flows"):
        results.plot(kind="difference")


def test_pings_compete_with_nobody(carry_out):
    conditions = [{"queue": "red"}, {"queue": "pie"}]
    runs = [PlannedRun(at, 1, spec(1, ("cubic", "none"))) for at in range(2)]
    assert list(figure_files.all_figures(carry_out(plan_of("", conditions, runs)))) == [
        "series-red", "series-pie",
    ]  # fmt: skip
    runs = [PlannedRun(at, 1, spec(1, ("none", "cubic", "bbr"))) for at in range(2)]
    results = carry_out(plan_of("", conditions, runs))
    assert figure_files.difference_data(results).ends == ("flow-3 ahead", "newcomer ahead")
    assert figure_files.jain_data(results).lowest == 0.5


def test_the_bar_is_as_far_below_many_rows_as_below_few():
    gaps = []
    for rows in (2, 15):
        data = HeatMapData(
            "x",
            "",
            tuple(map(str, range(rows))),
            ("a",),
            np.ones((rows, 1)),
            0.0,
            1.0,
            False,
            ("", ""),
        )
        figure = heat_map.heat_map(data)
        figure.canvas.draw()
        table, bar = (axis.get_window_extent() for axis in figure.axes)
        gaps.append((table.y0 - bar.y1) / figure.dpi)
    assert gaps[1] == pytest.approx(gaps[0], abs=0.1)


@pytest.mark.parametrize(("value", "text"), [(0.47, "0.47"), (38.59, "38.6"), (1269.2, "1269")])
def test_numbers_of_heat_maps_have_the_decimals_that_say_something(value, text):
    data = HeatMapData("x", "", ("r",), ("c",), np.array([[value]]), 0.0, value, False, ("", ""))
    assert [t.get_text() for t in heat_map.heat_map(data).axes[0].texts] == [text]


def test_plot_chooses(results):
    assert len(results.plot("bbr").axes) == 5
    assert len(results.plot().axes[0].texts) == 12


def test_what_cannot_be_written_is_said(results, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        figure_files.save_all(results, tmp_path / "file" / "demo", ("png",))
    with pytest.raises(InputError, match="no figure format `gif`"):
        save.to_bytes(figure_files.jain(results), "gif")


def test_figure_data_needs_no_matplotlib():
    code = "import jostle.figures.data, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_legends_have_as_many_columns_as_fit():
    assert legend_columns(["Cubic", "BBR", "PCC", "Hybla"], COLUMN_IN) == 4
    assert legend_columns(["1 MB", "10 MB, 500 kB buffer"], COLUMN_IN) == 2
    assert legend_columns(["beside Cubic, 60 to 120 s", "alone"], COLUMN_IN) == 1
    assert legend_columns(["x" * 100], COLUMN_IN) == 1
    assert shortened("x" * 100 + "end", COLUMN_IN).endswith("end")
    assert len(shortened("x" * 100, COLUMN_IN)) < 60


def test_a_logarithmic_axis_is_marked_at_its_points():
    from jostle.figures.charts import chart as curves
    from jostle.figures.data import Curve, CurvesData

    x = np.array([1.0, 2.0, 4.0, 1000.0])
    none = np.full(x.size, np.nan)
    few = curves(CurvesData("x", "y", (Curve("a", x, x, none, none),), log_x=True)).axes[0]
    assert [label.get_text() for label in few.get_xticklabels()] == ["1", "2", "4", "1000"]
    x = 2.0 ** np.arange(12)
    none = np.full(x.size, np.nan)
    many = curves(CurvesData("x", "y", (Curve("a", x, x, none, none),), log_x=True)).axes[0]
    assert [label.get_text() for label in many.get_xticklabels()][:3] == ["1", "4", "16"]


def test_names_on_the_axis_and_values_below_zero() -> None:
    from jostle.figures.charts import chart as curves
    from jostle.figures.data import Curve, CurvesData

    x, y = np.array([0.0, 1.0]), np.array([3.0, -2.0])
    none = np.full(2, np.nan)
    data = CurvesData("x", "y", (Curve("a", x, y, none, none),), x_names=("0 %", "1 %"))
    axis = curves(data).axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0 %", "1 %"]
    assert axis.get_ylim()[0] < -2.0
    above = curves(CurvesData("x", "y", (Curve("a", x, x, none, none),))).axes[0]
    assert above.get_ylim()[0] == 0.0
