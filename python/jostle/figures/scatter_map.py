"""Drawing of values at points of a plane as colours, with nearest-neighbour interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap, Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from jostle.figures.data import RegionData
from jostle.figures.style import COLOURS, COLUMN_IN, GREY, PAGE_WIDTH_IN, add_caption, look, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from jostle.figures.data import MapData
    from jostle.stats.descriptive import Floats

_HEIGHT_IN = 2.9
_CELLS = 160
# Space beyond the outermost points, as a share of the axis.
_MARGIN = 0.04


def draw_map(data: MapData | RegionData) -> Figure:
    """Draw a single map."""
    if isinstance(data, RegionData):
        return regions([("", data)], data.caption)
    return maps([("", data)], data.caption)


def maps(parts: Sequence[tuple[str, MapData]], caption: str = "") -> Figure:
    """Draw maps side by side with a common colour scale."""
    with look():
        figure, axes = _create_axes([title for title, _ in parts])
        width_in = figure.get_figwidth()
        first = parts[0][1]
        colours, norm = _scale(first)
        dots: Any = None
        for axis, (_, data) in zip(axes, parts, strict=False):
            dots = _map(axis, data, colours, norm)
        bar = figure.colorbar(dots, ax=axes, location="bottom", aspect=34,
                              shrink=min(1.0, 3.2 / width_in), pad=0.02)  # fmt: skip
        unit = f" ({first.unit})" if first.unit else ""
        bar.set_label(wrapped(f"{first.quantity}{unit}", min(0.8 * width_in, 3.2)))
        bar.locator = MaxNLocator(6, steps=[1, 2, 5, 10], min_n_ticks=3)
        bar.update_ticks()
        add_caption(figure, caption)
        return figure


def regions(parts: Sequence[tuple[str, RegionData]], caption: str = "") -> Figure:
    """Draw regions side by side, each with its boundary and points."""
    with look():
        figure, axes = _create_axes([title for title, _ in parts])
        for axis, (_, data) in zip(axes, parts, strict=False):
            _region(axis, data)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, borderaxespad=0.1)
        add_caption(figure, caption)
        return figure


def _create_axes(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Return a figure with one chart per title, in rows of up to three."""
    across = min(len(titles), 3)
    down = -(-len(titles) // across)
    width_in = COLUMN_IN if across == 1 else PAGE_WIDTH_IN
    figure = Figure(figsize=(width_in, _HEIGHT_IN * down), layout="constrained")
    FigureCanvasAgg(figure)
    axes: list[Axes] = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, color=GREY)
    for axis in axes[len(titles) :]:
        axis.set_visible(False)
    return figure, axes


_LOOKS: Final = ((1.0, "holds", "o", COLOURS[0]), (0.0, "does not hold", "s", COLOURS[1]))


def _region(axis: Axes, data: RegionData) -> None:
    for log, scale in ((data.log_x, axis.set_xscale), (data.log_y, axis.set_yscale)):
        scale("log" if log else "linear")
    shades = ListedColormap([COLOURS[1], COLOURS[0]])
    axis.pcolormesh(data.x_edges, data.y_edges, data.shares > 0.5, cmap=shades, vmin=0, vmax=1,
                    alpha=0.18, linewidth=0, rasterized=True)  # fmt: skip
    if data.shares.min() < 0.5 < data.shares.max():
        places = [_between(edges, log) for edges, log in
                  ((data.x_edges, data.log_x), (data.y_edges, data.log_y))]  # fmt: skip
        axis.contour(*places, data.shares, levels=[0.5], colors="#333333", linewidths=1.0)
    for kind, label, marker, colour in _LOOKS:
        for certain in (True, False):
            at = (data.holds == kind) & (data.certain == certain)
            (points,) = axis.plot(
                data.x[at], data.y[at], linestyle="", marker=marker, markersize=3.2,
                markeredgecolor=colour, markeredgewidth=0.8, clip_on=False, zorder=3,
                color=colour if certain else "white",
                label=label if certain else f"{label}, open",
            )  # fmt: skip
            # Unclipped points would be included in the layout and shrink the axes.
            points.set_in_layout(False)
    nobody = np.isnan(data.holds)
    axis.plot(data.x[nobody], data.y[nobody], linestyle="", marker="x", markersize=3, color=GREY)
    axis.set(xlabel=data.x_label, ylabel=data.y_label)
    axis.grid(visible=False)
    for log, one in ((data.log_x, axis.xaxis), (data.log_y, axis.yaxis)):
        if log:
            log_ticks(one)


def _between(edges: Floats, log: bool) -> Floats:
    """Return the centres of cells."""
    if not log:
        return _middles(edges)
    found: Floats = np.exp(_middles(np.log(edges)))
    return found


def _scale(data: MapData) -> tuple[Any, Normalize]:
    if data.diverging:
        return mpl.colormaps["RdBu"], TwoSlopeNorm(0.0, data.lowest, data.highest)
    return mpl.colormaps["cividis"], Normalize(data.lowest, data.highest)


def _map(axis: Axes, data: MapData, colours: Any, norm: Normalize) -> Any:
    # On a logarithmic axis, distances are measured between logarithms.
    places = [np.log(at) if log else at for at, log in
              ((data.x, data.log_x), (data.y, data.log_y))]  # fmt: skip
    edges, shares = zip(*(_edges(place) for place in places), strict=True)
    nearest = _nearest(shares, [_middles(one) for one in edges])
    shown = [np.exp(one) if log else one for one, log in
             zip(edges, (data.log_x, data.log_y), strict=True)]  # fmt: skip
    for log, scale in ((data.log_x, axis.set_xscale), (data.log_y, axis.set_yscale)):
        scale("log" if log else "linear")
    axis.pcolormesh(*shown, data.values[nearest], cmap=colours, norm=norm, alpha=0.45,
                    linewidth=0, rasterized=True)  # fmt: skip
    dots = axis.scatter(data.x, data.y, c=data.values, cmap=colours, norm=norm, s=14,
                        edgecolors="white", linewidths=0.5)  # fmt: skip
    axis.set(xlabel=data.x_label, ylabel=data.y_label)
    axis.grid(visible=False)
    for log, one in ((data.log_x, axis.xaxis), (data.log_y, axis.yaxis)):
        if log:
            log_ticks(one)
    return dots


def log_ticks(axis: Axis) -> None:
    """Put ticks at 1, 2, 5, 10, … on a logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    # Matplotlib's default labels use math text, which is disabled for names from scenarios.
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(lambda _value, _: "")


def _edges(places: Floats) -> tuple[Floats, tuple[float, float, Floats]]:
    """Return cell edges over the range of points, and the range with the points."""
    low, high = float(places.min()), float(places.max())
    room = (high - low or 1.0) * _MARGIN
    return np.linspace(low - room, high + room, _CELLS + 1), (low, high or 1.0, places)


def _middles(edges: Floats) -> Floats:
    return (edges[1:] + edges[:-1]) / 2


def _nearest(shares: Sequence[tuple[float, float, Floats]], middles: Sequence[Floats]) -> Any:
    """Return the index of the nearest point for each cell, with both ranges scaled to 1."""
    best = np.full((middles[1].size, middles[0].size), np.inf)
    nearest = np.zeros(best.shape, dtype=np.int64)
    spans = [high - low or 1.0 for low, high, _ in shares]
    for at in range(shares[0][2].size):
        away_x, away_y = (
            ((middle - points[at]) / span) ** 2
            for middle, (_, _, points), span in zip(middles, shares, spans, strict=True)
        )
        away = away_y[:, None] + away_x[None, :]
        closer = away < best
        best[closer], nearest[closer] = away[closer], at
    return nearest
