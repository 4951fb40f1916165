"""What is compared of a run: a few numbers per flow, taken in the same way on both sides.

Everything is computed from the series of the flows, which both backends record, and not from the
summary: the kernel samples its SRTT and does not tell every RTT that it measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.stats.describe import mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from jostle.backends import Run
    from jostle.stats.describe import Floats


@dataclass(frozen=True)
class Quantity:
    """Something that is compared.

    Parameters
    ----------
    name
        Name in documents, and attribute of an `Observation`.
    title
        Name for people.
    unit
        Unit of the numbers.
    shown_unit, factor, decimals
        How a person reads it: the number times `factor` is in `shown_unit`.
    """

    name: str
    title: str
    unit: str
    shown_unit: str
    factor: float
    decimals: int


QUANTITIES: Final = (
    Quantity("goodput", "goodput", "bit/s", "Mbit/s", 1e-6, 2),
    Quantity("share", "share", "1", "%", 100.0, 1),
    Quantity("srtt", "SRTT", "s", "ms", 1e3, 1),
    Quantity("retransmitted", "retransmitted", "packet", "packets", 1.0, 0),
)
"""Everything that is compared, in the order in which it is shown."""


@dataclass(frozen=True)
class Observation:
    """One flow of one run.

    Attributes
    ----------
    goodput
        Mean goodput over the second half of the run, in bit/s: start-up is over, and a share is
        that of flows which know each other.
    share
        Part of the goodput of all flows in the second half; None if nobody got anything.
    srtt
        Mean of the smoothed RTT at the ends of the intervals of the second half, in seconds; None
        if there is none.
    retransmitted
        Data packets sent again in the whole run: the first overflow is where most are.
    """

    goodput: float
    share: float | None
    srtt: float | None
    retransmitted: float


def observe(run: Run) -> dict[str, Observation]:
    """Take what is compared out of a run, by flow."""
    half_s = run.spec["duration_ns"] / 2e9
    series = run.flows
    halves = {
        flow["name"]: _second_half(series, flow["name"], half_s) for flow in run.spec["flows"]
    }
    total_bps = sum(found["goodput_bps"] or 0.0 for found in halves.values())
    return {
        name: Observation(
            goodput=found["goodput_bps"] or 0.0,
            share=(found["goodput_bps"] or 0.0) / total_bps if total_bps else None,
            srtt=found["srtt_s"],
            retransmitted=found["retransmitted_packets"] or 0.0,
        )
        for name, found in halves.items()
    }


def _second_half(series: pl.DataFrame, flow: str, half_s: float) -> Mapping[str, float | None]:
    import polars as pl

    one = series.filter(pl.col("flow") == flow).sort("time_s")
    end_s = _floats(one, "time_s")
    start_s = np.concatenate(([0.0], end_s[:-1]))[: end_s.size]
    # An interval that the middle of the run cuts is left out.
    late = start_s > half_s - 1e-9
    width_s = (end_s - start_s)[late]
    goodput_bps = np.nan_to_num(_floats(one, "goodput_bps")[late])
    return {
        "goodput_bps": float(goodput_bps @ width_s / width_s.sum()) if late.any() else None,
        "srtt_s": mean(_floats(one, "srtt_s")[late]),
        "retransmitted_packets": float(np.nansum(_floats(one, "retransmitted_packets"))),
    }


def _floats(frame: pl.DataFrame, column: str) -> Floats:
    import polars as pl

    values: Floats = frame[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values
