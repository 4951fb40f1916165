"""Response under load in flent's layout: throughput per direction, and RTT of pings.

It follows the plot "all" of flent's test `rrul` (https://flent.org): a panel per direction with
each flow and, darker, their mean; below them the RTT of the pings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.errors import InputError
from jostle.figures.data import NO_CONTROLLER, PanelColumn, StackedData, stacked
from jostle.figures.style import DARK
from jostle.results.measures import measure
from jostle.results.number_format import count
from jostle.results.time_series_data import group_line, panel_column, phase_bands

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

MEAN = "mean"
"""Name of the mean over the flows of a panel in the legend."""


def rrul_data(results: FinishedRuns, condition: int) -> StackedData:
    """Return throughput of all flows, one panel per direction, above the RTT of all pings.

    Parameters
    ----------
    results
        The runs.
    condition
        Position of the condition.

    Raises
    ------
    InputError
        When no run of the condition finished, or there are no pings.
    """
    if not results.runs_of(condition):
        raise results.unfinished_error("nothing to draw: ", condition)
    flows = results.spec_of(condition)["flows"]
    pings = [flow["name"] for flow in flows if flow["controller"]["name"] == NO_CONTROLLER]
    if not pings:
        raise InputError("nothing to draw: response under load needs pings — add a flow")
    ways: dict[tuple[int, ...], list[str]] = {}
    groups: dict[tuple[int, ...], list[str]] = {}
    for flow in flows:
        if flow["name"] not in pings:
            way = tuple(flow["path"])
            ways.setdefault(way, []).append(flow["name"])
            groups.setdefault(way, []).append(flow["group"] or flow["name"])
    throughput, rtt = (panel_column(measure(name)) for name in ("throughput", "rtt"))
    drawn = [
        _panel(results, condition, names, ", ".join(dict.fromkeys(groups[way])), throughput)
        for way, names in ways.items()
    ]
    drawn.append(_panel(results, condition, pings, "ping", rtt))
    runs = len(results.runs_of(condition))
    said = f"Mean over {count(runs, 'run')}, with its 95 % interval. " if runs > 1 else "One run. "
    return replace(
        drawn[-1],
        panels=tuple(panel for data in drawn for panel in data.panels),
        phases=phase_bands(results, condition),
        caption=f"{said}Dark: the mean of the flows of a panel.",
    )


def _panel(
    results: FinishedRuns,
    condition: int,
    names: Sequence[str],
    title: str,
    column: PanelColumn,
) -> StackedData:
    series = results.condition_series(condition)
    heading = column._replace(quantity=title)
    numbered = {name: f"flow {at}" for at, name in enumerate(names, 1)}
    data = stacked(series, numbered, [heading], results.labels[condition])
    (panel,) = data.panels
    mean = group_line(series, names, column, MEAN)
    dark = replace(mean, low=mean.mean, high=mean.mean, style=DARK)
    # The legend lists an entry of all panels once.
    lines = (
        (*panel.lines, dark)
        if len(names) > 1
        else (replace(panel.lines[0], style=DARK, label=MEAN),)
    )
    return replace(data, panels=(replace(panel, lines=lines),))
