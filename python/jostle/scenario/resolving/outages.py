"""Outages: from a mean time and a table of lengths to a run's, with fades of another length."""

from __future__ import annotations

import math
from typing import Any

from jostle.scenario.fields import QuantileTable
from jostle.scenario.models import Outage
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import format_amount

__all__ = ["outage_spec", "quantile_points"]


def outage_spec(outage: Outage, path: KeyPath, report: Report) -> dict[str, Any] | None:
    """Return the outages of a run's specification; None if something of them was reported.

    Parameters
    ----------
    outage
        What the scenario says.
    path
        Where it stands.
    report
        Where problems go.
    """
    every_ns, durations = outage.every, outage.durations
    if outage.fade is not None:
        shortest_ns, share = _shortest(durations)
        shown = format_amount(shortest_ns, "time")
        message = None
        if share == 0:
            message = f'no share of the outages has the shortest of `durations`, "{shown}"'
        elif outage.fade > shortest_ns:
            given = format_amount(outage.fade, "time")
            message = f'"{given}" is longer than the shortest of `durations`, "{shown}"'
        if message is not None:
            report.add((*path, "fade"), message, (*path, "durations"))
            return None
        if outage.fade < shortest_ns:
            every_ns, durations = _with_fades(outage, outage.fade)
    return {"mean_interval_ns": every_ns, "durations": quantile_points(durations)}


def quantile_points(points: QuantileTable) -> list[dict[str, Any]]:
    """Return a quantile table as a run's specification has it."""
    return [{"probability": p, "value_ns": v} for p, v in points]


def _shortest(durations: QuantileTable) -> tuple[int, float]:
    """Shortest length, and the share of the outages that have it."""
    shortest_ns = durations[0][1]
    return shortest_ns, max(p for p, length_ns in durations if length_ns == shortest_ns)


def _with_fades(outage: Outage, fade_ns: int) -> tuple[int, QuantileTable]:
    """Mean interval and lengths of outages whose shortest are `fade_ns` long.

    The longer ones come as often as before, the shortest as much more often as they are shorter:
    both lose as much of the time as they did.
    """
    shortest_ns, share = _shortest(outage.durations)
    # Outages of either kind where there was one of all.
    fades, longer = share * shortest_ns / fade_ns, 1 - share
    every_ns = round(outage.every / (fades + longer))
    if longer == 0:
        return every_ns, ((0.0, fade_ns), (1.0, fade_ns))
    level = fades / (fades + longer)
    rest = [
        (level + (p - share) / (fades + longer), length_ns)
        for p, length_ns in outage.durations
        if p > share
    ]
    # Probabilities rise: the longer ones begin, at the old shortest, just above `level`. By some
    # steps, because what the engine reads of the digits may be one step from what was written.
    begin = (level + 8 * math.ulp(level), shortest_ns)
    return every_ns, ((0.0, fade_ns), (level, fade_ns), begin, *rest[:-1], (1.0, rest[-1][1]))
