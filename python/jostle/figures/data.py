"""Data of figures as numbers, independent of the drawing library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jostle.stats import series_band
from jostle.stats.covariance_ellipse import Ellipse
from jostle.stats.descriptive import Floats
from jostle.stats.distribution import Box
from jostle.stats.performance_envelope import Envelope

if TYPE_CHECKING:
    import polars as pl


Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Line:
    """A line with a band around it.

    Attributes
    ----------
    label
        Name in the legend.
    time_s, mean, low, high
        Shape (bins,); NaN if there is no value. `low` and `high` are also NaN if there is no
        interval.
    style
        Indices of its colour and its dash in `style.py`; if None, both are the line's position in
        its panel.
    few
        Shape (bins,): whether fewer runs have a value in the bin than in other bins.
    extremes
        Whether `low` and `high` are the smallest and largest values, which a figure shows
        completely, instead of an interval of the mean.
    published
        Means that a paper publishes: from and to, in s, and the value.
    """

    label: str
    time_s: Floats
    mean: Floats
    low: Floats
    high: Floats
    style: tuple[int, int] | None = None
    few: Bools | None = None
    extremes: bool = False
    published: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True)
class Area:
    """An area from 0 up to a maximum over time, such as the capacity of a link.

    Attributes
    ----------
    label
        Name in the legend.
    time_s, top
        Shape (bins,).
    """

    label: str
    time_s: Floats
    top: Floats


@dataclass(frozen=True)
class PanelData:
    """One panel: its y axis, lines and areas."""

    quantity: str
    unit: str
    lines: tuple[Line, ...]
    areas: tuple[Area, ...] = ()


@dataclass(frozen=True)
class PhaseBand:
    """A time window that is shaded."""

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class StackedData:
    """Panels over a common time axis.

    Attributes
    ----------
    title
        Name of the condition; empty if there is only one.
    panels
        Panels from top to bottom.
    phases
        Time windows to shade.
    runs
        Number of runs behind every line.
    caption
        Explanation of lines and bands for the reader.
    """

    title: str
    panels: tuple[PanelData, ...]
    phases: tuple[PhaseBand, ...]
    runs: int
    caption: str = ""


@dataclass(frozen=True)
class HeatMapData:
    """A table of numbers shown as colours.

    Attributes
    ----------
    quantity, unit
        Name and unit of the numbers.
    rows, columns
        Names of rows and columns.
    values
        Shape (rows, columns); NaN if there is no value.
    lowest, highest
        Ends of the colour scale.
    diverging
        Whether the colour scale diverges from 0, with blue above and red below.
    ends
        Meaning of the lowest and the highest end of the scale.
    row_label, column_label
        Labels of the axes; empty if the names explain themselves.
    published
        Shape (rows, columns): values that a paper publishes; NaN if it has none.
    incomplete
        Shape (rows, columns): how many runs failed, and why.
    """

    quantity: str
    unit: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats
    lowest: float
    highest: float
    diverging: bool
    ends: tuple[str, str]
    row_label: str = ""
    column_label: str = ""
    caption: str = ""
    published: Floats | None = None
    incomplete: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class MapData:
    """Numbers at points of a plane, shown as colours, with nearest-neighbour interpolation.

    Attributes
    ----------
    x_label, y_label
        Labels of the axes, with units.
    x, y, values
        Shape (points,): coordinates and values of the points.
    quantity, unit
        Name and unit of the values.
    lowest, highest
        Ends of the colour scale.
    diverging
        Whether the colour scale diverges from 0.
    log_x, log_y
        Whether an axis is logarithmic.
    incomplete
        Shape (points,): how many runs failed, and why.
    """

    x_label: str
    y_label: str
    x: Floats
    y: Floats
    values: Floats
    quantity: str
    unit: str
    lowest: float
    highest: float
    diverging: bool = False
    log_x: bool = False
    log_y: bool = False
    caption: str = ""
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegionData:
    """The region of a plane in which a claim holds, with the sampled points.

    Attributes
    ----------
    x_label, y_label
        Labels of the axes, with units.
    x, y
        Shape (points,).
    holds
        Shape (points,): 1 if the claim holds, 0 if not, NaN if unknown.
    certain
        Shape (points,): whether the result is statistically certain.
    x_edges, y_edges
        Shape (columns + 1,) and (rows + 1,): edges of cells.
    shares
        Shape (rows, columns): estimated support for the claim, 0 to 1; the boundary is at 0.5.
    log_x, log_y
        Whether an axis is logarithmic.
    """

    x_label: str
    y_label: str
    x: Floats
    y: Floats
    holds: Floats
    certain: Bools
    x_edges: Floats
    y_edges: Floats
    shares: Floats
    log_x: bool = False
    log_y: bool = False
    caption: str = ""


class PanelColumn(NamedTuple):
    """The quantity shown by a panel.

    Attributes
    ----------
    quantity, unit
        Name of the quantity, and displayed unit.
    column, factor
        Column of the series, and factor that converts its values to the unit.
    bounds
        Smallest and largest possible value in the displayed unit; None if there is no limit.
    """

    quantity: str
    unit: str
    column: str
    factor: float
    bounds: tuple[float | None, float | None] = (0.0, None)


_MANY_KB = 1e3
NO_CONTROLLER = "none"
"""Name of the controller of ping flows in a run's summary."""


def flow_label(flow: Mapping[str, Any]) -> str:
    """Return the legend entry of a flow in a run's summary: name and controller."""
    name, controller = flow["name"], flow["controller"]
    return name if controller in (name, NO_CONTROLLER) else f"{name} ({controller})"


def stacked(
    series: pl.DataFrame,
    labels: Mapping[str, str],
    panels: Sequence[PanelColumn],
    title: str = "",
    phases: Sequence[PhaseBand] = (),
    *,
    styles: Mapping[str, tuple[int, int]] | None = None,
    extremes: bool = False,
) -> StackedData:
    """Return columns of the series over time, averaged over runs for each flow.

    Parameters
    ----------
    series
        One row per run, bin and flow: seed, time_s (end of the bin), flow, cwnd_bytes,
        sent_packets, and the panels' columns.
    labels
        Legend entry of each flow to show, in the order of the legend.
    panels
        Columns of the series to show, from top to bottom.
    title, phases
        See `StackedData`.
    styles
        Indices of colour and dash by flow; see `Line`.
    extremes
        Whether bands are from the smallest to the largest run instead of 95 % intervals.
    """
    import polars as pl

    sends = pl.col("sent_packets") > 0
    sending_at = pl.when(sends).then(pl.col("time_s"))
    while_open = pl.col("time_s").is_between(
        sending_at.min().over("seed", "flow"), sending_at.max().over("seed", "flow")
    )
    # A flow that is not open has no cwnd, and pings never have one. A flow that opened and closed
    # within an interval has no cwnd at its end, but a mean.
    window: pl.Expr = pl.when(while_open & (pl.col("cwnd_bytes") > 0)).then(pl.col("cwnd_bytes"))
    if "cwnd_mean_bytes" in series.columns:
        window = pl.coalesce(window, pl.col("cwnd_mean_bytes").fill_nan(None))
    shown = series.with_columns(cwnd_bytes=window)
    styled = styles or {}
    filled = []
    for panel in panels:
        lines = tuple(
            replace(
                _line(shown.filter(pl.col("flow") == flow), panel, label, extremes=extremes),
                style=styled.get(flow),
            )
            for flow, label in labels.items()
        )
        filled.append(_readable(PanelData(panel.quantity, panel.unit, lines)))
    return StackedData(title, tuple(filled), tuple(phases), series["seed"].n_unique())


def _line(one_flow: pl.DataFrame, panel: PanelColumn, label: str, *, extremes: bool) -> Line:
    import polars as pl

    wide = one_flow.pivot("seed", index="time_s", values=panel.column, aggregate_function="first")
    wide = wide.sort("time_s")
    end_s = wide["time_s"].to_numpy().astype(np.float64)
    values = wide.drop("time_s").cast(pl.Float64).fill_null(np.nan).to_numpy().T
    values = values * panel.factor  # a view of the series may be read-only
    band = series_band(values, bounds=panel.bounds)
    # A value describes its complete bin, so draw it at the middle.
    start_s = np.concatenate(([0.0], end_s[:-1]))[: len(end_s)]
    few = (band.n > 0) & (band.n < band.n.max(initial=0))
    low, high = band.low, band.high
    if extremes:
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    middle_s = (start_s + end_s) / 2
    return Line(label, middle_s, band.mean, low, high, few=few, extremes=extremes)


def _readable(panel: PanelData) -> PanelData:
    """Use MB for windows of a megabyte and more."""
    if panel.unit != "kB":
        return panel
    peaks = [np.nanmax(line.mean) for line in panel.lines if np.any(~np.isnan(line.mean))]
    if not peaks or max(peaks) < _MANY_KB:
        return panel
    lines = tuple(
        replace(line, mean=line.mean / 1e3, low=line.low / 1e3, high=line.high / 1e3)
        for line in panel.lines
    )
    return PanelData(panel.quantity, "MB", lines)


@dataclass(frozen=True)
class Curve:
    """Points joined by a line.

    Attributes
    ----------
    label
        Name in the legend.
    x, y
        Shape (points,).
    low, high
        Shape (points,): ends of the interval; NaN if there is none.
    published
        Shape (points,): values that a paper publishes; NaN if it has none.
    incomplete
        Shape (points,): how many runs of a point failed, and why; empty texts if none did.
    """

    label: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    published: Floats | None = None
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True)
class CurvesData:
    """A measure as a function of a quantity, or distribution functions.

    Attributes
    ----------
    x_label, y_label
        Labels of the axes, with units.
    curves
        Curves in the order of the legend.
    log_x
        Whether the x axis is logarithmic.
    x_names
        Names of the points at x = 0, 1, …, if the axis shows names instead of numbers.
    steps
        Whether a value holds until the next point, as in a distribution function.
    joined
        Whether points are joined by lines; not if they differ in other keys as well.
    y_limits
        Ends of the y axis if the scale of the measure gives them.
    """

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    x_names: tuple[str, ...] = ()
    steps: bool = False
    caption: str = ""
    joined: bool = True
    y_limits: tuple[float, float] | None = None


FEWEST_IN_A_BOX = 5
"""Smallest number of values that a box summarises; fewer are drawn as points."""


@dataclass(frozen=True)
class GroupsData:
    """Bars or boxes in groups, side by side.

    Attributes
    ----------
    y_label
        Label of the y axis, with its unit.
    groups
        Names of the groups; a single empty name if there is one group.
    labels
        Names within a group, the same in all groups.
    boxes
        Shape (groups, labels); None if there is no value. A bar shows the mean, and its interval
        as `low` and `high`.
    bars
        Whether bars are drawn instead of boxes.
    from_zero
        Whether the y axis begins at 0.
    y_limits
        Ends of the y axis if the scale of the measure gives them.
    published
        Shape (groups, labels): values that a paper publishes; None if it has none.
    incomplete
        Shape (groups, labels): how many runs failed, and why.
    """

    y_label: str
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    boxes: tuple[tuple[Box | None, ...], ...]
    bars: bool = False
    caption: str = ""
    from_zero: bool = True
    y_limits: tuple[float, float] | None = None
    published: tuple[tuple[float | None, ...], ...] = ()
    incomplete: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Cloud:
    """Points of one series in a scatter plot.

    Attributes
    ----------
    label
        Name in the legend.
    x, y
        Shape (points,).
    around
        Outline around the points: the ellipse of one standard deviation, or an envelope; None if
        there are too few points.
    path
        Whether the points form a time series and are joined.
    incomplete
        How many runs of the series failed, and why.
    """

    label: str
    x: Floats
    y: Floats
    around: Ellipse | Envelope | None = None
    path: bool = False
    incomplete: str = ""


@dataclass(frozen=True)
class ScatterData:
    """A scatter plot of one measure against another.

    Attributes
    ----------
    x_label, y_label
        Labels of the axes, with units.
    clouds
        Series in the order of the legend.
    reverse_x
        Whether the x axis is reversed, because lower is better, as for delays.
    diagonal
        Whether to show the line of equal values, for axes with the same measure.
    """

    x_label: str
    y_label: str
    clouds: tuple[Cloud, ...]
    reverse_x: bool = False
    diagonal: bool = False
    caption: str = ""


Chart = CurvesData | GroupsData | ScatterData | HeatMapData | MapData | RegionData


@dataclass(frozen=True)
class Multiples:
    """Small charts of one kind side by side, with common scales and one legend.

    Attributes
    ----------
    parts
        Title and chart; the title of a single chart may be empty.
    caption
        Explanation of all charts for the reader.
    colours
        Position in the palette by label, for figures of one page; see `page_colours`.
    """

    parts: tuple[tuple[str, Chart], ...]
    caption: str = ""
    colours: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ModeSpan:
    """An interval in which a controller was in one mode."""

    mode: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class FlowEvents:
    """cwnd of a flow, with losses and modes.

    Attributes
    ----------
    label
        Name of the flow.
    time_s, window, threshold
        Shape (bins,): ends of intervals, cwnd and ssthresh in kB; NaN if there is no value.
    lost_s, lost_window
        Shape (losses,): times of losses, and cwnd at these times.
    modes
        Modes of the controller in order of time.
    """

    label: str
    time_s: Floats
    window: Floats
    threshold: Floats
    lost_s: Floats
    lost_window: Floats
    modes: tuple[ModeSpan, ...]


@dataclass(frozen=True)
class EventsData:
    """cwnd of the flows of one run, with events."""

    title: str
    flows: tuple[FlowEvents, ...]
    caption: str = ""
