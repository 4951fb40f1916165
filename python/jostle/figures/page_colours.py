"""Colours for the figures of one page: a label has the same colour in each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.figures.data import (
    CurvesData,
    GroupsData,
    Multiples,
    PanelData,
    ScatterData,
    StackedData,
)
from jostle.figures.style import COLOURS

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData


def with_page_colours(every: Sequence[FigureData]) -> list[FigureData]:
    """Return figure data in which equal labels have equal colours.

    A label takes the first colour that no label of the page has, or else none of its figure. Two
    labels of one figure never share a colour while the palette has another one.
    """
    known: dict[str, int] = {}
    return [_coloured(data, _colours(_labels(data), known)) for data in every]


def _colours(labels: Sequence[str], known: dict[str, int]) -> dict[str, int]:
    """Return the positions in the palette of a figure's labels, and remember new labels."""
    found: dict[str, int] = {}
    for label in labels:
        if label in known and known[label] not in found.values():
            found[label] = known[label]
    for label in labels:
        if label in found:
            continue
        taken = set(found.values())
        free = [at for at in range(len(COLOURS)) if at not in taken]
        fresh = [at for at in free if at not in known.values()]
        found[label] = (fresh or free or [len(found)])[0]
        known.setdefault(label, found[label])
    return found


def _labels(data: FigureData) -> list[str]:
    found: list[str] = []
    match data:
        case CurvesData():
            found = [curve.label for curve in data.curves]
        case GroupsData():
            found = list(data.labels)
        case ScatterData():
            found = [cloud.label for cloud in data.clouds]
        case Multiples():
            found = [label for _, part in data.parts for label in _labels(part)]
        case StackedData():
            found = [line.label for panel in data.panels for line in panel.lines]
        case _:
            pass
    return list(dict.fromkeys(found))


def _coloured(data: FigureData, colours: Mapping[str, int]) -> FigureData:
    match data:
        case CurvesData() | GroupsData() | ScatterData():
            return Multiples((("", data),), data.caption, colours)
        case Multiples():
            return replace(data, colours=colours)
        case StackedData():
            return replace(data, panels=tuple(_panel(one, colours) for one in data.panels))
        case _:
            return data


def _panel(panel: PanelData, colours: Mapping[str, int]) -> PanelData:
    lines = tuple(
        line
        if line.style is not None
        else replace(line, style=(colours[line.label], colours[line.label]))
        for line in panel.lines
    )
    return replace(panel, lines=lines)
