"""Rendering of all kinds of figure data, in this process or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from jostle.figures.time_sequence_data import SequencesData

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
"""Minimum number of figures for which worker processes are used; each takes 1 s to start."""


def with_remarks(data: FigureData, remarks: Sequence[str]) -> FigureData:
    """Return figure data with remarks at the end of the caption."""
    told = " ".join(
        [
            *([data.caption] if data.caption else []),
            *(f"{one.removesuffix('.')}." for one in remarks),
        ]
    )
    return replace(data, caption=told) if remarks else data


def render_figure(data: FigureData) -> Figure:
    """Draw figure data."""
    from jostle.figures import charts, cwnd_events, draw, heat_map, scatter_map, time_sequence

    figure: Figure
    match data:
        case StackedData():
            figure = draw.stacked(data)
        case HeatMapData():
            figure = heat_map.heat_map(data)
        case MapData() | RegionData():
            figure = scatter_map.draw_map(data)
        case Multiples():
            figure = charts.multiples(data)
        case EventsData():
            figure = cwnd_events.events(data)
        case SequencesData():
            figure = time_sequence.sequences(data)
        case CurvesData() | GroupsData() | ScatterData():
            figure = charts.chart(data)
    return figure


def render_bytes(
    every: Sequence[FigureData], formats: Sequence[str], jobs: int = 1
) -> Iterator[dict[str, bytes]]:
    """Draw figures and yield each in several formats, in the given order.

    Parameters
    ----------
    every
        Data of the figures.
    formats
        Some of `png`, `svg`, `pdf`.
    jobs
        Number of worker processes for many figures. They are spawned, so the program's main module
        must be importable.
    """
    if jobs < 2 or len(every) < _FEWEST:
        for data in every:
            yield _render(data, formats)
        return
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial

    from jostle.safe_io.child_processes import spawn_context
    from jostle.safe_io.matplotlib_settings import use_packaged_settings

    with ProcessPoolExecutor(
        jobs, mp_context=spawn_context(), initializer=use_packaged_settings
    ) as processes:
        yield from processes.map(partial(_render, formats=formats), every)


def _render(data: FigureData, formats: Sequence[str]) -> dict[str, bytes]:
    from jostle.figures.save import to_bytes

    figure = render_figure(data)
    return {name: to_bytes(figure, name) for name in formats}
