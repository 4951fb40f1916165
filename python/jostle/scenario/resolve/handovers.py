"""Handovers: a gap in which a link sends nothing, followed by another rate and delay."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from jostle.run_spec import JitterSpec, Quantile
from jostle.scenario.models import Link
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount

__all__ = ["delays_with", "jitter_of_none", "rates_with", "reorders", "sensible"]

Steps = Sequence[tuple[int, int]]


def sensible(link: Link, path: KeyPath, report: Report) -> bool:
    """Return whether a link's handovers are valid, and report problems."""
    at = (*path, "handovers")
    before = report.count
    for key in ("reassignment", "trace"):
        if link.handovers and getattr(link, key) is not None:
            report.add(at, f"there are `{key}` as well — keep one of them", (*path, key))
    for (index, one), (_, following) in pairwise(enumerate(link.handovers)):
        if one.at + one.gap >= following.at:
            end, start = (format_amount(it, "time") for it in (one.at + one.gap, following.at))
            message = f'at "{start}" the one before it is not over, which ends at "{end}"'
            report.add((*at, index + 1, "at"), message)
    if len({one.reorder for one in link.handovers}) > 1:
        message = "packets may overtake each other at all handovers of a link or at none"
        report.add((*at, len(link.handovers) - 1, "reorder"), message)
    if reorders(link) and link.jitter is not None and not link.jitter.reorder:
        message = "jitter that keeps packets in their order does so at handovers — write the same"
        report.add((*at, 0, "reorder"), message, (*path, "jitter", "reorder"))
    return report.count == before


def reorders(link: Link) -> bool:
    """Return whether packets may overtake each other at a link's handovers."""
    return any(one.reorder for one in link.handovers)


def rates_with(rates: Steps, link: Link, path: KeyPath, report: Report) -> list[tuple[int, int]]:
    """Return a link's rate steps (bit/s) with handovers added to the given steps."""
    given = [(one.at + one.gap, one.rate) for one in link.handovers if one.rate is not None]
    if given and len(rates) > 1:
        message = "a rate of a handover takes the place of a constant one — keep one of them"
        report.add((*path, "handovers"), message, (*path, "rate"))
    known = _merged([*rates[:1], *given] if given else rates)
    gaps = [one for one in link.handovers if one.gap]

    def value(at_ns: int) -> int:
        if any(one.at <= at_ns < one.at + one.gap for one in gaps):
            return 0
        return [bps for start, bps in known if start <= at_ns][-1]

    moments = {at for at, _ in known} | {it for one in gaps for it in (one.at, one.at + one.gap)}
    return _merged([(at, value(at)) for at in sorted(moments)])


def delays_with(delays: Steps, link: Link, path: KeyPath, report: Report) -> list[tuple[int, int]]:
    """Return a link's delay steps (ns) with handovers; new delays hold after the gaps."""
    given = [(one.at + one.gap, one.delay) for one in link.handovers if one.delay is not None]
    if given and len(delays) > 1:
        message = "a delay of a handover takes the place of a constant one — keep one of them"
        report.add((*path, "handovers"), message, (*path, "delay"))
    return _merged([*delays[:1], *given]) if given else list(delays)


def _merged(steps: Steps) -> list[tuple[int, int]]:
    """Remove steps that repeat the previous value."""
    found: list[tuple[int, int]] = []
    for at, value in steps:
        if not found or value != found[-1][1]:
            found.append((at, value))
    return found


def jitter_of_none() -> JitterSpec:
    """Return a jitter without extra delay, which allows packets to overtake each other."""
    points: list[Quantile] = [{"probability": p, "value_ns": 0} for p in (0.0, 1.0)]
    return {"quantiles": points, "correlation_ns": 0, "reorder": True}
