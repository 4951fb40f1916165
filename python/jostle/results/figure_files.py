"""Figures of a ResultSet: their data, and files named after the conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import InputError
from jostle.figures.data import NO_CONTROLLER, HeatMapData
from jostle.results import condition_names
from jostle.results.measures import measure
from jostle.results.time_series_data import series_data
from jostle.stats import mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.figures.renderer import FigureData
    from jostle.results.finished_runs import FinishedRuns

Summary = Mapping[str, Any]


def jain_data(results: FinishedRuns) -> HeatMapData:
    """Return the mean of Jain's index over the runs, by condition and phase."""
    rows, columns, values = _table(results, _jain)
    most_flows = max(len(_competitors(results, c)) for c in range(len(results.conditions)))
    return HeatMapData(
        quantity=measure("jain").heading,
        unit=measure("jain").display_unit,
        rows=rows,
        columns=columns,
        values=values,
        lowest=1 / most_flows,
        highest=1.0,
        diverging=False,
        ends=("one takes all", "equal"),
    )


def difference_data(results: FinishedRuns) -> HeatMapData:
    """Return the throughput of the first flow minus the second flow's throughput, in Mbit/s.

    Rows and columns are conditions and phases. Pings are ignored, because they do not compete.
    """
    first, second = (
        name if len(name) <= 20 else name[:19] + "…" for name in _first_two_names(results)
    )
    rows, columns, values = _table(results, _difference)
    reach = float(np.nanmax(np.abs(values))) if np.any(~np.isnan(values)) else 0.0
    return HeatMapData(
        quantity=f"{measure('throughput').heading} difference",
        unit=measure("throughput").display_unit,
        rows=rows,
        columns=columns,
        values=values,
        lowest=-(reach or 1.0),
        highest=reach or 1.0,
        diverging=True,
        ends=(f"{second} ahead", f"{first} ahead"),
    )


def remarked(results: FinishedRuns, data: FigureData, condition: int | None = None) -> FigureData:
    """Return figure data with remarks on failed runs of one condition, or of all of them."""
    from jostle.figures.renderer import with_remarks

    if condition is None:
        return with_remarks(data, results.failure_notes)
    return with_remarks(data, [text] if (text := results.incomplete(condition)) else [])


def series(results: FinishedRuns, condition: int) -> Figure:
    """Draw the stacked time series of one condition."""
    return _drawn(results, series_data(results, condition), condition)


def jain(results: FinishedRuns) -> Figure:
    """Draw the heat map of Jain's index."""
    return _drawn(results, jain_data(results))


def difference(results: FinishedRuns) -> Figure:
    """Draw the heat map of the throughput difference between the first two flows."""
    return _drawn(results, difference_data(results))


def _drawn(results: FinishedRuns, data: FigureData, condition: int | None = None) -> Figure:
    from jostle.figures.renderer import render_figure

    return render_figure(remarked(results, data, condition))


def all_data(results: FinishedRuns) -> dict[str, Callable[[], FigureData]]:
    """Return the data of every figure, by the name of its file.

    Each condition with runs has a stacked figure. Two or more conditions also have a heat map of
    Jain's index if each has several bulk flows, and a heat map of the throughput difference if
    each has exactly two flows that compete.
    """
    found: dict[str, Callable[[], FigureData]] = {}
    for index, slug in enumerate(condition_names.slugs(results.conditions)):
        if results.runs_of(index):
            name = f"series-{slug}" if slug else "series"
            found[name] = partial(_of_condition, results, index)
    shown = [c for c in range(len(results.conditions)) if results.runs_of(c)]
    bulk = [_bulk_flows(results, c) for c in shown]
    if len(shown) > 1 and min(bulk) > 1:
        found["jain"] = partial(_of_all, jain_data, results)
        if max(bulk) == 2 and all(len(_competitors(results, c)) == 2 for c in shown):
            found["throughput-difference"] = partial(_of_all, difference_data, results)
    return found


def _of_condition(results: FinishedRuns, condition: int) -> FigureData:
    return remarked(results, series_data(results, condition), condition)


def _of_all(make: Callable[[FinishedRuns], FigureData], results: FinishedRuns) -> FigureData:
    return remarked(results, make(results))


def all_figures(results: FinishedRuns) -> dict[str, Callable[[], Figure]]:
    """Return every figure by the name of its file, as functions that draw; see `all_data`."""

    def make(data: Callable[[], FigureData]) -> Figure:
        from jostle.figures.renderer import render_figure

        return render_figure(data())

    return {name: partial(make, data) for name, data in all_data(results).items()}


def save_all(
    results: FinishedRuns,
    folder: str | Path,
    formats: Sequence[str] = ("png",),
    jobs: int = 1,
) -> list[Path]:
    """Draw and write every figure into `folder`; return the paths in the order of the figures.

    Parameters
    ----------
    results
        The results.
    folder
        Folder of the files. It is created if necessary; files of the same name are replaced.
    formats
        Any of `png`, `svg`, `pdf`.
    jobs
        Number of processes; see `jostle.figures.renderer.rendered`.
    """
    from jostle.figures.renderer import render_bytes
    from jostle.safe_io.atomic_write import write_atomically

    every = {name: data() for name, data in all_data(results).items()}
    paths = []
    contents = render_bytes(list(every.values()), formats, jobs)
    for name, content in zip(every, contents, strict=True):
        for suffix, written in content.items():
            path = Path(folder) / f"{name}.{suffix}"
            write_atomically(path, written)
            paths.append(path)
    return paths


def _bulk_flows(results: FinishedRuns, condition: int) -> int:
    parts = results.flow_groups(condition)
    return sum(len(group.members) for group in parts if group.kind == "bulk")


def _table(
    results: FinishedRuns, value: Callable[[Summary, str], float | None]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the mean of `value` over runs for every condition with runs, and every phase."""
    shown = [c for c in range(len(results.conditions)) if results.runs_of(c)]
    if not shown:
        raise results.unfinished_error("nothing to draw: ")
    phases = tuple(phase.name for phase in results.phases)
    cells = [
        [mean(value(r.run.summary, phase) for r in results.runs_of(c)) for phase in phases]
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
    """Return the flows that have a controller."""
    return [flow for flow in summary["flows"] if flow["controller"] != NO_CONTROLLER]


def _competitors(results: FinishedRuns, condition: int) -> list[str]:
    runs = results.runs_of(condition)
    return [flow["name"] for flow in _governed(runs[0].run.summary)] if runs else []


def _first_two_names(results: FinishedRuns) -> tuple[str, str]:
    names = {tuple(_competitors(results, c)[:2]) for c in range(len(results.conditions))} - {()}
    if any(len(pair) < 2 for pair in names):
        raise InputError("a throughput difference needs two flows")
    return next(iter(names)) if len(names) == 1 else ("first", "second")  # type: ignore[return-value]
