"""Draws whatever figure data there are, here or in other processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jostle.figures.data import (
    CurvesData,
    EventsData,
    GroupsData,
    HeatMapData,
    MapData,
    Multiples,
    RegionData,
    ScatterData,
    StackedData,
)
from jostle.figures.sequence_data import SequencesData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FigureData = (
    StackedData
    | HeatMapData
    | MapData
    | RegionData
    | CurvesData
    | GroupsData
    | ScatterData
    | Multiples
    | EventsData
    | SequencesData
)

_FEWEST = 6
"""Figures from which on other processes pay: each takes a second to load what draws."""


def drawn(data: FigureData) -> Figure:
    """Draw a figure's data."""
    from jostle.figures import charts, draw, events, heat, maps, sequence

    figure: Figure
    match data:
        case StackedData():
            figure = draw.stacked(data)
        case HeatMapData():
            figure = heat.heat_map(data)
        case MapData() | RegionData():
            figure = maps.alone(data)
        case Multiples():
            figure = charts.multiples(data)
        case EventsData():
            figure = events.events(data)
        case SequencesData():
            figure = sequence.sequences(data)
        case CurvesData() | GroupsData() | ScatterData():
            figure = charts.chart(data)
    return figure


def rendered(
    every: Sequence[FigureData], formats: Sequence[str], jobs: int = 1
) -> Iterator[dict[str, bytes]]:
    """Draw figures and write each in some formats, in the order in which they are given.

    Parameters
    ----------
    every
        What is drawn.
    formats
        Some of `png`, `svg`, `pdf`.
    jobs
        Processes that draw, if the figures are many. They are spawned, so the program's main module
        must be one that can be imported.
    """
    if jobs < 2 or len(every) < _FEWEST:
        for data in every:
            yield _render(data, formats)
        return
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial

    from jostle.child_processes import spawn_context
    from jostle.matplotlib_settings import use_packaged_settings

    with ProcessPoolExecutor(
        jobs, mp_context=spawn_context(), initializer=use_packaged_settings
    ) as processes:
        yield from processes.map(partial(_render, formats=formats), every)


def _render(data: FigureData, formats: Sequence[str]) -> dict[str, bytes]:
    from jostle.figures.save import to_bytes

    figure = drawn(data)
    return {name: to_bytes(figure, name) for name in formats}
