"""Drawing of time–sequence diagrams in the style of tcptrace and Wireshark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jostle.figures.style import (
    COLOURS,
    COLUMN_IN,
    GREY,
    add_caption,
    legend_columns,
    look,
    shortened,
)
from jostle.figures.time_sequence_data import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jostle.figures.time_sequence_data import SequenceData, SequencesData
    from jostle.stats.descriptive import Floats

    Bars = tuple[Floats, Floats, Floats]

_HEIGHT_IN = 2.7
_ROW_IN = 0.16
_CAPTION_ROW_IN = 0.11
_WINDOW_ROOM: Final = 0.3
"""Maximum height of the receive window above the data, as a share of the data's height."""
_AGAIN: Final = "retransmitted"
_UNITS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))

COLOUR_OF: Final = {
    "sent": "#222222",
    "retransmitted": COLOURS[1],
    "retransmitted (timeout)": "#b30000",
    "retransmitted (probe)": COLOURS[5],
    "came twice": COLOURS[5],
    "out of order": "#8c8c8c",
    "acknowledged": COLOURS[2],
    "SACKed": COLOURS[3],
    "came twice (D-SACK)": "#7a0177",
    "window": COLOURS[4],
}
"""Colours of tcptrace for ACKs (green) and SACKs (purple); its yellow is faint on white."""


def sequences(data: SequencesData) -> Figure:
    """Draw packets as bars from their first to their last byte, and ACKs and window as steps."""
    with look():
        scale, unit = _unit(data)
        low, high = _limits(data)
        alone = len(data.flows) == 1
        drawn = Figure(figsize=(COLUMN_IN, _HEIGHT_IN), layout="constrained")
        FigureCanvasAgg(drawn)
        axis = drawn.subplots()
        handles: dict[str, Any] = {}
        for at, flow in enumerate(data.flows):
            own = None if alone else COLOURS[at % len(COLOURS)]
            handles |= _flow(axis, flow, scale, high, own)
        if not alone and _AGAIN in handles:
            handles[_AGAIN] = handles.pop(_AGAIN)
        axis.set_ylim(low / scale, high / scale)
        axis.set_xlim(*_times(data))
        axis.set_xlabel(f"Time {data.clock} (s)" if data.clock else "Time (s)")
        axis.set_ylabel(f"Sequence ({unit})")
        names = [shortened(name, COLUMN_IN) for name in handles]
        columns = legend_columns(names, COLUMN_IN)
        title = data.title or (data.flows[0].label if alone else "")
        drawn.legend(
            list(handles.values()), names, loc="outside upper center", ncols=columns,
            title=shortened(title, COLUMN_IN) or None, handlelength=1.6, columnspacing=1.2,
            borderaxespad=0.1,
        )  # fmt: skip
        rows = -(-len(names) // columns) + bool(title)
        caption = " ".join(part for part in (data.caption, _beyond(data, high)) if part)
        more = _CAPTION_ROW_IN * -(-len(caption) * 0.047 // COLUMN_IN) if caption else 0.0
        drawn.set_figheight(_HEIGHT_IN + _ROW_IN * rows + more)
        add_caption(drawn, caption)
        return drawn


def _flow(
    axis: Axes, flow: SequenceData, scale: float, top: float, own: str | None
) -> dict[str, Any]:
    """Draw a flow up to byte `top`, in the colour `own` or with a colour per kind of element."""

    def colour(what: str) -> str:
        return own or COLOUR_OF[what]

    handles: dict[str, Any] = {}
    answers = flow.answers
    if answers.time_s.size:
        for what, values, dash in (
            ("window", answers.edge, (0, (3, 2)) if own else "-"),
            ("acknowledged", answers.acknowledged, "-"),
        ):
            if not np.isnan(values).all() and np.nanmin(values) <= top:
                (handles[what],) = axis.step(
                    answers.time_s, values / scale, where="post", color=colour(what),
                    linewidth=0.7, linestyle=dash, alpha=0.6 if own else 1.0,
                )  # fmt: skip
    sacks = flow.sacks
    for what, chosen in (
        ("SACKed", ~sacks.is_duplicate),
        ("came twice (D-SACK)", sacks.is_duplicate),
    ):
        if own is None and chosen.any():
            bars = (sacks.time_s[chosen], sacks.start[chosen], sacks.end[chosen])
            handles[what] = _bars(axis, bars, scale, colour(what))
    packets = flow.packets
    for what in dict.fromkeys(KINDS.values()):
        chosen = packets.of(what)
        if chosen.any():
            time_s, end = packets.time_s[chosen], packets.end[chosen]
            bars = (time_s, packets.start[chosen], end)
            handles[what] = _bars(axis, bars, scale, colour(what))
            if what != "sent":
                # A bar of one packet is hardly visible, so add a marker.
                axis.plot(time_s, end / scale, linestyle="", marker="v", markersize=2.6,
                          markeredgewidth=0, color=colour(what), zorder=3)  # fmt: skip
                handles[what] = Line2D([], [], linestyle="", marker="v", color=colour(what),
                                       markersize=3.5, markeredgewidth=0)  # fmt: skip
    order = [what for what in COLOUR_OF if what in handles]
    if own is None:
        return {what: handles[what] for what in order}
    again = [what for what in order if what.startswith(_AGAIN)]
    known = {flow.label: Line2D([], [], color=own, linewidth=1.4)}
    if again:
        known[_AGAIN] = Line2D(
            [], [], linestyle="", marker="v", color=GREY, markersize=3.5, markeredgewidth=0
        )
    return known


def _bars(axis: Axes, bars: Bars, scale: float, colour: str) -> Line2D:
    """Draw bars of bytes, and return a legend handle."""
    time_s, start, end = bars
    ends = np.stack([start, end], axis=1) / scale
    lines = np.stack([np.broadcast_to(time_s[:, np.newaxis], ends.shape), ends], axis=2)
    axis.add_collection(LineCollection(list(lines), colors=colour, linewidths=0.9))
    return Line2D([], [], color=colour, linewidth=1.4)


def _limits(data: SequencesData) -> tuple[float, float]:
    """Return the shown range of bytes: packets and ACKs, and the window unless it is far above."""
    parts = [
        values
        for flow in data.flows
        for values in (flow.packets.start, flow.packets.end, flow.answers.acknowledged)
        if values.size
    ]
    if not parts:
        return 0.0, 1.0
    low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    room = max(high - low, 1.0)
    edges = [float(np.nanmin(flow.answers.edge, initial=np.inf)) for flow in data.flows]
    if min(edges) < high + _WINDOW_ROOM * room:
        tops = [float(np.nanmax(flow.answers.edge, initial=0.0)) for flow in data.flows]
        high = min(max(high, *tops), high + _WINDOW_ROOM * room)
    return low - 0.03 * room, high + 0.05 * room


def _beyond(data: SequencesData, high: float) -> str:
    edges = [float(np.nanmin(flow.answers.edge, initial=np.inf)) for flow in data.flows]
    known = [edge for edge in edges if np.isfinite(edge)]
    if known and min(known) > high:
        return "The receiver's window is above what is shown."
    return ""


def _times(data: SequencesData) -> tuple[float, float]:
    parts = [
        values
        for flow in data.flows
        for values in (flow.packets.time_s, flow.answers.time_s)
        if values.size
    ]
    if not parts:
        return min(flow.from_s for flow in data.flows), max(flow.to_s for flow in data.flows)
    low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    room = max(high - low, 1e-6)
    return low - 0.01 * room, high + 0.01 * room


def _unit(data: SequencesData) -> tuple[float, str]:
    _, high = _limits(data)
    return next(((size, unit) for size, unit in _UNITS if high >= 2 * size), (1.0, "B"))
