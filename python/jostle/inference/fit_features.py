"""Features that a fit compares: numbers that describe a run, scaled by their tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError
from jostle.inference.missing_evidence import lacks_sack
from jostle.inference.observed_flow import observe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from jostle.backends import Run
    from jostle.stats.descriptive import Floats

__all__ = ["FitFeature", "features", "rtts_known"]

_RATE_PERCENTS: Final = (10, 50, 90)
_RTT_PERCENTS: Final = (1, 10, 25, 50, 75, 90, 99, 100)
_COMPLETION_PERCENTS: Final = (10, 50, 90)
_EXACT: Final = 0.01
"""Relative tolerance of mean rates, and of the smallest and largest RTT, for a correct model."""
_ROUGH: Final = 0.03
"""Relative tolerance of other quantiles, which depend on the phase at which a flow was cut off."""
BUSY_RATE: Final = "rate of busy periods"
"""Name of the feature that measurements have if the capture shows the bottleneck's rate."""
_UNCERTAIN: Final = 0.02
"""Relative error from which the rate of busy periods is no feature."""
_COUNTED: Final = 0.1
"""Relative tolerance of a count, in addition to its random variation."""


@dataclass(frozen=True)
class FitFeature:
    """A number that describes a run.

    Attributes
    ----------
    name
        Name of the feature and its flow.
    value
        Value in `unit`; None if the run has none.
    unit
        Unit of the value.
    scaled
        Transformed value, in which the tolerance of a correct model is 1; NaN without a value.
    """

    name: str
    value: float | None
    unit: str
    scaled: float


def rtts_known(run: Run) -> list[str]:
    """Return the column of the series that contains RTTs, for each flow in the order of the run.

    This is the mean of an interval's RTT samples, or the smoothed RTT for kernel runs that only
    sampled it periodically. A mean of smoothed samples differs from a mean over all ACKs.
    """
    import polars as pl

    found = []
    for flow in run.summary["flows"]:
        rows = run.flows.filter(pl.col("flow") == flow["name"])
        told = rows.filter(pl.col("rtt_mean_s").is_not_null())
        smoothed = bool((told["rtt_last_s"] == told["srtt_s"]).fill_null(value=False).all())
        found.append("srtt_s" if smoothed else "rtt_mean_s")
    return found


def features(run: Run, rtts: Sequence[str]) -> list[FitFeature]:
    """Return the features of a run, flow by flow in the order of the run.

    Features are mean and quantiles of throughput over the intervals of the series, quantiles of
    their RTTs, retransmissions, and quantiles of transfer times.

    Parameters
    ----------
    run
        Measured run, or a run of a guess.
    rtts
        Result of `rtts_known` for the measured run, so that both use the same kind of RTT.
    """
    import polars as pl

    found: list[FitFeature] = []
    for position, (flow, rtt) in enumerate(zip(run.summary["flows"], rtts, strict=True)):
        rows = run.flows.filter(pl.col("flow") == flow["name"])
        who = f"flow {position + 1}"
        # If SACK blocks are missing, ACKs deliver in leaps, which are not the rate of any interval.
        quantiles = () if lacks_sack(flow) else _RATE_PERCENTS
        found += _of_series(who, rows, rtt, quantiles)
        found += _of_busy_periods(who, run, flow)
        found += _of_transfers(f"flow {position + 1}", run, flow["name"])
    if not found:
        raise InputError("the run has no flows")
    return found


def _of_busy_periods(who: str, run: Run, flow: Mapping[str, Any]) -> list[FitFeature]:
    """Return the rate at which a captured or simulated flow fills its bottleneck, if it does."""
    try:
        rate = observe(run, flow["name"]).link_rate
    except InputError:
        return []
    known = rate is not None and rate.is_constant and rate.relative_error <= _UNCERTAIN
    if rate is None or not known:
        return []
    return [_logarithm(f"{who}: {BUSY_RATE}", rate.rate_bps, "bit/s", _EXACT)]


def _of_series(
    who: str, rows: pl.DataFrame, rtts: str, quantiles: Sequence[int]
) -> list[FitFeature]:
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
    for percent in quantiles:
        value = float(np.nanpercentile(rate, percent))
        found.append(_logarithm(f"{who}: throughput, p{percent}", value, "bit/s", _ROUGH))
    for percent in _RTT_PERCENTS:
        ends = percent in (_RTT_PERCENTS[0], *_RTT_PERCENTS[-2:])
        at = float(np.percentile(rtt, percent)) if rtt.size else None
        found.append(_logarithm(f"{who}: RTT, p{percent}", at, "s", _EXACT if ends else _ROUGH))
    if sent:
        found.append(_count(f"{who}: retransmissions", again))
    return found


def _of_transfers(who: str, run: Run, flow: str) -> list[FitFeature]:
    import polars as pl

    flows = {one["name"]: one for one in run.summary["flows"]}
    alone = flows[flow].get("completion_time_s")
    if run.transfers is None or "flow" not in run.transfers.columns:
        return [] if alone is None else [_logarithm(f"{who}: completion", alone, "s", _EXACT)]
    times = (
        run.transfers.filter(pl.col("flow") == flow)["completion_time_s"].drop_nulls().to_numpy()
    )
    return [
        _logarithm(
            f"{who}: completion, p{percent}", float(np.percentile(times, percent)), "s", _ROUGH
        )
        for percent in (_COMPLETION_PERCENTS if times.size else ())
    ]


def _logarithm(name: str, value: float | None, unit: str, part: float) -> FitFeature:
    usable = value is not None and value > 0
    scaled = float(np.log(value) / part) if value is not None and usable else float("nan")
    return FitFeature(name, value, unit, scaled)


def _count(name: str, count: float) -> FitFeature:
    # The inverse hyperbolic sine covers both errors: random variation (square root of the count)
    # and model error (a share of it). It gives a variance of n + (p n)² the value 1.
    scaled = 2.0 / _COUNTED * float(np.arcsinh(_COUNTED * np.sqrt(count)))
    return FitFeature(name, count, "packets", scaled)
