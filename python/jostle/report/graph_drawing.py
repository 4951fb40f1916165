"""A drawing of a network of nodes: a circle of them, links as lines, flows by their ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from jostle.printable import printable
from jostle.report.svg import text

__all__ = ["Way", "graph"]

_WIDTH = 860
_NAME = 130
_ROW = 20


class Way(NamedTuple):
    """A flow, or several: its name, a note, and the nodes that it comes by."""

    title: str
    note: str
    nodes: tuple[str, ...]


def graph(
    ends: Sequence[tuple[str, str]], rates: Sequence[str], notes: Sequence[str], ways: Sequence[Way]
) -> str:
    """Draw a network as SVG.

    Parameters
    ----------
    ends
        Nodes that each link goes from and to; two links of one pair are one line.
    rates
        What is written beside a link's line.
    notes
        What is told of a link when it is pointed at.
    ways
        Rows below the drawing.
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
            f"<title>{escape(printable(told))}</title></path>"
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
    """Order nodes so that neighbours come after each other where that can be."""
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
