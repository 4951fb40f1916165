"""Drawing of cwnd with losses, recoveries and modes of the controller."""

from __future__ import annotations

import textwrap
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from jostle.figures.style import (
    COLOURS,
    COLUMN_IN,
    GREY,
    LETTER_IN,
    add_caption,
    legend_columns,
    look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jostle.figures.data import EventsData, FlowEvents

_PANEL_IN = 1.15
# Height of the strip of modes below cwnd, as a share of the panel.
_STRIP = 0.09
_RECOVERY = "recovery"
_PALE = (
    "#9ecae1", "#c7e9c0", "#dadaeb", "#fdd0a2", "#d9d9d9", "#fcbba1", "#c6dbef", "#e5d8bd",
    "#80cdc1", "#f4cae4", "#fff2ae", "#bcbddc",
)  # fmt: skip
_RECOVERY_COLOUR = "#de2d26"
# Positions in `_PALE`, so that a mode has one colour in all figures. Modes of Cubic, Reno and BBR
# that occur together differ; the other modes get a position from their names.
_PLACES = {
    "slow_start": 0, "convex": 1, "concave": 2, "reno_friendly": 3, "avoidance": 11,
    "startup": 4, "drain": 5, "probe_bw": 6, "probe_rtt": 7,
    "probe_bw_cruise": 6, "probe_bw_down": 8, "probe_bw_refill": 9, "probe_bw_up": 10,
}  # fmt: skip


def events(data: EventsData) -> Figure:
    """Draw a panel per flow: cwnd, ssthresh, losses, and a strip of the modes."""
    with look():
        colours = _mode_colours(data)
        names = ["cwnd", "ssthresh", "loss", *colours]
        heading = textwrap.fill(data.title, int(COLUMN_IN / LETTER_IN))
        columns = legend_columns(names, COLUMN_IN)
        rows = -(-len(names) // columns) + (heading.count("\n") + 1 if heading else 0)
        figure = Figure(
            figsize=(COLUMN_IN, _PANEL_IN * len(data.flows) + 0.5 + 0.16 * rows),
            layout="constrained",
        )
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(data.flows), 1, sharex=True, squeeze=False)[:, 0]
        handles: dict[str, Any] = {}
        for axis, flow in zip(axes, data.flows, strict=True):
            handles |= _panel(axis, flow, colours)
        handles |= {name: Patch(color=colour) for name, colour in colours.items()}
        axes[-1].set_xlabel("Time (s)")
        axes[-1].set_xlim(0.0, max(float(flow.time_s[-1]) for flow in data.flows))
        axes[-1].xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
        shown = [name for name in names if name in handles]
        figure.legend([handles[name] for name in shown], shown, loc="outside upper center",
                      ncols=legend_columns(shown, COLUMN_IN), title=heading or None,
                      handlelength=1.6, columnspacing=1.2, borderaxespad=0.1)  # fmt: skip
        add_caption(figure, data.caption)
        return figure


def _mode_colours(data: EventsData) -> dict[str, str]:
    modes = dict.fromkeys(span.mode for flow in data.flows for span in flow.modes)
    found = {
        mode: _PALE[_PLACES.get(mode, zlib.crc32(mode.encode())) % len(_PALE)]
        for mode in modes
        if mode != _RECOVERY
    }
    return {**found, **({_RECOVERY: _RECOVERY_COLOUR} if _RECOVERY in modes else {})}


def _panel(axis: Axes, flow: FlowEvents, colours: dict[str, str]) -> dict[str, Any]:
    top = float(np.nanmax(flow.window, initial=0.0)) or 1.0
    handles: dict[str, Any] = {}
    (handles["cwnd"],) = axis.plot(flow.time_s, flow.window, color=COLOURS[0], linewidth=0.9)
    # An ssthresh that was never set is far above all cwnd values.
    threshold = np.where(flow.threshold <= 1.5 * top, flow.threshold, np.nan)
    if not np.isnan(threshold).all():
        (handles["ssthresh"],) = axis.plot(
            flow.time_s, threshold, color=GREY, linewidth=0.7, linestyle=(0, (3, 2))
        )
    if flow.lost_s.size:
        (handles["loss"],) = axis.plot(
            flow.lost_s, flow.lost_window, linestyle="", marker="v", markersize=2.8,
            markeredgewidth=0, color=COLOURS[1], zorder=3,
        )  # fmt: skip
    low = -_STRIP * 1.35 * top
    for span in flow.modes:
        axis.axvspan(
            span.from_s, span.to_s, ymin=0.0, ymax=_STRIP, color=colours[span.mode], linewidth=0
        )
    axis.set_ylim(low, 1.08 * top)
    ticks = [tick for tick in axis.get_yticks() if 0 <= tick <= 1.08 * top]
    axis.set_yticks(ticks)
    axis.set_ylabel("cwnd\n(kB)", linespacing=1.1)
    axis.set_title(flow.label, color=GREY, pad=2)
    return handles
