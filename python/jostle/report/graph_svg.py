"""A drawing of a network of nodes in a circle, with links as lines, and paths of flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from jostle.report.svg import text
from jostle.safe_io.terminal_text import escape_control_characters

__all__ = ["FlowPath", "graph"]

_WIDTH = 860
_NAME = 130
_ROW = 20


class FlowPath(NamedTuple):
    """Path of one or several flows: name, note, and the nodes of the path."""

    title: str
    note: str
    nodes: tuple[str, ...]


def graph(
    ends: Sequence[tuple[str, str]],
    rates: Sequence[str],
    notes: Sequence[str],
    ways: Sequence[FlowPath],
) -> str:
    """Draw a network as SVG.

    Parameters
    ----------
    ends
        Start and end node of each link; two links of one pair are drawn as one line.
    rates
        Labels of the links.
    notes
        Tooltips of the links.
    ways
        Paths of flows, listed below the drawing.
    """
    names = _around(ends)
    radius = max(110.0, 13.0 * len(names))
    middle = (_WIDTH / 2, radius + 40)
    height = round(2 * radius + 80 + _ROW * len(ways) + 10)
    at = {
        name: (
            middle[0] + 1.25 * radius * math.sin(2 * math.pi * number / len(names)),
            middle[1] - radius * math.cos(2 * math.pi * number / len(names)),
        )
        for number, name in enumerate(names)
    }
    parts = [
        f'<svg class="topology" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
        f' height="{height}" role="img" aria-label="The network: nodes and the links that join'
        ' them, and the ways of flows">'
    ]
    both: dict[tuple[str, str], list[int]] = {}
    for number, (one, other) in enumerate(ends):
        both.setdefault((min(one, other), max(one, other)), []).append(number)
    for pair, numbers in both.items():
        (x0, y0), (x1, y1) = at[pair[0]], at[pair[1]]
        told = "; ".join(f"{ends[n][0]} to {ends[n][1]}: {notes[n]}" for n in numbers)
        parts.append(
            f'<path class="lane" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}">'
            f"<title>{escape(escape_control_characters(told))}</title></path>"
        )
        if len(both) <= 2 * _ROW:
            place = ((x0 + x1) / 2 + 3, (y0 + y1) / 2 - 3)
            parts.append(text(place, rates[numbers[0]], "start", "quiet", _NAME))
    for name, (x, y) in at.items():
        right = x >= middle[0]
        parts.append(f'<circle class="crossed" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        place = (x + (9 if right else -9), y + 4)
        parts.append(text(place, name, "start" if right else "end", "strong", _NAME))
    for row, way in enumerate(ways):
        y = 2 * radius + 86 + _ROW * row
        parts.append(text((250, y), way.title, "end", "", 240))
        said = ", ".join(filter(None, (" → ".join(way.nodes), way.note)))
        parts.append(text((264, y), said, "start", "quiet", _WIDTH - 264))
    parts.append("</svg>")
    return "".join(parts)


def _around(ends: Sequence[tuple[str, str]]) -> list[str]:
    """Order nodes so that neighbours are adjacent where possible."""
    beside: dict[str, list[str]] = {}
    for one, other in ends:
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    order: dict[str, None] = {}
    waiting = list(beside)[::-1]
    while waiting:
        node = waiting.pop()
        if node not in order:
            order[node] = None
            waiting += [other for other in reversed(beside[node]) if other not in order]
    return list(order)
