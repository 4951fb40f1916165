"""Rates that are drawn from the seed: what a scenario leaves out of them."""

from __future__ import annotations

from typing import Any, Final

from jostle.scenario.models import RandomRate
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import format_amount

__all__ = ["random_capacity"]

_STEPS_PER_CORRELATION: Final = 16
_SHORTEST_STEP_NS: Final = 10**6
_DEVIATIONS: Final = 3
"""How far from the mean the bounds are."""
_LOWEST_SHARE: Final = 10
"""The lower bound is at least so small a part of the mean."""


def random_capacity(rate: RandomRate, path: KeyPath, report: Report) -> dict[str, Any] | None:
    """Return a random rate of a run's specification; None if something of it was reported.

    Parameters
    ----------
    rate
        What the scenario says.
    path
        Where it stands.
    report
        Where problems go.
    """
    reach_bps = _DEVIATIONS * rate.deviation
    low_bps = rate.min or max(rate.mean - reach_bps, rate.mean // _LOWEST_SHARE, 1)
    high_bps = rate.max or rate.mean + reach_bps
    mean = format_amount(rate.mean, "rate")
    if low_bps > rate.mean:
        shown = format_amount(low_bps, "rate")
        report.add((*path, "min"), f'"{shown}" is above the mean, "{mean}"', (*path, "mean"))
        return None
    if high_bps < rate.mean:
        shown = format_amount(high_bps, "rate")
        report.add((*path, "max"), f'"{shown}" is below the mean, "{mean}"', (*path, "mean"))
        return None
    return {
        "kind": "autoregressive",
        "mean_bps": rate.mean,
        "deviation_bps": rate.deviation,
        "correlation_ns": rate.correlation,
        "step_ns": rate.step or max(rate.correlation // _STEPS_PER_CORRELATION, _SHORTEST_STEP_NS),
        "min_bps": low_bps,
        "max_bps": high_bps,
    }
