"""Draws curves, bars and boxes with Matplotlib, in the style of the other figures."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jostle.figures.style import COLOURS, COLUMN_IN, DASHES, RC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from jostle.figures.data import CurvesData, GroupsData
    from jostle.stats.distribution import Box

_HEIGHT_IN = 2.1
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Of a group's width: what its bars or boxes take together.
_GROUP = 0.8
_MOST_MARKED = 30
_MOST_TICKS = 10
# Letters that all names below the axis have room for in one line.
_TICK_LETTERS = 44
# Letters that a row of the legend has room for, and that a line's sample and the gap take.
_LEGEND_LETTERS = 54
_HANDLE_LETTERS = 7


def curves(data: CurvesData) -> Figure:
    """Draw lines with the intervals of their points, the legend above them."""
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        figure, axis = _axes([curve.label for curve in data.curves])
        for index, curve in enumerate(data.curves):
            colour = COLOURS[index % len(COLOURS)]
            dash: Any = DASHES[index // len(COLOURS) % len(DASHES)]
            if data.steps:
                axis.step(curve.x, curve.y, where="post", color=colour, ls=dash, label=curve.label)
                continue
            axis.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
            marked = curve.x.size <= _MOST_MARKED
            axis.plot(
                curve.x,
                curve.y,
                color=colour,
                linestyle=dash,
                marker=_MARKERS[index % len(_MARKERS)] if marked else None,
                markersize=2.6,
                label=curve.label,
            )
        if data.log_x:
            _log_ticks(axis, data)
        if data.x_names:
            axis.set_xticks(range(len(data.x_names)), data.x_names)
        axis.set(xlabel=data.x_label, ylabel=data.y_label)
        if not _below_zero(data):
            axis.set_ylim(bottom=0, top=1.005 if data.steps else None)
        _legend(figure, axis)
        return figure


def groups(data: GroupsData) -> Figure:
    """Draw bars with intervals, or boxes with whiskers and outliers, in groups."""
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        alone = len(data.groups) == 1
        figure, axis = _axes(() if alone else data.labels)
        width = _GROUP / (1 if alone else len(data.labels))
        for at, row in enumerate(data.boxes):
            for index, box in enumerate(row):
                if box is None:
                    continue
                x = index if alone else at + (index - (len(row) - 1) / 2) * width
                colour = COLOURS[index % len(COLOURS)]
                label = data.labels[index] if at == 0 and not alone else None
                place = _Place(x, width, colour, label)
                (_bar if data.bars else _box)(axis, box, place)
        names = data.labels if alone else data.groups
        room = _TICK_LETTERS // len(names)
        axis.set_xticks(range(len(names)), [fill(name, max(room, 1)) for name in names])
        axis.set_xlim(-0.6, len(names) - 0.4)
        axis.set_ylim(bottom=0)
        axis.tick_params(axis="x", length=0)
        axis.grid(visible=False, axis="x")
        axis.set_ylabel(data.y_label)
        if not alone:
            _legend(figure, axis)
        return figure


def _below_zero(data: CurvesData) -> bool:
    return any(np.nanmin(curve.y, initial=0.0) < 0 for curve in data.curves)


def _log_ticks(axis: Axes, data: CurvesData) -> None:
    """Mark the points themselves, which a grid has few of; every other one if they are many."""
    axis.set_xscale("log")
    points = np.unique(np.concatenate([curve.x for curve in data.curves]))
    if points.size > _MOST_MARKED:
        # Matplotlib's own labels are mathematics, which labels of scenarios must not be.
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axis.xaxis.set_minor_formatter(lambda _x, _: "")
        return
    marked = points[:: -(-points.size // _MOST_TICKS)]
    axis.set_xticks(marked, [f"{x:g}" for x in marked])
    axis.set_xticks([], minor=True)


def _legend_columns(labels: Sequence[str]) -> int:
    """So many columns as the longest label leaves room for."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(3, len(labels), _LEGEND_LETTERS // (longest + _HANDLE_LETTERS)))


def _axes(legend: Sequence[str]) -> tuple[Figure, Axes]:
    rows = -(-len(legend) // _legend_columns(legend)) if legend else 0
    figure = Figure(figsize=(COLUMN_IN, _HEIGHT_IN + 0.15 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _legend(figure: Figure, axis: Axes) -> None:
    handles, names = axis.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=_legend_columns(names),
                  handlelength=2.0, columnspacing=1.4, borderaxespad=0.1)  # fmt: skip


@dataclass(frozen=True)
class _Place:
    """Where a bar or box stands, how wide, and in which colour; its name in the legend, if any."""

    x: float
    width: float
    colour: str
    label: str | None


def _bar(axis: Axes, box: Box, place: _Place) -> None:
    reach = [[box.mean - box.low], [box.high - box.mean]] if np.isfinite(box.low) else None
    axis.bar(
        place.x, box.mean, place.width * 0.9, color=place.colour, alpha=0.75, yerr=reach,
        label=place.label, error_kw={"elinewidth": 0.8, "capsize": 1.5},
    )  # fmt: skip


def _box(axis: Axes, box: Box, place: _Place) -> None:
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
