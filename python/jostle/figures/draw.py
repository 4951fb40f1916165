"""Draws figure data with Matplotlib, without its global state."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize, TwoSlopeNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from jostle.figures.style import COLOURS, COLUMN_IN, DASHES, GREY, RC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jostle.figures.data import HeatMapData, PanelData, PhaseBand, StackedData
    from jostle.figures.family import FamilyData, Member

_PANEL_IN = 1.05
_ROW_IN = 0.3
_BAR_GAP_IN = 0.17
_LABEL_CHARACTERS = 18
# Columns of a heat map whose names fit beside each other, and whose numbers have decimals.
_FEW_COLUMNS = 7
_WHOLE_ABOVE = 10.0
# Larger values have one decimal, not two: the second would be less than half a percent.
_ONE_DECIMAL_ABOVE = 20.0
# Larger values have no decimals in any heat map: they would be less than half a percent.
_WIDE_ABOVE = 200.0
_GROUP_IN = 1.75
_MEMBER_IN = 0.27
# Of a column's width: what a name's box takes.
_BOX = 0.52


def stacked(data: StackedData) -> Figure:
    """Draw panels over a common time axis, the legend above them."""
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        panels = len(data.panels)
        legend_rows = -(-len(data.panels[0].lines) // 2) + bool(data.title)
        figure = _figure(panels * _PANEL_IN + 0.45 + 0.16 * legend_rows)
        axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, data.panels, strict=True):
            _shade(axis, data.phases)
            _panel(axis, panel)
        _name_phases(axes[0], data.phases)
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0.0, _end_s(data))
        axes[-1].xaxis.set_major_locator(_round_ticks(10))
        figure.align_ylabels(list(axes))
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(
            handles,
            names,
            loc="outside upper center",
            ncols=min(2, len(names)),
            title=data.title or None,
            handlelength=2.4,
            columnspacing=1.6,
            borderaxespad=0.1,
        )
        return figure


def heat_map(data: HeatMapData) -> Figure:
    """Draw a table of numbers as colours, each number in its cell."""
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        rows, columns = data.values.shape
        lines = sum(max(1, _wrapped(name).count("\n") * 0.6) for name in data.rows)
        crowded = columns > _FEW_COLUMNS
        figure = _figure(lines * _ROW_IN + 1.1)
        if crowded:
            figure.set_size_inches(1.2 + columns * _ROW_IN, lines * 0.75 * _ROW_IN + 1.6)
        axis = figure.subplots()
        norm: Normalize
        if data.diverging:
            colours, norm = mpl.colormaps["RdBu"], TwoSlopeNorm(0.0, data.lowest, data.highest)
        else:
            colours, norm = mpl.colormaps["cividis"], Normalize(data.lowest, data.highest)
        mesh = axis.pcolormesh(
            np.ma.masked_invalid(data.values), cmap=colours, norm=norm, edgecolors="w", linewidth=1
        )
        axis.invert_yaxis()
        axis.set_xticks(
            np.arange(columns) + 0.5,
            data.columns,
            rotation=60 if crowded else 0,
            ha="right" if crowded else "center",
            rotation_mode="anchor",
        )
        axis.set_yticks(np.arange(rows) + 0.5, [_wrapped(name) for name in data.rows])
        axis.set(xlabel=data.column_label, ylabel=data.row_label)
        axis.tick_params(length=0)
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        for row in range(rows):
            for column in range(columns):
                _number(axis, data, row, column, colours(norm(data.values[row, column])))
        unit = f" ({data.unit})" if data.unit else ""
        height_in = figure.get_size_inches()[1]
        bar = figure.colorbar(
            mesh, ax=axis, orientation="horizontal", location="bottom", aspect=34,
            # A share of the axes: the same distance below many rows as below few.
            pad=_BAR_GAP_IN / height_in,
        )  # fmt: skip
        bar.set_label(f"{data.quantity}{unit}", labelpad=1)
        for x, side, words in ((0, "left", f"◂ {data.ends[0]}"), (1, "right", f"{data.ends[1]} ▸")):
            bar.ax.text(
                x,
                1.25,
                words,
                transform=bar.ax.transAxes,
                ha=side,
                va="bottom",
                fontsize=6.5,
                color=GREY,
            )
        bar.outline.set_visible(False)
        bar.locator = _round_ticks(6)
        bar.update_ticks()
        return figure


def family(data: FamilyData) -> Figure:
    """Draw groups as columns, and an arrow from each controller to those that build on it."""
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        rows = 1 + max(member.row for member in data.members)
        size = (_GROUP_IN * len(data.groups), _MEMBER_IN * (rows + 2))
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axis = figure.subplots()
        axis.set(xlim=(-0.5, len(data.groups) - 0.5), ylim=(rows + 0.2, -1.5))
        axis.set_axis_off()
        for column, group in enumerate(data.groups):
            axis.text(column, -1.1, group, ha="center", va="center", fontsize=9, weight="bold")
        for member in data.members:
            colour = COLOURS[member.group % len(COLOURS)]
            corner = (member.group - _BOX / 2, _level(member) - 0.34)
            # What is only named has a dashed edge and nothing in it.
            axis.add_patch(
                FancyBboxPatch(
                    corner, _BOX, 0.68, boxstyle="round,pad=0,rounding_size=0.08",
                    facecolor=_tint(colour) if member.here else "white", edgecolor=colour,
                    linewidth=0.8,
                    linestyle="solid" if member.here else (0, (3, 2)),
                )
            )  # fmt: skip
            axis.text(
                member.group,
                _level(member),
                member.name,
                ha="center",
                va="center",
                color="black" if member.here else GREY,
            )
        places = {member.name: member for member in data.members}
        for ancestor, descendant in data.descents:
            _descent(axis, places[ancestor], places[descendant])
        return figure


def _level(member: Member) -> float:
    """Every other column half a row lower, so that level arrows pass between its names."""
    return member.row + 0.5 * (member.group % 2)


def _tint(colour: str) -> tuple[float, ...]:
    """Mix a colour with white: opaque, so that it hides what passes behind."""
    return tuple(0.87 + 0.13 * part for part in to_rgb(colour))


def _descent(axis: Axes, ancestor: Member, descendant: Member) -> None:
    """Between columns from side to side; within one, past the names between them on the left."""
    form: dict[str, Any]
    if ancestor.group != descendant.group:
        form = {"path": _way(ancestor, descendant)}
    else:
        rows = descendant.row - ancestor.row
        # However far it reaches, it stays within the figure.
        bend = min(0.35, 2.8 / rows) if rows > 1 else 0.7
        form = {
            "posA": (ancestor.group - _BOX / 2, _level(ancestor)),
            "posB": (descendant.group - _BOX / 2, _level(descendant)),
            "connectionstyle": f"arc3,rad={bend}",
            "shrinkA": 0,
            "shrinkB": 0.5,
        }
    axis.add_patch(
        FancyArrowPatch(
            **form, arrowstyle="-|>,head_length=2.5,head_width=1.3", linewidth=0.6, alpha=0.75,
            color=COLOURS[ancestor.group % len(COLOURS)], zorder=0,
        )
    )  # fmt: skip


def _way(ancestor: Member, descendant: Member) -> Path:
    """Bends in the spaces between columns; the columns on the way are crossed between two names."""
    step = 1 if descendant.group > ancestor.group else -1
    aim = _level(descendant)
    points = [(ancestor.group + step * _BOX / 2, _level(ancestor))]
    for column in range(ancestor.group + step, descendant.group, step):
        # Names are at whole levels or halfway, in turn, and so are the gaps between them.
        offset = 0.5 * (column % 2 == 0)
        gap = round(aim - offset) + offset
        points += [(column - step * _BOX / 2, gap), (column + step * _BOX / 2, gap)]
    points.append((descendant.group - step * _BOX / 2, aim))
    vertices, codes = [points[0]], [Path.MOVETO]
    for start, end in pairwise(points):
        middle = (start[0] + end[0]) / 2
        vertices += [(middle, start[1]), (middle, end[1]), end]
        codes += [Path.CURVE4] * 3
    return Path(vertices, codes)


def _figure(height_in: float) -> Figure:
    figure = Figure(figsize=(COLUMN_IN, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _panel(axis: Axes, panel: PanelData) -> None:
    for index, line in enumerate(panel.lines):
        colour_index, dash_index = line.style or (index, index)
        colour = COLOURS[colour_index % len(COLOURS)]
        dash: Any = DASHES[dash_index % len(DASHES)]
        axis.fill_between(line.time_s, line.low, line.high, color=colour, alpha=0.22, linewidth=0)
        axis.plot(line.time_s, line.mean, color=colour, linestyle=dash, label=line.label)
    axis.set_ylabel(f"{panel.quantity}\n({panel.unit})", linespacing=1.1)
    axis.set_ylim(*_limits(panel))
    axis.yaxis.set_major_locator(_round_ticks(4))


def _round_ticks(most: int) -> MaxNLocator:
    """Ticks at 1, 2 or 5 times a power of ten, which are read off more easily than thirds."""
    return MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=3)


def _limits(panel: PanelData) -> tuple[float, float]:
    """From 0 to a little above the means; a wide band in one bin must not flatten the rest."""
    means = [line.mean for line in panel.lines]
    highs = [line.high for line in panel.lines]
    peak = _largest(means)
    top = 1.06 * max(min(_largest(highs), 1.5 * peak), peak) or 1.0
    return 0.0, min(top, 106.0) if panel.unit == "%" else top


def _largest(arrays: list[Any]) -> float:
    return max((float(np.nanmax(a)) for a in arrays if np.any(~np.isnan(a))), default=0.0)


def _shade(axis: Axes, phases: tuple[PhaseBand, ...]) -> None:
    for phase in phases:
        axis.axvspan(phase.from_s, phase.to_s, color="#000000", alpha=0.045, linewidth=0, zorder=0)


def _name_phases(axis: Axes, phases: tuple[PhaseBand, ...]) -> None:
    for phase in phases:
        axis.text(
            (phase.from_s + phase.to_s) / 2,
            1.02,
            phase.name,
            transform=axis.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=6.5,
            color=GREY,
        )


def _signed(value: float) -> str:
    """Write a number with its sign; what rounds to nothing has none."""
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0.0 else text.replace("-", "\N{MINUS SIGN}")


def _wrapped(name: str) -> str:
    return textwrap.fill(name, _LABEL_CHARACTERS, break_long_words=False)


def _end_s(data: StackedData) -> float:
    ends = [line.time_s[-1] for line in data.panels[0].lines if line.time_s.size]
    ends += [phase.to_s for phase in data.phases]
    return max(ends, default=0.0) or 1.0


def _number(axis: Axes, data: HeatMapData, row: int, column: int, colour: Any) -> None:
    value = data.values[row, column]
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
    size = None if len(data.columns) <= _FEW_COLUMNS else 6
    axis.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=ink, fontsize=size)
