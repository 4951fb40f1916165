"""Outages: converts interval, lengths and fades to the form of the run specification."""

from __future__ import annotations

import math

from jostle.run_spec import OutageSpec, Quantile
from jostle.scenario.fields import QuantileTable
from jostle.scenario.models import Outage
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount

__all__ = ["outage_spec", "quantile_points"]


def outage_spec(outage: Outage, path: KeyPath, report: Report) -> OutageSpec | None:
    """Return the outages in the form of the run specification; None if a problem was reported.

    Parameters
    ----------
    outage
        Outages in the scenario.
    path
        Key path of the outages.
    report
        Collects problems.
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


def quantile_points(points: QuantileTable) -> list[Quantile]:
    """Return a quantile table in the form of the run specification."""
    return [{"probability": p, "value_ns": v} for p, v in points]


def _shortest(durations: QuantileTable) -> tuple[int, float]:
    """Return the shortest length, and the share of outages with this length."""
    shortest_ns = durations[0][1]
    return shortest_ns, max(p for p, length_ns in durations if length_ns == shortest_ns)


def _with_fades(outage: Outage, fade_ns: int) -> tuple[int, QuantileTable]:
    """Return the mean interval and the lengths after the shortest outages get the length `fade_ns`.

    The longer outages keep their frequency. The frequency of the shortest rises by the factor by
    which they get shorter, so that both classes take the same share of the time as before.
    """
    shortest_ns, share = _shortest(outage.durations)
    # Fades and longer outages per original outage.
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
    # Probabilities must rise: the longer outages begin, at the old shortest length, just above
    # `level`. The engine may read a value that differs by one ulp, so leave several.
    begin = (level + 8 * math.ulp(level), shortest_ns)
    return every_ns, ((0.0, fade_ns), (level, fade_ns), begin, *rest[:-1], (1.0, rest[-1][1]))
