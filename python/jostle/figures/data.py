"""What figures show, as numbers; nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jostle.stats import series_band
from jostle.stats.describe import Floats
from jostle.stats.distribution import Box
from jostle.stats.ellipse import Ellipse
from jostle.stats.envelope import Envelope

if TYPE_CHECKING:
    import polars as pl


Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Line:
    """A line with a band around it.

    Attributes
    ----------
    label
        What it stands for.
    time_s, mean, low, high
        Shape (bins,). NaN where there is no value; NaN in low and high where there is no
        interval.
    style
        Positions of its colour and its dash among those of `style.py`; if absent, both are the
        line's own position in its panel.
    few
        Shape (bins,): where fewer runs have a value than elsewhere.
    """

    label: str
    time_s: Floats
    mean: Floats
    low: Floats
    high: Floats
    style: tuple[int, int] | None = None
    few: Bools | None = None


@dataclass(frozen=True)
class Area:
    """What could be had at a time, shaded from 0 up, such as the capacity of a link.

    Attributes
    ----------
    label
        What it is.
    time_s, top
        Shape (bins,).
    """

    label: str
    time_s: Floats
    top: Floats


@dataclass(frozen=True)
class PanelData:
    """One panel: the y axis and what is on it."""

    quantity: str
    unit: str
    lines: tuple[Line, ...]
    areas: tuple[Area, ...] = ()


@dataclass(frozen=True)
class PhaseBand:
    """A window of time to be shaded."""

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class StackedData:
    """Panels over a common time axis.

    Attributes
    ----------
    title
        Name of the condition; empty if there is one only.
    panels
        From top to bottom.
    phases
        Windows to be shaded.
    runs
        Runs behind every line.
    caption
        What a reader should know of lines and bands.
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
        What the numbers are.
    rows, columns
        Names.
    values
        Shape (rows, columns); NaN where there is no value.
    lowest, highest
        Ends of the colour scale.
    diverging
        Whether 0 is the neutral middle, with blue above and red below.
    ends
        What the lowest and the highest end of the scale mean, in words.
    row_label, column_label
        What the names are of; may be empty where they say it themselves.
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


@dataclass(frozen=True)
class MapData:
    """Numbers at points of a plane, shown as colours; between them, those of the nearest point.

    Attributes
    ----------
    x_label, y_label
        What the axes are, with their units.
    x, y, values
        Shape (points,): where the points are, and what was found there.
    quantity, unit
        What the values are.
    lowest, highest
        Ends of the colour scale.
    diverging
        Whether 0 is the neutral middle.
    log_x, log_y
        Whether an axis is logarithmic.
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


@dataclass(frozen=True)
class RegionData:
    """Where something holds in a plane, with the points that say so.

    Attributes
    ----------
    x_label, y_label
        What the axes are, with their units.
    x, y
        Shape (points,).
    holds
        Shape (points,): 1 where it holds, 0 where not, NaN where nobody knows.
    certain
        Shape (points,): whether runs leave no doubt.
    x_edges, y_edges
        Shape (columns + 1,) and (rows + 1,): edges of cells.
    shares
        Shape (rows, columns): how much speaks for it, from 0 to 1; its boundary is at a half.
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
    """What a panel shows.

    Attributes
    ----------
    quantity, unit
        What it is, and the unit that is read.
    column, factor
        Column of the series, and what its values are multiplied by for that unit.
    """

    quantity: str
    unit: str
    column: str
    factor: float


_MANY_KB = 1e3
NO_CONTROLLER = "none"
"""What a run's summary has for the controller of pings."""


def flow_label(flow: Mapping[str, Any]) -> str:
    """Return what a legend calls a flow of a run's summary: its name, and its controller."""
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
) -> StackedData:
    """Columns of the series over time, each flow's mean over runs.

    Parameters
    ----------
    series
        One row per run, bin and flow: seed, time_s (end of the bin), flow, cwnd_bytes,
        sent_packets, and the panels' columns.
    labels
        Name in the figure for each flow to be shown, in the order of the legend.
    panels
        Which columns of the series are shown, from top to bottom.
    title, phases
        See `StackedData`.
    styles
        Colour and dash of flows; see `Line`.
    """
    import polars as pl

    sends = pl.col("sent_packets") > 0
    sending_at = pl.when(sends).then(pl.col("time_s"))
    while_open = pl.col("time_s").is_between(
        sending_at.min().over("seed", "flow"), sending_at.max().over("seed", "flow")
    )
    # A flow that is not open has no window, and pings never have one. One that lived within an
    # interval has none left at its end, and a mean.
    window: pl.Expr = pl.when(while_open & (pl.col("cwnd_bytes") > 0)).then(pl.col("cwnd_bytes"))
    if "cwnd_mean_bytes" in series.columns:
        window = pl.coalesce(window, pl.col("cwnd_mean_bytes").fill_nan(None))
    shown = series.with_columns(cwnd_bytes=window)
    styled = styles or {}
    filled = []
    for quantity, unit, column, factor in panels:
        lines = tuple(
            replace(
                _line(shown.filter(pl.col("flow") == flow), column, factor, label),
                style=styled.get(flow),
            )
            for flow, label in labels.items()
        )
        filled.append(_readable(PanelData(quantity, unit, lines)))
    return StackedData(title, tuple(filled), tuple(phases), series["seed"].n_unique())


def _line(one_flow: pl.DataFrame, column: str, factor: float, label: str) -> Line:
    import polars as pl

    wide = one_flow.pivot("seed", index="time_s", values=column, aggregate_function="first")
    wide = wide.sort("time_s")
    end_s = wide["time_s"].to_numpy().astype(np.float64)
    values = wide.drop("time_s").cast(pl.Float64).fill_null(np.nan).to_numpy().T
    band = series_band(values * factor)
    # A point stands for its bin: it belongs in the middle.
    start_s = np.concatenate(([0.0], end_s[:-1]))[: len(end_s)]
    few = (band.n > 0) & (band.n < band.n.max(initial=0))
    # Nothing that the series holds is below zero; Student's t does not know that.
    low = np.where(band.mean >= 0, np.maximum(band.low, 0.0), band.low)
    return Line(label, (start_s + end_s) / 2, band.mean, low, band.high, few=few)


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
    """Points that belong together, joined by a line.

    Attributes
    ----------
    label
        What it stands for.
    x, y
        Shape (points,).
    low, high
        Shape (points,): ends of the interval, NaN where there is none.
    """

    label: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class CurvesData:
    """A measure against something, or distribution functions.

    Attributes
    ----------
    x_label, y_label
        What the axes are, with their units.
    curves
        In the order of the legend.
    log_x
        Whether the x axis is logarithmic.
    x_names
        Names of the points at x = 0, 1, …, where the axis has names instead of numbers.
    steps
        Whether values hold until the next point, as in a distribution function.
    joined
        Whether there is anything between the points; not if something else differs among them.
    """

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    x_names: tuple[str, ...] = ()
    steps: bool = False
    caption: str = ""
    joined: bool = True


@dataclass(frozen=True)
class GroupsData:
    """Bars or boxes, in groups beside each other.

    Attributes
    ----------
    y_label
        What the y axis is, with its unit.
    groups
        Names of the groups; one empty name if there is one group.
    labels
        Names within a group, the same in each.
    boxes
        Shape (groups, labels); none where there is no value. A bar has its mean, and its interval
        as `low` and `high`.
    bars
        Whether bars are drawn, or boxes.
    from_zero
        Whether the axis begins at 0.
    """

    y_label: str
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    boxes: tuple[tuple[Box | None, ...], ...]
    bars: bool = False
    caption: str = ""
    from_zero: bool = True


@dataclass(frozen=True)
class Cloud:
    """Points that belong together.

    Attributes
    ----------
    label
        What they stand for.
    x, y
        Shape (points,).
    around
        What is drawn around them: the ellipse of one standard deviation, or an envelope; None where
        there are too few points.
    path
        Whether the points follow each other in time and are joined.
    """

    label: str
    x: Floats
    y: Floats
    around: Ellipse | Envelope | None = None
    path: bool = False


@dataclass(frozen=True)
class ScatterData:
    """One measure against another.

    Attributes
    ----------
    x_label, y_label
        What the axes are, with their units.
    clouds
        In the order of the legend.
    reverse_x
        Whether less is better and stands on the right, as for delays.
    diagonal
        Whether the line of equal values is drawn: both axes are the same then.
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
    """Small charts of one kind beside each other, with the same scales and one legend.

    Attributes
    ----------
    parts
        Title and chart; a single one may have no title.
    caption
        What a reader should know of all of them.
    """

    parts: tuple[tuple[str, Chart], ...]
    caption: str = ""


@dataclass(frozen=True)
class ModeSpan:
    """A stretch of time in which a controller was in one mode."""

    mode: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class FlowEvents:
    """A flow's window and what happened to it.

    Attributes
    ----------
    label
        Name of the flow.
    time_s, window, threshold
        Shape (bins,): ends of intervals, window and slow-start threshold in kB; NaN where there is
        none.
    lost_s, lost_window
        Shape (losses,): when packets were lost, and the window then.
    modes
        Modes of the controller, one after the other.
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
    """Windows of flows in one run, with events."""

    title: str
    flows: tuple[FlowEvents, ...]
    caption: str = ""
