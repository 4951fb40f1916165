"""Drawing of figure data with Matplotlib, without its global state."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from jostle.figures.style import (
    COLOURS,
    COLUMN_IN,
    DARK,
    DASHES,
    GREY,
    LETTER_IN,
    PUBLISHED,
    add_caption,
    legend_columns,
    look,
    shortened,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jostle.figures.data import Bools, PanelData, PhaseBand, StackedData
    from jostle.figures.family_tree import FamilyData, FamilyTreeNode
    from jostle.stats.descriptive import Floats

_PANEL_IN = 1.05
# Above this number of lines and points, lines are thinner, so that they do not cover each other.
_FEW_LINES, _FEW_POINTS, _THIN = 3, 250, 0.5
_PUBLISHED_DASH = (0, (0.8, 1.4))
_GROUP_IN = 1.75
_MEMBER_IN = 0.27
# Width of a name's box, as a share of the column width.
_BOX = 0.52


def stacked(data: StackedData) -> Figure:
    """Draw panels over a common time axis, with the legend above them."""
    with look():
        panels = len(data.panels)
        figure = _figure(panels * _PANEL_IN + 0.45)
        axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, data.panels, strict=True):
            _shade(axis, data.phases)
            _panel(axis, panel)
        _name_phases(axes[0], data.phases)
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0.0, _end_s(data))
        axes[-1].xaxis.set_major_locator(_round_ticks(10))
        figure.align_ylabels(list(axes))
        _legend(figure, axes, data.title)
        add_caption(figure, data.caption)
        return figure


def _legend(figure: Figure, axes: Any, title: str) -> None:
    """Draw the legend with unique labels above the panels, and increase the figure's height."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    width_in, height_in = figure.get_size_inches()
    names = [shortened(name, width_in) for name in found]
    columns = legend_columns(names, width_in)
    heading = textwrap.fill(title, int(width_in / LETTER_IN))
    rows = -(-len(names) // columns) + (heading.count("\n") + 1 if heading else 0)
    figure.set_size_inches(width_in, height_in + 0.16 * rows)
    figure.legend(
        list(found.values()),
        names,
        loc="outside upper center",
        ncols=columns,
        title=heading or None,
        handlelength=2.4,
        columnspacing=1.6,
        borderaxespad=0.1,
    )


def family(data: FamilyData) -> Figure:
    """Draw groups as columns, with an arrow from each controller to its descendants."""
    with look():
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
            # Controllers that are not in the registry get a dashed edge and no fill.
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


def _level(member: FamilyTreeNode) -> float:
    """Return the row of a name. Every other column is half a row lower, so that arrows fit."""
    return member.row + 0.5 * (member.group % 2)


def _tint(colour: str) -> tuple[float, ...]:
    """Mix a colour with white. The result is opaque, so that it covers lines behind."""
    return tuple(0.87 + 0.13 * part for part in to_rgb(colour))


def _descent(axis: Axes, ancestor: FamilyTreeNode, descendant: FamilyTreeNode) -> None:
    """Draw an arrow: from side to side between columns, or on the left within a column."""
    form: dict[str, Any]
    if ancestor.group != descendant.group:
        form = {"path": _arrow_path(ancestor, descendant)}
    else:
        rows = descendant.row - ancestor.row
        # Limit the bend, so that long arrows stay within the figure.
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


def _arrow_path(ancestor: FamilyTreeNode, descendant: FamilyTreeNode) -> Path:
    """Return a path that bends between columns, and crosses columns between two names."""
    step = 1 if descendant.group > ancestor.group else -1
    aim = _level(descendant)
    points = [(ancestor.group + step * _BOX / 2, _level(ancestor))]
    for column in range(ancestor.group + step, descendant.group, step):
        # Columns alternate between whole and half levels, and so do the gaps between names.
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
    for area in panel.areas:
        axis.fill_between(area.time_s, 0.0, area.top, step="mid", color="#b9c4cc", alpha=0.6,
                          linewidth=0, label=area.label, zorder=0.5)  # fmt: skip
    for index, line in enumerate(panel.lines):
        colour_index, dash_index = line.style or (index, index)
        colour = COLOURS[colour_index % len(COLOURS)]
        dash: Any = DASHES[dash_index % len(DASHES)]
        axis.fill_between(line.time_s, line.low, line.high, color=colour, alpha=0.22, linewidth=0)
        mean = line.mean
        if line.few is not None and line.few.any():
            axis.plot(line.time_s, mean, color=colour, linestyle=dash, alpha=0.4, linewidth=0.8)
            mean = np.where(line.few, np.nan, mean)
        crowded = len(panel.lines) > _FEW_LINES and mean.size > _FEW_POINTS
        axis.plot(line.time_s, mean, color=colour, linestyle=dash, label=line.label,
                  linewidth=_THIN if crowded and line.style != DARK else None)  # fmt: skip
        for from_s, to_s, value in line.published:
            axis.plot([from_s, to_s], [value, value], color=colour, linewidth=1.6, alpha=0.8,
                      linestyle=_PUBLISHED_DASH)  # fmt: skip
        alone = _alone(line.mean)
        if not alone.any():
            continue
        # A line through a single point is invisible, so draw a marker.
        axis.plot(line.time_s[alone], line.mean[alone], color=colour, linestyle="", marker="o",
                  markersize=2.2)  # fmt: skip
    if any(line.published for line in panel.lines):
        axis.plot([], [], color=GREY, linewidth=1.6, linestyle=_PUBLISHED_DASH, label=PUBLISHED)
    quantity = wrapped(panel.quantity, _PANEL_IN)
    unit = f"\n({panel.unit})" if panel.unit else ""
    axis.set_ylabel(quantity + unit, linespacing=1.1)
    axis.set_ylim(*_limits(panel))
    axis.yaxis.set_major_locator(_round_ticks(4))


def _alone(values: Floats) -> Bools:
    """Return the bins with a value whose neighbours have none."""
    none = np.concatenate(([True], np.isnan(values), [True]))
    found: Bools = ~none[1:-1] & none[:-2] & none[2:]
    return found


def _round_ticks(most: int) -> MaxNLocator:
    """Return ticks at 1, 2 or 5 times a power of ten, which are easier to read than thirds."""
    return MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=3)


def _limits(panel: PanelData) -> tuple[float, float]:
    """Return limits from 0 to slightly above all values; wide intervals of a mean are cut."""
    means = [line.mean for line in panel.lines]
    means += [line.high for line in panel.lines if line.extremes]
    means += [np.array([value for *_, value in line.published]) for line in panel.lines]
    highs = [line.high for line in panel.lines]
    tops = [area.top for area in panel.areas]
    peak = max(_largest(means), _largest(tops))
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


def _end_s(data: StackedData) -> float:
    lines = [line.time_s for panel in data.panels for line in panel.lines]
    # Points are at the middle of their bins.
    ends = [s[-1] + (s[-1] - s[-2]) / 2 if s.size > 1 else s[-1] for s in lines if s.size]
    ends += [phase.to_s for phase in data.phases]
    return float(max(ends, default=0.0)) or 1.0
