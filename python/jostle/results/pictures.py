"""The figures of a ResultSet: data taken from it, drawn, and saved under its conditions' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import InputError
from jostle.figures.data import NO_CONTROLLER, HeatMapData
from jostle.results import conditions as naming
from jostle.results.groups import groups
from jostle.results.measures import measure
from jostle.results.over_time import series_data
from jostle.stats import mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jostle.figures.drawn import FigureData
    from jostle.results.finished import FinishedRuns

Summary = Mapping[str, Any]


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
    from jostle.figures import heat

    return heat.heat_map(jain_data(results))


def difference(results: FinishedRuns) -> Figure:
    """Draw the heat map of the throughput difference between the first two flows."""
    from jostle.figures import heat

    return heat.heat_map(difference_data(results))


def all_data(results: FinishedRuns) -> dict[str, Callable[[], FigureData]]:
    """Take the data of every figure that these results give, by the name of its file.

    A stacked figure for each condition that has runs. With two conditions or more, fairness where
    each has several flows that send without an end, and the throughput difference where there are
    two: of flows that end or answer, neither says anything.
    """
    found: dict[str, Callable[[], FigureData]] = {}
    for index, slug in enumerate(naming.slugs(results.conditions)):
        if results.of(index):
            name = f"series-{slug}" if slug else "series"
            found[name] = partial(series_data, results, index)
    shown = [c for c in range(len(results.conditions)) if results.of(c)]
    bulk = [_bulk_flows(results, c) for c in shown]
    if len(shown) > 1 and min(bulk) > 1:
        found["jain"] = partial(jain_data, results)
        if max(bulk) == 2 and all(len(_competitors(results, c)) == 2 for c in shown):
            found["throughput-difference"] = partial(difference_data, results)
    return found


def all_figures(results: FinishedRuns) -> dict[str, Callable[[], Figure]]:
    """Every figure that these results give, drawn when it is asked for; see `all_data`."""

    def make(data: Callable[[], FigureData]) -> Figure:
        from jostle.figures.drawn import drawn

        return drawn(data())

    return {name: partial(make, data) for name, data in all_data(results).items()}


def save_all(
    results: FinishedRuns,
    folder: str | Path,
    formats: Sequence[str] = ("png",),
    jobs: int = 1,
) -> list[Path]:
    """Draw and write every figure into `folder`; returns the paths in the order of the figures.

    Parameters
    ----------
    results
        What to draw.
    folder
        Made if it is not there; files of the same name are replaced.
    formats
        Some of `png`, `svg`, `pdf`.
    jobs
        Processes that draw; see `jostle.figures.drawn.rendered`.
    """
    from jostle.figures.drawn import rendered
    from jostle.replaced_files import replace_file

    every = {name: data() for name, data in all_data(results).items()}
    paths = []
    contents = rendered(list(every.values()), formats, jobs)
    for name, content in zip(every, contents, strict=True):
        for suffix, written in content.items():
            path = Path(folder) / f"{name}.{suffix}"
            replace_file(path, written)
            paths.append(path)
    return paths


def _bulk_flows(results: FinishedRuns, condition: int) -> int:
    parts = groups(results.spec_of(condition))
    return sum(len(group.members) for group in parts if group.kind == "bulk")


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
