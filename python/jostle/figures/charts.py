"""Drawing of curves, bars, boxes and scatter plots with Matplotlib, single or as multiples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jostle.figures import heat_map, scatter_map
from jostle.figures.data import (
    FEWEST_IN_A_BOX,
    CurvesData,
    GroupsData,
    HeatMapData,
    MapData,
    RegionData,
    ScatterData,
)
from jostle.figures.style import (
    COLOURS,
    COLUMN_IN,
    DASHES,
    GREY,
    PAGE_WIDTH_IN,
    PUBLISHED,
    PUBLISHED_MARK,
    add_caption,
    legend_columns,
    look,
    shortened,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jostle.figures.data import Chart, Multiples
    from jostle.stats.distribution import Box

Drawn = CurvesData | GroupsData | ScatterData

_HEIGHT_IN = 2.1
_SMALL_IN = 1.75
_LEGEND_ROW_IN = 0.15
_CAPTION_ROW_IN = 0.11
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Width of the bars or boxes of a group together, as a share of the group's width.
_GROUP = 0.8
_MOST_MARKED = 30
_MOST_TICKS = 10
# Minimum distance of two ticks on a logarithmic axis, as a share of the axis.
_LEAST_GAP = 0.04
# Maximum total length of the tick labels that fit on one line, in characters.
_TICK_LETTERS = 44
# Number of points from which smaller and paler markers are more legible.
_MANY_POINTS = 60


def chart(data: Drawn) -> Figure:
    """Draw a single chart: curves, groups of bars or boxes, or a scatter plot."""
    return _figure([("", data)], data.caption, {})


def multiples(data: Multiples) -> Figure:
    """Draw charts of one kind side by side, with common scales and one legend."""
    tables = [(title, part) for title, part in data.parts if isinstance(part, HeatMapData)]
    if tables:
        return heat_map.heat_maps(tables, data.caption)
    points = [(title, part) for title, part in data.parts if isinstance(part, MapData)]
    if points:
        return scatter_map.maps(points, data.caption)
    regions = [(title, part) for title, part in data.parts if isinstance(part, RegionData)]
    if regions:
        return scatter_map.regions(regions, data.caption)
    drawn = [
        (title, part)
        for title, part in data.parts
        if not isinstance(part, HeatMapData | MapData | RegionData)
    ]
    return _figure(drawn, data.caption, data.colours)


def _figure(parts: Sequence[tuple[str, Drawn]], caption: str, colours: Mapping[str, int]) -> Figure:
    with look():
        across = 1 if len(parts) == 1 else 2 if len(parts) in (2, 4) else 3
        down = -(-len(parts) // across)
        width_in = COLUMN_IN if across == 1 else PAGE_WIDTH_IN
        labels = _labels(parts)
        places = {label: at for at, label in enumerate(labels)} | dict(colours)
        shown = [shortened(label, width_in) for label in labels]
        columns = legend_columns(shown, width_in)
        height_in = _HEIGHT_IN if across == 1 else _SMALL_IN * down
        height_in += _LEGEND_ROW_IN * -(-len(labels) // columns)
        height_in += _CAPTION_ROW_IN * -(-len(caption) * 0.047 // width_in) if caption else 0.0
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(down, across, squeeze=False, sharex=across > 1, sharey=across > 1)
        for axis, (title, part) in zip(axes.flat, parts, strict=False):
            _DRAW[type(part)](axis, part, places)
            if title:
                axis.set_title(fill(title, 34), color=GREY)
        _limits(list(axes.flat[: len(parts)]), [part for _, part in parts])
        _outer_labels(axes, len(parts))
        handles: dict[str, Any] = {}
        for axis in axes.flat:
            handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        if labels:
            drawn = [pair for pair in zip(labels, shown, strict=True) if pair[0] in handles]
            ordered = [handles[label] for label, _ in drawn]
            figure.legend(ordered, [text for _, text in drawn], loc="outside upper center",
                          ncols=columns, handlelength=2.0, columnspacing=1.4,
                          borderaxespad=0.1)  # fmt: skip
        add_caption(figure, caption)
        return figure


def _labels(parts: Sequence[tuple[str, Drawn]]) -> list[str]:
    """Return the labels of all charts without duplicates, so that a label always looks the same."""
    found: dict[str, None] = {}
    for _, part in parts:
        match part:
            case CurvesData():
                found |= dict.fromkeys(curve.label for curve in part.curves)
            case GroupsData():
                found |= dict.fromkeys(() if len(part.groups) == 1 else part.labels)
            case ScatterData():
                found |= dict.fromkeys(cloud.label for cloud in part.clouds)
    if any(_is_published(part) for _, part in parts):
        found[PUBLISHED] = None
    return [] if set(found) == {""} else list(found)


def _is_published(part: Drawn) -> bool:
    """Return whether a chart has values that a paper publishes."""
    match part:
        case CurvesData():
            return any(curve.published is not None for curve in part.curves)
        case GroupsData():
            return any(value is not None for row in part.published for value in row)
        case ScatterData():
            return False


def _outer_labels(axes: Any, shown: int) -> None:
    """Label the outer axes only, and hide unused axes."""
    down, across = axes.shape
    for at, axis in enumerate(axes.flat):
        if at >= shown:
            axis.set_visible(False)
            continue
        if at % across:
            axis.set_ylabel("")
        if at + across < shown:
            axis.set_xlabel("")
        elif down > 1 and at // across < down - 1:
            # There is no chart below, so show the tick labels.
            axis.tick_params(labelbottom=True)


def _look(label: str, places: Mapping[str, int]) -> tuple[str, Any, str]:
    """Return colour, dash and marker of a label."""
    at = places.get(label, 0)
    dash = DASHES[at // len(COLOURS) % len(DASHES)]
    return COLOURS[at % len(COLOURS)], dash, _MARKERS[at % len(_MARKERS)]


def _curves(axis: Axes, data: CurvesData, places: Mapping[str, int]) -> None:
    for curve in data.curves:
        colour, dash, marker = _look(curve.label, places)
        if data.steps:
            axis.step(curve.x, curve.y, where="post", color=colour, ls=dash, label=curve.label)
            continue
        if curve.x.size == 1 or not data.joined:
            # A single point has no band, so draw its interval as an error bar.
            reach = [curve.y - curve.low, curve.high - curve.y]
            axis.errorbar(curve.x, curve.y, yerr=None if np.isnan(reach).any() else reach,
                          color=colour, capsize=1.5, elinewidth=0.8, ls="")  # fmt: skip
        if data.joined:
            axis.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
        marked = curve.x.size <= _MOST_MARKED or not data.joined
        axis.plot(
            curve.x,
            curve.y,
            color=colour,
            linestyle=dash if data.joined else "",
            marker=marker if marked else None,
            markersize=2.6,
            label=curve.label,
        )
        if curve.published is not None:
            axis.plot(curve.x, curve.published, label=PUBLISHED,
                      **PUBLISHED_MARK | {"markeredgecolor": colour})  # fmt: skip
    if data.log_x:
        _log_ticks(axis, data)
    if data.x_names:
        room = max(_TICK_LETTERS // len(data.x_names), 1)
        crowded = sum(map(len, data.x_names)) > 2 * _TICK_LETTERS
        names = data.x_names if crowded else [fill(name, max(room, 4)) for name in data.x_names]
        axis.set_xticks(range(len(names)), names, rotation=40 if crowded else 0,
                        ha="right" if crowded else "center", rotation_mode="anchor")  # fmt: skip
    _name_axes(axis, data.x_label, data.y_label)


def _name_axes(axis: Axes, x: str, y: str) -> None:
    """Set the labels of both axes, wrapped to their length."""
    figure = axis.get_figure(root=True)
    assert figure is not None
    grid = axis.get_gridspec()
    across = grid.ncols if grid else 1
    width_in = figure.get_size_inches()[0] / across
    axis.set_xlabel(wrapped(x, 0.8 * width_in))
    axis.set_ylabel(wrapped(y, 0.75 * _SMALL_IN if across > 1 else 0.75 * _HEIGHT_IN))


def _groups(axis: Axes, data: GroupsData, places: Mapping[str, int]) -> None:
    alone = len(data.groups) == 1
    width = _GROUP / (1 if alone else len(data.labels))
    for at, row in enumerate(data.boxes):
        for index, box in enumerate(row):
            x = index if alone else at + (index - (len(row) - 1) / 2) * width
            published = data.published[at][index] if data.published else None
            if published is not None:
                axis.plot([x], [published], label=PUBLISHED, **PUBLISHED_MARK)
            if box is None:
                continue
            colour = COLOURS[places.get(data.labels[index], index) % len(COLOURS)]
            label = data.labels[index] if at == 0 and not alone else None
            place = _BoxLayout(x, width, colour, label)
            few = 0 < box.values.size < FEWEST_IN_A_BOX
            (_bar if data.bars else _points if few else _box)(axis, box, place)
    names = data.labels if alone else data.groups
    room = _TICK_LETTERS // len(names)
    crowded = sum(map(len, names)) > 2 * _TICK_LETTERS
    shown = list(names) if crowded else [fill(name, max(room, 1)) for name in names]
    axis.set_xticks(range(len(names)), shown, rotation=40 if crowded else 0,
                    ha="right" if crowded else "center", rotation_mode="anchor")  # fmt: skip
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.tick_params(axis="x", length=0)
    axis.grid(visible=False, axis="x")
    _name_axes(axis, "", data.y_label)


def _scatter(axis: Axes, data: ScatterData, places: Mapping[str, int]) -> None:
    for cloud in data.clouds:
        colour, dash, marker = _look(cloud.label, places)
        many = cloud.x.size > _MANY_POINTS
        if cloud.path:
            axis.plot(cloud.x, cloud.y, color=colour, linewidth=0.6, alpha=0.75, label=cloud.label)
            axis.plot(cloud.x[-1:], cloud.y[-1:], color=colour, marker=marker, markersize=4)
            continue
        axis.plot(
            cloud.x,
            cloud.y,
            linestyle="",
            marker=marker,
            markersize=1.6 if many else 2.8,
            markeredgewidth=0,
            color=colour,
            alpha=0.35 if many else 0.55,
            label=cloud.label if cloud.around is None else None,
        )
        if cloud.around is not None:
            around = cloud.around
            axis.fill(around.outline_x, around.outline_y, color=colour, alpha=0.13, linewidth=0)
            axis.plot(around.outline_x, around.outline_y, color=colour, linestyle=dash,
                      linewidth=0.9)  # fmt: skip
            axis.plot([around.x], [around.y], color=colour, marker=marker, markersize=4.5,
                      markeredgecolor="white", markeredgewidth=0.5, linestyle="",
                      label=cloud.label)  # fmt: skip
    towards = "  (less →)" if data.reverse_x else ""
    _name_axes(axis, f"{data.x_label}{towards}", data.y_label)


_DRAW: Final[dict[type[Chart], Callable[[Axes, Any, Mapping[str, int]], None]]] = {
    CurvesData: _curves,
    GroupsData: _groups,
    ScatterData: _scatter,
}


def _limits(axes: Sequence[Axes], parts: Sequence[Drawn]) -> None:
    """Set the limits of the axes, which all charts share, after everything is drawn."""
    low = min(axis.get_ylim()[0] for axis in axes)
    high = max(axis.get_ylim()[1] for axis in axes)
    first = parts[0]
    match first:
        case CurvesData() | GroupsData() if first.y_limits is not None:
            # A little room for marks at the ends of the scale.
            room = 0.01 * (first.y_limits[1] - first.y_limits[0])
            low, high = first.y_limits[0] - room, first.y_limits[1] + room
        case CurvesData():
            curves = [curve for part in parts if isinstance(part, CurvesData) for curve in
                      part.curves]  # fmt: skip
            if all(np.nanmin(curve.y, initial=0.0) >= 0 for curve in curves):
                low = 0.0
            high = 1.005 if first.steps else high
        case GroupsData():
            low = 0.0 if first.from_zero else low
        case ScatterData():
            low, high = 0.0, 1.04 * high
            left = min(axis.get_xlim()[0] for axis in axes)
            right = max(axis.get_xlim()[1] for axis in axes)
            # Matplotlib's margin would extend below 0, where no delay is.
            left = max(left, 0.0)
            if first.diagonal:
                left, high = 0.0, max(right, high)
                right = high
                axes[0].plot([0, high], [0, high], color=GREY, linewidth=0.6,
                             linestyle=(0, (3, 3)), zorder=0)  # fmt: skip
            axes[0].set_xlim(*((right, left) if first.reverse_x else (left, right)))
    axes[0].set_ylim(low, high)


def _log_ticks(axis: Axes, data: CurvesData) -> None:
    """Put ticks at the points if they are few, with a spacing that keeps labels apart."""
    axis.set_xscale("log")
    points = np.unique(np.concatenate([curve.x for curve in data.curves]))
    if points.size > _MOST_MARKED or not data.joined:
        scatter_map.log_ticks(axis.xaxis)
        return
    marked = points[:: -(-points.size // _MOST_TICKS)]
    if marked.size > 1 and np.diff(np.log(marked)).min() < _LEAST_GAP * np.log(
        points[-1] / points[0]
    ):
        scatter_map.log_ticks(axis.xaxis)
        return
    axis.set_xticks(marked, [f"{x:g}" for x in marked])
    axis.set_xticks([], minor=True)


@dataclass(frozen=True)
class _BoxLayout:
    """Position, width and colour of a bar or box, and its legend entry if it has one."""

    x: float
    width: float
    colour: str
    label: str | None


def _bar(axis: Axes, box: Box, place: _BoxLayout) -> None:
    reach = [[box.mean - box.low], [box.high - box.mean]] if np.isfinite(box.low) else None
    axis.bar(
        place.x, box.mean, place.width * 0.9, color=place.colour, alpha=0.75, yerr=reach,
        label=place.label, error_kw={"elinewidth": 0.8, "capsize": 1.5},
    )  # fmt: skip


def _points(axis: Axes, box: Box, place: _BoxLayout) -> None:
    """Draw each value of a sample that is too small for quartiles, and their mean."""
    axis.plot(
        np.full(box.values.size, place.x), box.values, linestyle="", marker="o", markersize=3,
        markerfacecolor="none", markeredgecolor=place.colour, markeredgewidth=0.7,
        label=place.label,
    )  # fmt: skip
    axis.plot([place.x], [box.mean], linestyle="", marker="x", markersize=3.5,
              markeredgecolor=place.colour)  # fmt: skip


def _box(axis: Axes, box: Box, place: _BoxLayout) -> None:
    drawn = {
        "med": box.median, "q1": box.q1, "q3": box.q3, "whislo": box.low, "whishi": box.high,
        "mean": box.mean, "fliers": box.outliers,
    }  # fmt: skip
    line = {"color": place.colour, "linewidth": 0.9}
    parts = axis.bxp(
        [drawn], positions=[place.x], widths=place.width * 0.75, showmeans=True, manage_ticks=False,
        boxprops=line, whiskerprops=line, capprops=line, medianprops={**line, "linewidth": 1.4},
        meanprops={"marker": "x", "markersize": 3, "markeredgecolor": place.colour},
        flierprops={"marker": "o", "markersize": 2.5, "markeredgecolor": place.colour,
                    "markeredgewidth": 0.5},
    )  # fmt: skip
    if place.label is not None:
        parts["boxes"][0].set_label(place.label)
