"""The figures of a ResultSet: data taken from it, drawn, and saved under its conditions' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import InputError
from jostle.figures.data import (
    NO_CONTROLLER,
    HeatMapData,
    PanelColumn,
    PhaseBand,
    StackedData,
    flow_label,
    stacked,
)
from jostle.results import conditions as naming
from jostle.results.finished import OVERALL
from jostle.results.measures import measure
from jostle.stats import mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.results.finished import FinishedRuns

MOST_LINES = 8
"""Flows that a stacked figure shows; more could not be told apart."""

PANELS = ("throughput", "rtt", "cwnd", "retransmission_ratio")
"""Measures of a stacked figure, from top to bottom."""

Summary = Mapping[str, Any]


def panels(names: Sequence[str] = PANELS) -> list[PanelColumn]:
    """Panels that show measures over time.

    Raises
    ------
    InputError
        When one is not a measure, or the series has no column of it.
    """
    found = []
    for name in names:
        shown = measure(name)
        if shown.column is None:
            raise InputError(f"`{name}` has no column in the series")
        found.append(PanelColumn(shown.heading, shown.reads, shown.column, shown.factor))
    return found


def series_data(results: FinishedRuns, condition: int) -> StackedData:
    """Stacked time series of one condition."""
    if not results.of(condition):
        raise InputError(f"nothing to draw: no run of `{results.labels[condition]}` finished")
    flows = results.of(condition)[0].run.summary["flows"][:MOST_LINES]
    phases = [
        PhaseBand(phase.name, phase.from_s, phase.to_s)
        for phase in results.phases_of(condition)
        if phase.name != OVERALL
    ]
    return stacked(
        results.condition_series(condition),
        {flow["name"]: flow_label(flow) for flow in flows},
        panels(),
        results.labels[condition],
        phases,
    )


def jain_data(results: FinishedRuns) -> HeatMapData:
    """Mean of Jain's index over the runs, by condition and phase."""
    rows, columns, values = _table(results, _jain)
    most_flows = max(len(_competitors(results, c)) for c in range(len(results.conditions)))
    return HeatMapData(
        quantity=measure("jain").heading,
        unit=measure("jain").reads,
        rows=rows,
        columns=columns,
        values=values,
        lowest=1 / most_flows,
        highest=1.0,
        diverging=False,
        ends=("one takes all", "equal"),
    )


def difference_data(results: FinishedRuns) -> HeatMapData:
    """Throughput of the first flow less that of the second, by condition and phase (Mbit/s).

    Pings do not count: they compete with nobody.
    """
    first, second = (
        name if len(name) <= 20 else name[:19] + "…" for name in _first_two_names(results)
    )
    rows, columns, values = _table(results, _difference)
    reach = float(np.nanmax(np.abs(values))) if np.any(~np.isnan(values)) else 0.0
    return HeatMapData(
        quantity=f"{measure('throughput').heading} difference",
        unit=measure("throughput").reads,
        rows=rows,
        columns=columns,
        values=values,
        lowest=-(reach or 1.0),
        highest=reach or 1.0,
        diverging=True,
        ends=(f"{second} ahead", f"{first} ahead"),
    )


def series(results: FinishedRuns, condition: int) -> Figure:
    """Draw the stacked time series of one condition."""
    from jostle.figures import draw

    return draw.stacked(series_data(results, condition))


def jain(results: FinishedRuns) -> Figure:
    """Draw the heat map of Jain's index."""
    from jostle.figures import draw

    return draw.heat_map(jain_data(results))


def difference(results: FinishedRuns) -> Figure:
    """Draw the heat map of the throughput difference between the first two flows."""
    from jostle.figures import draw

    return draw.heat_map(difference_data(results))


def all_figures(results: FinishedRuns) -> dict[str, Callable[[], Figure]]:
    """Every figure that these results give, by the name of its file.

    A stacked figure for each condition that has runs; with two flows and two conditions or more
    also the two heat maps.
    """
    figures: dict[str, Callable[[], Figure]] = {}
    for index, slug in enumerate(naming.slugs(results.conditions)):
        if results.of(index):
            name = f"series-{slug}" if slug else "series"
            figures[name] = lambda index=index: series(results, index)  # type: ignore[misc]
    shown = [c for c in range(len(results.conditions)) if results.of(c)]
    if len(shown) > 1 and all(len(_competitors(results, c)) > 1 for c in shown):
        figures["jain"] = lambda: jain(results)
        figures["throughput-difference"] = lambda: difference(results)
    return figures


def save_all(
    results: FinishedRuns, folder: str | Path, formats: Sequence[str] | None = None
) -> list[Path]:
    """Draw and write every figure into `folder`; returns the paths in the order of the figures.

    Parameters
    ----------
    results
        What to draw.
    folder
        Made if it is not there; files of the same name are replaced.
    formats
        Some of `png`, `svg`, `pdf`; all of them if absent.
    """
    from jostle.figures import save

    paths = []
    for name, draw in all_figures(results).items():
        paths += save.save(draw(), Path(folder) / name, formats or save.FORMATS)
    return paths


def _table(
    results: FinishedRuns, value: Callable[[Summary, str], float | None]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray[Any, np.dtype[np.float64]]]:
    """Average `value` over runs for every condition that has runs, and every phase."""
    shown = [c for c in range(len(results.conditions)) if results.of(c)]
    if not shown:
        raise InputError("nothing to draw: no run finished")
    phases = tuple(phase.name for phase in results.phases)
    cells = [
        [mean(value(r.run.summary, phase) for r in results.of(c)) for phase in phases]
        for c in shown
    ]
    rows = tuple(results.labels[c] for c in shown)
    return rows, phases, np.array(cells, dtype=np.float64)


def _jain(summary: Summary, phase: str) -> float | None:
    return measure("jain").of_summary(summary, phase)


def _difference(summary: Summary, phase: str) -> float | None:
    rate = measure("throughput")
    first, second = (rate.of_entry(flow, phase) for flow in _governed(summary)[:2])
    return None if first is None or second is None else (first - second) * rate.factor


def _governed(summary: Summary) -> list[Summary]:
    """Flows that have a controller."""
    return [flow for flow in summary["flows"] if flow["controller"] != NO_CONTROLLER]


def _competitors(results: FinishedRuns, condition: int) -> list[str]:
    runs = results.of(condition)
    return [flow["name"] for flow in _governed(runs[0].run.summary)] if runs else []


def _first_two_names(results: FinishedRuns) -> tuple[str, str]:
    names = {tuple(_competitors(results, c)[:2]) for c in range(len(results.conditions))} - {()}
    if any(len(pair) < 2 for pair in names):
        raise InputError("a throughput difference needs two flows")
    return next(iter(names)) if len(names) == 1 else ("first", "second")  # type: ignore[return-value]
