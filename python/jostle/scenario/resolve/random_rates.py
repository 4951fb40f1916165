"""Random rates: default bounds and step, and the form of the run specification."""

from __future__ import annotations

from typing import Final

from jostle.run_spec import AutoregressiveCapacity
from jostle.scenario.models import RandomRate
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount

__all__ = ["random_capacity"]

_STEPS_PER_CORRELATION: Final = 16
_SHORTEST_STEP_NS: Final = 10**6
_DEVIATIONS: Final = 3
"""Distance of the bounds from the mean, in standard deviations."""
_LOWEST_SHARE: Final = 10
"""Minimum of the lower bound, as a divisor of the mean."""


def random_capacity(
    rate: RandomRate, path: KeyPath, report: Report
) -> AutoregressiveCapacity | None:
    """Return a random rate in the form of the run specification; None if a problem was reported.

    Parameters
    ----------
    rate
        Random rate in the scenario.
    path
        Key path of the rate.
    report
        Collects problems.
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
