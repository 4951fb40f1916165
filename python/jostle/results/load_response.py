"""Response under load, as flent draws it: what goes each way, and the pings meanwhile.

The layout is that of the plot "all" of flent's test `rrul` (https://flent.org): a panel per
direction with each flow and, darker, their mean; below them the round trips of the pings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.errors import InputError
from jostle.figures.data import NO_CONTROLLER, PanelColumn, StackedData, stacked
from jostle.figures.style import DARK
from jostle.results.formats import count
from jostle.results.measures import measure
from jostle.results.over_time import group_line, panel_column, phase_bands

if TYPE_CHECKING:
    from jostle.results.finished import FinishedRuns

MEAN = "mean"
"""What the legend calls the mean over the flows of a panel."""


def load_response_data(results: FinishedRuns, condition: int) -> StackedData:
    """Throughput of all flows that go the same way, a panel per way, over the RTT of all pings.

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
    if not results.of(condition):
        raise InputError(f"nothing to draw: no run of `{results.labels[condition]}` finished")
    flows = results.spec_of(condition)["flows"]
    pings = [flow["name"] for flow in flows if flow["controller"]["name"] == NO_CONTROLLER]
    if not pings:
        raise InputError("nothing to draw: response under load is that of pings — add a flow")
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
    runs = len(results.of(condition))
    said = f"Mean over {count(runs, 'run')}, with its 95 % interval. " if runs > 1 else ""
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
    # What is the same for all panels stands in the legend once.
    lines = (
        (*panel.lines, dark)
        if len(names) > 1
        else (replace(panel.lines[0], style=DARK, label=MEAN),)
    )
    return replace(data, panels=(replace(panel, lines=lines),))
