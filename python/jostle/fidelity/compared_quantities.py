"""Quantities that are compared: a few numbers per flow, computed in the same way on both sides.

They are registry measures over the second half or the complete run, computed from the series that
both backends record. The exception is `srtt`: the kernel samples its smoothed RTT and does not
record every RTT sample, so that the measure `rtt` would differ between the sides.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.fidelity.applications import tolerances_of
from jostle.results.measures import Measure, measure
from jostle.results.series_query import series_of
from jostle.stats.descriptive import mean

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.fidelity.tolerances import Tolerance
    from jostle.run_spec import FlowSpec
    from jostle.stats.descriptive import Floats


@dataclass(frozen=True)
class ComparedQuantity:
    """A compared quantity.

    Parameters
    ----------
    name
        Name in documents, and attribute of an `Observation`.
    title
        Name for display.
    unit
        Unit of the numbers.
    shown_unit, factor, decimals
        Displayed unit, factor that converts a number to it, and decimals.
    """

    name: str
    title: str
    unit: str
    shown_unit: str
    factor: float
    decimals: int


_SRTT: Final = "srtt"
_DECIMALS: Final = {"goodput": 2, "share": 1, _SRTT: 1, "retransmitted": 0}
_OF_APPLICATIONS: Final = 2


@functools.cache
def quantities() -> tuple[ComparedQuantity, ...]:
    """Return all compared quantities in the order of display."""
    found = []
    for name, decimals in _DECIMALS.items():
        # The smoothed RTT is displayed like any RTT.
        row = measure("rtt" if name == _SRTT else name)
        title = "SRTT" if name == _SRTT else row.title
        found.append(
            ComparedQuantity(name, title, row.unit, row.display_unit, row.factor, decimals)
        )
    return tuple(found)


@functools.cache
def quantities_of(tolerances: tuple[Tolerance, ...]) -> tuple[ComparedQuantity, ...]:
    """Return the quantities with these tolerances."""
    return tuple(
        ComparedQuantity(
            row.name, row.title, row.unit, row.display_unit, row.factor, _OF_APPLICATIONS
        )
        for row in (measure(tolerance.quantity) for tolerance in tolerances)
    )


@dataclass(frozen=True)
class Observation:
    """Observed quantities of one flow in one run.

    Attributes
    ----------
    goodput, share
        Measures of the second half of the run, which exclude start-up and cover the period in which
        flows compete.
    srtt
        Mean of the smoothed RTT at the ends of the intervals of the second half, in seconds; None
        if there is none.
    retransmitted
        Measure of the complete run, because most retransmissions follow the first overflow.
    noticed
        Application measures of the complete run, by name.
    """

    goodput: float | None
    share: float | None
    srtt: float | None
    retransmitted: float | None
    noticed: Mapping[str, float | None] = field(default_factory=dict)

    def of(self, quantity: str) -> float | None:
        """Return a quantity by its name."""
        value: float | None = (
            self.noticed[quantity] if quantity in self.noticed else getattr(self, quantity)
        )
        return value


def observe(run: Run) -> dict[str, Observation]:
    """Return the observed quantities of a run, by flow."""
    series = series_of(run)
    end_s = run.spec["duration_ns"] / 1e9
    half_s = end_s / 2
    return {
        flow["name"]: Observation(
            goodput=series.window_measure("goodput", number, half_s, end_s),
            share=series.window_measure("share", number, half_s, end_s),
            srtt=_mean_srtt_s(run, flow["name"], half_s),
            retransmitted=series.window_measure("retransmitted", number, 0.0, end_s),
            noticed=_noticed(run, flow),
        )
        for number, flow in enumerate(run.spec["flows"])
    }


def _noticed(run: Run, flow: FlowSpec) -> dict[str, float | None]:
    names = [tolerance.quantity for tolerance in tolerances_of(flow)]
    return {name: _overall_value(measure(name), run, flow) for name in names}


def _overall_value(row: Measure, run: Run, flow: FlowSpec) -> float | None:
    who = (flow.get("group") or flow["name"]) if row.scope == "group" else flow["name"]
    return row.of_summary(run.summary, "overall", who)


def _mean_srtt_s(run: Run, flow: str, half_s: float) -> float | None:
    import polars as pl

    late = run.flows.filter((pl.col("flow") == flow) & (pl.col("time_s") > half_s + 1e-9))
    values: Floats = late["srtt_s"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return mean(values)
