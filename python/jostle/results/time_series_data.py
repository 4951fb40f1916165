"""Time series of a condition for figures: flows, groups of flows, links."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import InputError, unknown
from jostle.figures.data import (
    NO_CONTROLLER,
    Area,
    Line,
    PanelColumn,
    PanelData,
    PhaseBand,
    StackedData,
    flow_label,
    stacked,
)
from jostle.figures.page_colours import colour_indices
from jostle.figures.style import COLOURS
from jostle.results.compared_phase import OVERALL
from jostle.results.measures import Measure, measure, measures
from jostle.results.number_format import count
from jostle.results.value_range import has_range, value_range
from jostle.scenario.flow_links import forward_links
from jostle.stats import series_band

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.finished_runs import FinishedRuns
    from jostle.stats.descriptive import Floats

MOST_LINES = 7
"""Largest number of lines; with more flows, similar flows share a line."""

FLOW_PANELS = ("throughput", "rtt", "cwnd", "retransmission_ratio")
"""Measures of flows that a stacked figure shows, from top to bottom."""

PANELS = (*FLOW_PANELS, "queue_length")
"""All measures of a stacked figure."""

_LINK_STYLE = len(COLOURS) - 1
"""Position of the first link's colour, as in `charts.js`; flows use colours from the other end."""


def panels(names: Sequence[str] = FLOW_PANELS) -> list[PanelColumn]:
    """Return the panels that show measures over time.

    Raises
    ------
    InputError
        When one is not a measure, or the series has no column of it.
    """
    return [panel_column(shown) for shown in _with_columns(names)]


def panel_column(shown: Measure) -> PanelColumn:
    """Return how a panel shows a measure that has a column in the series."""
    assert shown.column is not None
    return PanelColumn(
        shown.heading, shown.display_unit, shown.column, shown.factor, shown.display_bounds
    )


def _with_columns(names: Sequence[str]) -> list[Measure]:
    found = [measure(name) for name in names]
    for shown in found:
        if shown.column is None:
            known = [m.name for m in measures().values() if m.column]
            raise InputError(
                f"`{shown.name}` has no column in the series; these have: {', '.join(known)}"
            )
    return found


def series_data(
    results: FinishedRuns,
    condition: int,
    names: Sequence[str] = PANELS,
    flows: Sequence[str] = (),
) -> StackedData:
    """Return the stacked time series of one condition.

    If there are more than `MOST_LINES` flows, flows of the same entry or the same controller share
    a line with a band from the smallest to the largest of them. The flows with the lowest and the
    highest throughput have their own lines.

    Parameters
    ----------
    results
        The runs.
    condition
        Position of the condition.
    names
        Measures of flows or links, from top to bottom.
    flows
        Names of flows, or of groups, whose flows are drawn separately, and of links. All flows if
        none is named, and all links if none is.

    Raises
    ------
    InputError
        When no run of the condition finished, or a measure or flow is not known.
    """
    if not results.runs_of(condition):
        raise results.unfinished_error("nothing to draw: ", condition)
    shown = _with_columns(names)
    of_links = [m for m in shown if m.scope == "link"]
    known_links = results.link_names(condition) if of_links else []
    chosen = _chosen(results, condition, flows, known_links)
    phases = phase_bands(results, condition)
    of_flows = [m for m in shown if m.scope == "flow"]
    series = results.condition_series(condition)
    parts = {} if len(chosen) <= MOST_LINES else _alike(results, condition, chosen)
    together = [name for members in parts.values() for name in members]
    named = [name for name in chosen if name not in together]
    named += _extremes(results, condition, together)
    styles = {name: (at, at) for at, name in enumerate(named)} if parts else None
    styles = styles or _controller_styles(results, condition)
    data = stacked(
        series,
        {name: chosen[name] for name in named},
        [panel_column(m) for m in of_flows],
        results.labels[condition],
        phases,
        styles=styles,
    )
    filled = dict(zip([m.name for m in of_flows], data.panels, strict=True))
    if parts:
        for m in of_flows:
            lines = _group_lines(series, parts, m, filled[m.name], len(named))
            filled[m.name] = replace(filled[m.name], lines=(*filled[m.name].lines, *lines))
    links = results.condition_links(condition)
    chosen_links = [name for name in flows if name in known_links]
    filled |= {m.name: _link_panel(links, m, chosen_links) for m in of_links}
    if "throughput" in filled:
        areas = _capacities(results, condition, links)
        filled["throughput"] = replace(filled["throughput"], areas=areas)
    drawn = tuple(filled[m.name] for m in shown)
    caption = _caption(drawn, parts, len(results.runs_of(condition)))
    return replace(data, panels=drawn, caption=caption)


def _controller_styles(results: FinishedRuns, condition: int) -> dict[str, tuple[int, int]]:
    """Return the colour and dash of each flow: a controller has one colour in all conditions."""
    every = [
        results.runs_of(at)[0].run.summary["flows"]
        for at in range(len(results.conditions))
        if results.runs_of(at)
    ]
    before = sum(bool(results.runs_of(at)) for at in range(condition))
    places = colour_indices(every[: before + 1])[before]
    return {flow["name"]: (place, place) for flow, place in zip(every[before], places, strict=True)}


def phase_bands(results: FinishedRuns, condition: int) -> tuple[PhaseBand, ...]:
    """Return the phases of a condition except the complete run."""
    return tuple(
        PhaseBand(phase.name, phase.from_s, phase.to_s)
        for phase in results.phases_of(condition)
        if phase.name != OVERALL
    )


def _chosen(
    results: FinishedRuns, condition: int, names: Sequence[str], links: Sequence[str]
) -> dict[str, str]:
    """Return the names and labels of the flows that are drawn; a name may be one of `links`."""
    every = results.runs_of(condition)[0].run.summary["flows"]
    labels = {flow["name"]: flow_label(flow) for flow in every}
    members = {group.name: group.members for group in results.flow_groups(condition)}
    flows = [name for name in names if name in labels or name in members]
    for name in names:
        if name not in flows and name not in links:
            raise InputError(
                f"`{name}` is a link: name a flow, or a measure of links"
                if name in results.link_names(condition)
                else unknown("flow or link" if links else "flow", name, [*members, *labels, *links])
            )
    wanted = [one for name in flows for one in members.get(name, (name,))]
    return {name: labels[name] for name in (wanted or labels)}


def _alike(
    results: FinishedRuns, condition: int, chosen: dict[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the flows that share a line, by its label: of an entry, a controller, or all."""
    found = [
        replace(group, members=members)
        for group in results.flow_groups(condition)
        if (members := tuple(name for name in group.members if name in chosen))
    ]
    parts = {f"{group.label} ({group.controller})": group.members for group in found}
    if len(parts) <= MOST_LINES - 2:
        return {label: members for label, members in parts.items() if len(members) > 1}
    by_controller: dict[str, tuple[str, ...]] = {}
    for group in found:
        by_controller[group.controller] = (
            *by_controller.get(group.controller, ()),
            *group.members,
        )
    if len(by_controller) <= MOST_LINES - 2:
        return {
            f"{count(len(members), 'flow')} ({controller})": members
            for controller, members in by_controller.items()
        }
    return {f"all {len(chosen)} flows": tuple(chosen)}


def _extremes(results: FinishedRuns, condition: int, chosen: Collection[str]) -> list[str]:
    """Return the flows with the lowest and highest throughput of those with a controller."""
    rate = measure("throughput")
    got: dict[str, float] = {}
    for result in results.runs_of(condition):
        for flow in result.run.summary["flows"]:
            if flow["name"] in chosen and flow["controller"] != NO_CONTROLLER:
                value = rate.of_entry(flow, OVERALL) or 0.0
                got[flow["name"]] = got.get(flow["name"], 0.0) + value
    ranked = sorted(got, key=lambda name: got[name])
    return [ranked[0], ranked[-1]] if len(ranked) > 1 else ranked


def _group_lines(
    series: pl.DataFrame,
    parts: dict[str, tuple[str, ...]],
    shown: Measure,
    panel: PanelData,
    taken: int,
) -> list[Line]:
    """Return the mean over the flows of each group, in a band from the smallest to the largest."""
    factor = shown.factor / 1e3 if panel.unit != shown.display_unit else shown.factor
    column = panel_column(shown)._replace(factor=factor)
    return [
        replace(group_line(series, members, column, label), style=(taken + at, 0))
        for at, (label, members) in enumerate(parts.items())
    ]


def group_line(
    series: pl.DataFrame, members: Sequence[str], shown: PanelColumn, label: str
) -> Line:
    """Return the mean over flows and runs, in a band from the smallest to the largest flow."""
    import polars as pl

    value = pl.col(shown.column)
    if shown.column == "cwnd_bytes":
        value = pl.when((pl.col("cwnd_bytes") > 0) & (pl.col("sent_packets") > 0)).then(value)
    of_flow = (
        series.filter(pl.col("flow").is_in(members))
        .group_by("time_s", "flow")
        .agg(value.cast(pl.Float64).fill_nan(None).mean().alias("value"))
    )
    ends = (
        of_flow.group_by("time_s")
        .agg(
            pl.col("value").mean().alias("mean"),
            pl.col("value").min().alias("low"),
            pl.col("value").max().alias("high"),
        )
        .sort("time_s")
    )
    time_s = _middles(ends["time_s"].to_numpy())
    mean, low, high = (
        ends[name].fill_null(np.nan).to_numpy() * shown.factor for name in ("mean", "low", "high")
    )
    return Line(label, time_s, mean, low, high, extremes=True)


def _middles(end_s: Floats) -> Floats:
    start_s = np.concatenate(([0.0], end_s[:-1]))
    middle: Floats = (start_s + end_s) / 2
    return middle


def _by_link(links: pl.DataFrame, link: str, column: str) -> tuple[Floats, Floats]:
    """Return the ends of the intervals, and values of shape (runs, bins)."""
    import polars as pl

    wide = (
        links.filter(pl.col("link") == link)
        .pivot("seed", index="time_s", values=column, aggregate_function="first")
        .sort("time_s")
    )
    end_s = wide["time_s"].to_numpy().astype(np.float64)
    return end_s, wide.drop("time_s").cast(pl.Float64).fill_null(np.nan).to_numpy().T


def _values_of(links: pl.DataFrame, link: str, column: str) -> Floats:
    return _by_link(links, link, column)[1]


def _link_panel(links: pl.DataFrame, shown: Measure, chosen: Sequence[str] = ()) -> PanelData:
    """Return the panel of a measure of links: the chosen ones, or all."""
    assert shown.column is not None
    lines = []
    names = links["link"].unique(maintain_order=True).to_list()
    for at, link in enumerate(names):
        if chosen and link not in chosen:
            continue
        end_s, values = _by_link(links, link, shown.column)
        band = series_band(values * shown.factor, bounds=shown.display_bounds)
        few = (band.n > 0) & (band.n < band.n.max(initial=0))
        style = (_LINK_STYLE - at % len(COLOURS), at)
        line = Line(link, _middles(end_s), band.mean, band.low, band.high, style, few)
        if has_range(shown.column, links.columns):
            lowest, highest = value_range(shown.column, partial(_values_of, links, link))
            low, high = np.fmin.reduce(lowest), np.fmax.reduce(highest)
            line = replace(line, low=low * shown.factor, high=high * shown.factor, extremes=True)
        lines.append(line)
    return PanelData(f"{shown.heading}", shown.display_unit, tuple(lines))


def _capacities(results: FinishedRuns, condition: int, links: pl.DataFrame) -> tuple[Area, ...]:
    """Return capacities that vary, as shaded areas like Mahimahi's."""
    rate = measure("throughput")
    areas = []
    crossed = {at for flow in results.spec_of(condition)["flows"] for at in forward_links(flow)}
    for at, link in enumerate(results.spec_of(condition)["links"]):
        if at in crossed and link["capacity"]["kind"] not in ("constant", "tunnel"):
            end_s, values = _by_link(links, link["name"], "capacity_bps")
            top = series_band(values * rate.factor).mean
            areas.append(Area(f"capacity of {link['name']}", _middles(end_s), top))
    return tuple(areas)


def _caption(drawn: Sequence[PanelData], parts: dict[str, tuple[str, ...]], runs: int) -> str:
    said = []
    ranged = [
        panel.quantity[:1].lower() + panel.quantity[1:]
        for panel in drawn
        if any(line.extremes and line.label not in parts for line in panel.lines)
    ]
    if parts:
        said.append(
            "Lines of several flows: their mean, in a band from the smallest to the largest; of "
            "these, by name, those with the least and the most throughput."
        )
    if runs == 1:
        said.append("One run.")
    else:
        band = "; bands of single flows" if parts else ", with its"
        said.append(f"Mean over {runs} runs{band} 95 % interval.")
    if ranged:
        said.append(f"Band of {' and '.join(ranged)}: from the smallest to the largest value.")
    if any(line.few is not None and line.few.any() for p in drawn for line in p.lines):
        said.append(f"Pale: fewer than all {runs} runs have a value.")
    return " ".join(said)
