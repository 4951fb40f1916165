"""What a fit compares: numbers that say how a run went, each in parts of what it may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from jostle.backends import Run
    from jostle.stats.describe import Floats

__all__ = ["Feature", "features", "rtts_known"]

_RATE_PERCENTS: Final = (10, 50, 90)
_RTT_PERCENTS: Final = (1, 10, 25, 50, 75, 90, 99, 100)
_COMPLETION_PERCENTS: Final = (10, 50, 90)
_EXACT: Final = 0.01
"""Part by which a mean rate and the smallest and largest RTT of a right model may differ."""
_ROUGH: Final = 0.03
"""The same of other quantiles, which depend on where in its sawtooth a flow was cut off."""
_COUNTED: Final = 0.1
"""The same of a count, beside what chance does to it."""


@dataclass(frozen=True)
class Feature:
    """A number of a run.

    Attributes
    ----------
    name
        What it is, with its flow.
    value
        In `unit`; None if there is none in this run.
    unit
        Its unit.
    scaled
        A transform of it in which 1 is what a right model may differ by; NaN without a value.
    """

    name: str
    value: float | None
    unit: str
    scaled: float


def rtts_known(run: Run) -> list[str]:
    """Name the column of the series that has the RTTs, for each flow in the order of the run.

    The mean of an interval's samples, or the smoothed RTT, where a kernel was asked now and then
    and tells no other: its samples are smoothed, and a mean of those is not one of an ACK each.
    """
    import polars as pl

    found = []
    for flow in run.summary["flows"]:
        rows = run.flows.filter(pl.col("flow") == flow["name"])
        told = rows.filter(pl.col("rtt_mean_s").is_not_null())
        smoothed = bool((told["rtt_last_s"] == told["srtt_s"]).fill_null(value=False).all())
        found.append("srtt_s" if smoothed else "rtt_mean_s")
    return found


def features(run: Run, rtts: Sequence[str]) -> list[Feature]:
    """Take the numbers out of a run that a fit compares, flow by flow in the order of the run.

    Mean and quantiles of throughput over the intervals of the series, quantiles of their RTTs,
    retransmissions, and quantiles of how long transfers took.

    Parameters
    ----------
    run
        What was measured, or a guess that is held against it.
    rtts
        What `rtts_known` says of what was measured, so that both have RTTs of one kind.
    """
    import polars as pl

    found: list[Feature] = []
    for position, (flow, rtt) in enumerate(zip(run.summary["flows"], rtts, strict=True)):
        rows = run.flows.filter(pl.col("flow") == flow["name"])
        found += _of_series(f"flow {position + 1}", rows, rtt)
        found += _of_transfers(f"flow {position + 1}", run, flow["name"])
    if not found:
        raise InputError("the run has no flows")
    return found


def _of_series(who: str, rows: pl.DataFrame, rtts: str) -> list[Feature]:
    import polars as pl

    def column(name: str) -> Floats:
        values: Floats = rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return values

    rate, rtt = column("throughput_bps"), column(rtts)
    rtt = rtt[~np.isnan(rtt)]
    sent, again = (
        float(np.nansum(column(f"{name}_packets"))) for name in ("sent", "retransmitted")
    )
    found = [_logarithm(f"{who}: mean throughput", float(np.nanmean(rate)), "bit/s", _EXACT)]
    for percent in _RATE_PERCENTS:
        value = float(np.nanpercentile(rate, percent))
        found.append(_logarithm(f"{who}: throughput, p{percent}", value, "bit/s", _ROUGH))
    for percent in _RTT_PERCENTS:
        ends = percent in (_RTT_PERCENTS[0], *_RTT_PERCENTS[-2:])
        at = float(np.percentile(rtt, percent)) if rtt.size else None
        found.append(_logarithm(f"{who}: RTT, p{percent}", at, "s", _EXACT if ends else _ROUGH))
    if sent:
        found.append(_count(f"{who}: retransmissions", again))
    return found


def _of_transfers(who: str, run: Run, flow: str) -> list[Feature]:
    import polars as pl

    flows = {one["name"]: one for one in run.summary["flows"]}
    alone = flows[flow].get("completion_s")
    if run.transfers is None or "flow" not in run.transfers.columns:
        return [] if alone is None else [_logarithm(f"{who}: completion", alone, "s", _EXACT)]
    times = run.transfers.filter(pl.col("flow") == flow)["completion_s"].drop_nulls().to_numpy()
    return [
        _logarithm(
            f"{who}: completion, p{percent}", float(np.percentile(times, percent)), "s", _ROUGH
        )
        for percent in (_COMPLETION_PERCENTS if times.size else ())
    ]


def _logarithm(name: str, value: float | None, unit: str, part: float) -> Feature:
    usable = value is not None and value > 0
    scaled = float(np.log(value) / part) if value is not None and usable else float("nan")
    return Feature(name, value, unit, scaled)


def _count(name: str, count: float) -> Feature:
    # The inverse hyperbolic sine has the steps of both errors: the square root of a count by
    # chance, and a part of it by the model [the transform that makes a variance n + (p n)² one].
    scaled = 2.0 / _COUNTED * float(np.arcsinh(_COUNTED * np.sqrt(count)))
    return Feature(name, count, "packets", scaled)
