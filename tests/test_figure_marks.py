"""Marks, axes and colours of figures: points or boxes, ends of scales, one palette."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import polars as pl
import pytest
from jostle.figures import charts, cwnd_events
from jostle.figures.data import Curve as Points
from jostle.figures.data import (
    CurvesData,
    EventsData,
    FlowEvents,
    GroupsData,
    ModeSpan,
    Multiples,
    PanelColumn,
    PanelData,
    StackedData,
    stacked,
)
from jostle.figures.page_colours import colour_indices, with_page_colours
from jostle.figures.style import COLOURS
from jostle.results.measures import measure, measures
from jostle.results.tables import _heading
from jostle.stats import box, series_band


def curves(*labels: str) -> CurvesData:
    some = np.array([1.0, 2.0])
    return CurvesData("x", "y", tuple(Points(label, some, some, some, some) for label in labels))


def test_every_heading_has_its_unit():
    assert _heading(measure("startup_delay")) == "start-up delay\ns"
    for one in measures().values():
        words = _heading(one).split()
        assert not one.display_unit or all(unit in words for unit in one.display_unit.split())


def test_a_percentile_is_p95_everywhere():
    assert measure("rtt_p95").axis == "p95 RTT (ms)"
    assert measure("rtt_p50").axis == "Median RTT (ms)"
    assert measure("page_load_time").title == "median page load time"
    for one in measures().values():
        assert "percentile" not in one.title


def test_a_band_ends_at_the_bounds_of_its_measure():
    band = series_band(np.array([[0.0, 100.0], [20.0, 98.0]]), bounds=(0.0, 100.0))
    assert (band.low[0], band.high[1]) == (0.0, 100.0)
    assert band.high[0] > 20
    frame = pl.DataFrame(
        {
            "seed": [1, 2],
            "time_s": [1.0, 1.0],
            "flow": ["a", "a"],
            "share": [0.98, 1.0],
            "cwnd_bytes": [1, 1],
            "sent_packets": [1, 1],
        }
    )
    panel = PanelColumn("Share", "%", "share", 100.0, measure("share").display_bounds)
    (line,) = stacked(frame, {"a": "A"}, [panel]).panels[0].lines
    assert line.high.tolist() == [100.0]
    assert measure("throughput").display_bounds == (0.0, None)


@pytest.mark.parametrize(("values", "boxes"), [((1, 2, 3, 4), 0), ((1, 2, 3, 4, 5), 1)])
def test_fewer_than_five_values_are_points(values, boxes):
    figure = charts.chart(GroupsData("y", ("",), ("a",), ((box(values),),)))
    lines = figure.axes[0].get_lines()
    circles = [line for line in lines if line.get_marker() == "o" and len(line.get_ydata())]
    assert len(circles) == 1 - boxes
    if circles:
        assert circles[0].get_ydata().tolist() == list(values)
    # Two whiskers and their caps, the box and its median.
    assert len([line for line in lines if line.get_linestyle() == "-"]) == 6 * boxes


def test_a_rating_has_its_whole_scale_as_axis():
    limits = measure("mos").axis_limits
    assert limits == (1.0, 5.0)
    figure = charts.chart(GroupsData("MOS", ("",), ("a",), ((box([4.1, 4.2]),),), y_limits=limits))
    assert figure.axes[0].get_ylim() == pytest.approx((1.0, 5.0), abs=0.05)
    assert measure("throughput").axis_limits is None
    # Ratings below 0 are possible: a fixed axis would cut them off.
    assert measure("r_factor").axis_limits is None


def modes_of(*modes: str) -> EventsData:
    one = np.array([1.0])
    spans = tuple(ModeSpan(mode, 0.0, 1.0) for mode in modes)
    return EventsData("", (FlowEvents("a", one, one, one, one[:0], one[:0], spans),))


def test_a_mode_has_the_same_colour_in_every_figure():
    alone = cwnd_events._mode_colours(modes_of("probe_bw"))
    after = cwnd_events._mode_colours(modes_of("slow_start", "unheard_of", "probe_bw"))
    assert alone["probe_bw"] == after["probe_bw"]
    cubic, bbr3 = (
        ("slow_start", "concave", "convex", "reno_friendly", "recovery"),
        ("startup", "drain", "probe_bw_down", "probe_bw_cruise", "probe_bw_refill",
         "probe_bw_up", "probe_rtt"),
    )  # fmt: skip
    together = cwnd_events._mode_colours(modes_of(*cubic, *bbr3))
    assert len(set(together.values())) == len(cubic) + len(bbr3)


def test_a_label_keeps_its_colour_across_a_page():
    line = PanelData("y", "", ())
    every = with_page_colours(
        [
            curves("cubic", "bbr"),
            curves("bbr", "vegas"),
            GroupsData("y", ("",), ("reno", "bbr"), ((box([1]), box([2])),)),
            StackedData("", (line,), (), 1),
        ]
    )
    first, second, third, last = every
    assert isinstance(first, Multiples)
    assert isinstance(second, Multiples)
    assert isinstance(third, Multiples)
    assert first.colours["bbr"] == second.colours["bbr"] == third.colours["bbr"]
    assert len({*first.colours.values(), *second.colours.values(), third.colours["reno"]}) == 4
    assert last == StackedData("", (line,), (), 1)
    drawn = charts.multiples(second).axes[0].get_lines()
    assert drawn[0].get_color() == COLOURS[first.colours["bbr"]]


def test_a_controller_keeps_its_colour_whatever_its_flow_is_called():
    first, second = with_page_colours(
        [curves("cubic", "bbr"), curves("newcomer (bbr)", "second (bbr)", "incumbent (cubic)")]
    )
    assert isinstance(first, Multiples)
    assert isinstance(second, Multiples)
    assert second.colours["newcomer (bbr)"] == first.colours["bbr"]
    assert second.colours["incumbent (cubic)"] == first.colours["cubic"]
    assert second.colours["second (bbr)"] not in first.colours.values()


def test_flows_have_the_colour_of_their_controller_in_every_condition():
    def flows(*controllers):
        return [{"name": f"f{at}", "controller": one} for at, one in enumerate(controllers)]

    conditions = [flows("cubic", "bbr"), flows("cubic", "reno"), flows("bbr", "cubic")]
    assert colour_indices(conditions) == [
        [0, 1], [0, 2], [1, 0],
    ]  # fmt: skip
    assert colour_indices([flows("cubic", "cubic"), flows("cubic", "bbr")]) == [[0, 1], [0, 2]]
    # Flows without a controller have the colour of their name.
    assert colour_indices([flows("none", "none"), flows("none", "cubic")]) == [[0, 1], [0, 2]]
    crowd = colour_indices([flows(*["cubic"] * (len(COLOURS) + 2))])[0]
    assert crowd[: len(COLOURS)] == list(range(len(COLOURS)))


def test_labels_of_a_figure_differ_while_the_palette_lasts():
    many = [f"first {number}" for number in range(len(COLOURS))]
    _, second = with_page_colours([curves(*many), curves("other", many[0], "another")])
    assert isinstance(second, Multiples)
    assert second.colours[many[0]] == 0
    assert len(set(second.colours.values())) == 3


def test_pages_and_pictures_have_one_palette():
    css = resources.files("jostle.report").joinpath("static/page.css").read_text("utf-8")
    light = css.split("@media (prefers-color-scheme: dark)")[0]
    found = re.findall(r"--line-(\d): (#[0-9a-f]{6})", light)
    assert [colour for _, colour in found] == [colour.lower() for colour in COLOURS]
