"""Colours for the figures of one page: a controller or label has the same colour in each figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from jostle.figures.data import (
    NO_CONTROLLER,
    CurvesData,
    GroupsData,
    Line,
    Multiples,
    PanelData,
    ScatterData,
    StackedData,
)
from jostle.figures.style import COLOURS

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData

_CONTROLLER: Final = re.compile(r"^.* \(([\w-]+)\)$")
"""A legend entry of a flow, `name (controller)`; see `flow_label`."""


def with_page_colours(every: Sequence[FigureData]) -> list[FigureData]:
    """Return figure data in which equal controllers and labels have equal colours.

    A label takes the first colour that no label of the page has, or else none of its figure. Two
    labels of one figure never share a colour while the palette has another one.
    """
    known: dict[str, int] = {}
    coloured = []
    for data in every:
        labels = _labels(data)
        places = _indices([_CONTROLLER.sub(r"\1", label) for label in labels], known)
        coloured.append(_coloured(data, dict(zip(labels, places, strict=True))))
    return coloured


def colour_indices(conditions: Iterable[Sequence[Mapping[str, Any]]]) -> list[list[int]]:
    """Return the positions in the palette of all flows, by condition; see `with_page_colours`.

    The second flow of a controller in a condition has another colour, which it keeps as well.
    """
    known: dict[str, int] = {}
    return [_indices([coloured_as(flow) for flow in flows], known) for flows in conditions]


def coloured_as(flow: Mapping[str, Any]) -> str:
    """Return what gives a flow of a summary its colour: its controller, or else its name."""
    name, controller = flow["name"], flow["controller"]
    return str(name if controller == NO_CONTROLLER else controller)


def _indices(names: Sequence[str], known: dict[str, int]) -> list[int]:
    """Return a position for each name of a figure; a name may occur several times."""
    keys = [f"{names[:at].count(name)} {name}" for at, name in enumerate(names)]
    found = _colours(keys, known)
    return [found[key] for key in keys]


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
            found = [
                line.label for panel in data.panels for line in panel.lines if _takes_colour(line)
            ]
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


def _takes_colour(line: Line) -> bool:
    """Return whether a line has the colour of the page; links and pairs of lines have others."""
    return line.style is None or _CONTROLLER.match(line.label) is not None


def _panel(panel: PanelData, colours: Mapping[str, int]) -> PanelData:
    lines = tuple(
        replace(line, style=(colours[line.label], colours[line.label]))
        if _takes_colour(line)
        else line
        for line in panel.lines
    )
    return replace(panel, lines=lines)
