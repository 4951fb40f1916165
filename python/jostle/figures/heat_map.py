"""Drawing of heat maps that fit on one page."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jostle.figures.style import COLUMN_IN, GREY, PAGE_IN, add_caption, look, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from jostle.figures.data import HeatMapData

_ROW_IN = 0.3
# Height of a row with a number and the published one below it, in rows with one number.
_TWO_LINES = 1.25
_LEAST_ROW_IN = 0.095
# Height of title, column names and colour scale.
_BESIDE_IN = 1.15
_BAR_GAP_IN = 0.17
_LABEL_CHARACTERS = 18
_POINTS_PER_IN = 72.0
# Maximum number of columns whose names fit on one line and whose numbers have decimals.
_FEW_COLUMNS = 7
_WHOLE_ABOVE = 10.0
# Larger values have one decimal instead of two, an error below half a percent.
_ONE_DECIMAL_ABOVE = 20.0
# Larger values have no decimals in any heat map, an error below half a percent.
_WIDE_ABOVE = 200.0


def heat_map(data: HeatMapData) -> Figure:
    """Draw a heat map with the number in each cell."""
    return heat_maps([("", data)], data.caption)


def heat_maps(parts: Sequence[tuple[str, HeatMapData]], caption: str = "") -> Figure:
    """Draw heat maps side by side with a common scale; split one that is longer than a page."""
    with look():
        alone = len(parts) == 1
        parts = [block for part in parts for block in _blocks(*part)]
        data = parts[0][1]
        most_rows = max(part.values.shape[0] for _, part in parts)
        columns = max(part.values.shape[1] for _, part in parts)
        row_in, wrapped = _row_height(parts, alone=alone)
        across = len(parts) if len(parts) <= 3 or alone else 2
        down = -(-len(parts) // across)
        figure = Figure(
            figsize=(_width(data, columns, across, wrapped), most_rows * row_in * down + _BESIDE_IN
                     + (down - 1) * 0.5 + 0.5 * (columns > _FEW_COLUMNS)),
            layout="constrained",
        )  # fmt: skip
        FigureCanvasAgg(figure)
        axes = figure.subplots(down, across, squeeze=False)
        colours, norm = _scale(data)
        mesh = None
        for axis, (title, part) in zip(axes.flat, parts, strict=False):
            mesh = _table(axis, part, colours, norm, row_in)
            axis.set_title(title)
        for axis in axes.flat[len(parts) :]:
            axis.set_visible(False)
        _bar(figure, axes, mesh, data)
        add_caption(figure, caption)
        return figure


def _blocks(title: str, data: HeatMapData) -> list[tuple[str, HeatMapData]]:
    most = int((PAGE_IN - _BESIDE_IN) / _LEAST_ROW_IN)
    rows = len(data.rows)
    if rows <= most:
        return [(title, data)]
    size = -(-rows // -(-rows // most))
    return [
        (title, replace(data, rows=data.rows[at : at + size], values=data.values[at : at + size]))
        for at in range(0, rows, size)
    ]


def _row_height(parts: Sequence[tuple[str, HeatMapData]], *, alone: bool) -> tuple[float, bool]:
    """Return the row height with which all rows fit, and whether names can be wrapped."""
    lines = max(
        sum(max(least, (_wrapped(name).count("\n") + 1) * 0.45) for name in part.rows)
        for _, part in parts
        for least in (1.0 if part.published is None else _TWO_LINES,)
    )
    rows = max(len(part.rows) for _, part in parts)
    down = -(-len(parts) // 2) if len(parts) > 3 and not alone else 1
    room_in = (PAGE_IN - _BESIDE_IN) / down
    if lines * _ROW_IN <= room_in:
        return lines / rows * _ROW_IN, True
    return max(min(_ROW_IN, room_in / rows), _LEAST_ROW_IN), False


def _width(data: HeatMapData, columns: int, across: int, wrapped: bool) -> float:
    cells_in = columns * _ROW_IN if columns > _FEW_COLUMNS else 2.2
    names = [_wrapped(name).split("\n")[0] if wrapped else name for name in data.rows]
    longest = max(map(len, names))
    names_in = 0.062 * min(longest, 60)
    return max(COLUMN_IN, (cells_in + names_in) * across + 0.2)


def _scale(data: HeatMapData) -> tuple[Any, Normalize]:
    if data.diverging:
        return mpl.colormaps["RdBu"], TwoSlopeNorm(0.0, data.lowest, data.highest)
    return mpl.colormaps["cividis"], Normalize(data.lowest, data.highest)


def _table(axis: Axes, data: HeatMapData, colours: Any, norm: Normalize, row_in: float) -> Any:
    rows, columns = data.values.shape
    crowded = columns > _FEW_COLUMNS or max(map(len, data.columns)) * columns > 40
    points = min(7.0, row_in * _POINTS_PER_IN * 0.68)
    wrapped = points >= 6.0
    mesh = axis.pcolormesh(
        np.ma.masked_invalid(data.values), cmap=colours, norm=norm, edgecolors="w",
        linewidth=1 if wrapped else 0.3,
    )  # fmt: skip
    axis.invert_yaxis()
    axis.set_xticks(
        np.arange(columns) + 0.5,
        data.columns,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    names = [_wrapped(name) if wrapped else name for name in data.rows]
    axis.set_yticks(np.arange(rows) + 0.5, names, fontsize=points)
    axis.set(xlabel=data.column_label, ylabel=data.row_label)
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    size = None if columns <= _FEW_COLUMNS and wrapped else min(6.0, points)
    for row in range(rows):
        for column in range(columns):
            _number(axis, data, row, column, (colours(norm(data.values[row, column])), size))
    return mesh


def _bar(figure: Figure, axes: Any, mesh: Any, data: HeatMapData) -> None:
    unit = f" ({data.unit})" if data.unit else ""
    height_in = figure.get_size_inches()[1]
    bar = figure.colorbar(
        mesh, ax=axes.ravel().tolist(), orientation="horizontal", location="bottom", aspect=34,
        # A share of the axes, so that the distance does not depend on the number of rows.
        pad=_BAR_GAP_IN / height_in, shrink=min(1.0, 3.2 / figure.get_size_inches()[0]),
    )  # fmt: skip
    width_in = min(0.8 * figure.get_size_inches()[0], 3.2)
    bar.set_label(wrapped(f"{data.quantity}{unit}", width_in), labelpad=1)
    for x, side, words in ((0, "left", f"◂ {data.ends[0]}"), (1, "right", f"{data.ends[1]} ▸")):
        bar.ax.text(
            x, 1.25, words, transform=bar.ax.transAxes, ha=side, va="bottom", fontsize=6.5,
            color=GREY,
        )  # fmt: skip
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(6, steps=[1, 2, 5, 10], min_n_ticks=3)
    bar.update_ticks()


def _signed(value: float) -> str:
    """Format a number with its sign, without one if it is rounded to 0."""
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0.0 else text.replace("-", "\N{MINUS SIGN}")


def _wrapped(name: str) -> str:
    return textwrap.fill(name, _LABEL_CHARACTERS, break_long_words=False)


def _number(
    axis: Axes, data: HeatMapData, row: int, column: int, look: tuple[Any, float | None]
) -> None:
    value = data.values[row, column]
    colour, size = look
    if np.isnan(value):
        text, ink = "–", GREY
    else:
        whole = data.highest > _WHOLE_ABOVE and len(data.columns) > _FEW_COLUMNS
        fine = 2 if data.highest < _ONE_DECIMAL_ABOVE else 1
        digits = 0 if whole or data.highest >= _WIDE_ABOVE else fine
        plain = f"{value:.{digits}f}"
        text = _signed(value) if data.diverging else plain
        red, green, blue = colour[:3]
        # Relative luminance (WCAG 2): black ink on light cells, white on dark ones.
        light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 > 0.2
        ink = "#000000" if light else "#ffffff"
    if data.published is not None and not np.isnan(data.published[row, column]):
        text += f"\n({data.published[row, column]:g})"
    axis.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=ink, fontsize=size)
