"""Drawing of link recordings: each quantity over time, with its distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jostle.figures.style import COLOURS, DASHES, add_caption, legend_columns, look, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.stats.descriptive import Floats

_WIDTH_IN = 7.0
_ROW_IN = 1.55
_NAME_IN = 1.25


@dataclass(frozen=True)
class Steps:
    """A step function, over time or as a distribution.

    Attributes
    ----------
    label
        Name in the legend.
    x, y
        Shape (n,): `y` holds from `x` on.
    """

    label: str
    x: Floats
    y: Floats


@dataclass(frozen=True)
class RecordedPanel:
    """A quantity over time (s), with its distribution and autocorrelation.

    Attributes
    ----------
    name
        Name of the quantity with its unit.
    over_time, distribution
        Step functions with the same labels.
    memory
        Autocorrelation over time lag (s); empty if it is not shown.
    """

    name: str
    over_time: tuple[Steps, ...]
    distribution: tuple[Steps, ...]
    memory: tuple[Steps, ...] = ()


def recorded(panels: Sequence[RecordedPanel], caption: str = "") -> Figure:
    """Draw a row of charts for each quantity."""
    with_memory = any(panel.memory for panel in panels)
    widths = [2.0, 1.0, 1.0] if with_memory else [2.0, 1.0]
    labels = list(dict.fromkeys(one.label for panel in panels for one in panel.over_time))
    with look():
        height_in = _ROW_IN * len(panels) + 0.35
        figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(panels), len(widths), squeeze=False, width_ratios=widths)
        for row, panel in zip(axes, panels, strict=True):
            drawn = (panel.over_time, panel.distribution, panel.memory)
            for axis, steps in zip(row, drawn, strict=False):
                _draw(axis, steps, labels)
            row[0].set_ylabel(wrapped(panel.name, _NAME_IN))
            row[0].set_xlabel("Time (s)")
            row[0].set_ylim(bottom=0)
            row[1].set_xlabel(wrapped(panel.name, _NAME_IN))
            row[1].set_ylabel("Share not above")
            row[1].set_ylim(0, 1.02)
            if with_memory:
                row[2].set_xlabel("Lag (s)")
                row[2].set_ylabel("Autocorrelation")
        if len(labels) > 1:
            handles = dict(zip(*reversed(axes[0][0].get_legend_handles_labels()), strict=True))
            figure.legend(
                [handles[label] for label in labels],
                labels,
                loc="outside upper center",
                ncols=legend_columns(labels, _WIDTH_IN),
            )
        add_caption(figure, caption)
        return figure


def _draw(axis: Any, every: Sequence[Steps], labels: Sequence[str]) -> None:
    for one in every:
        at = labels.index(one.label)
        axis.step(
            one.x,
            one.y,
            where="post",
            label=one.label,
            lw=0.8,
            color=COLOURS[at % len(COLOURS)],
            ls=DASHES[at % len(DASHES)],
        )
