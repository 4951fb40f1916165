"""What is compared of a run: a few numbers per flow, taken in the same way on both sides.

They are measures of the registry over the second half of the run, or all of it, computed from the
series, which both backends record. One is not: the kernel samples its SRTT and does not tell every
RTT that it measured, so that the measure `rtt` is not the same thing on both sides.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.fidelity.applications import APPLICATIONS, Application, application_of
from jostle.results.measures import Measure, measure
from jostle.results.series import series_of
from jostle.stats.describe import mean

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.run_spec import FlowSpec
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


_SRTT: Final = "srtt"
_DECIMALS: Final = {"goodput": 2, "share": 1, _SRTT: 1, "retransmitted": 0}
_OF_APPLICATIONS: Final = 2


@functools.cache
def quantities() -> tuple[Quantity, ...]:
    """Everything that is compared, in the order in which it is shown."""
    found = []
    for name, decimals in _DECIMALS.items():
        # The smoothed RTT is read as every RTT is.
        row = measure("rtt" if name == _SRTT else name)
        title = "SRTT" if name == _SRTT else row.title
        found.append(Quantity(name, title, row.unit, row.reads, row.factor, decimals))
    return tuple(found)


@functools.cache
def quantities_of(application: Application) -> tuple[Quantity, ...]:
    """Everything that is compared of an application."""
    return tuple(
        Quantity(row.name, row.title, row.unit, row.reads, row.factor, _OF_APPLICATIONS)
        for row in (measure(tolerance.quantity) for tolerance in APPLICATIONS[application])
    )


@dataclass(frozen=True)
class Observation:
    """One flow of one run.

    Attributes
    ----------
    goodput, share
        Measures of the second half of the run: start-up is over, and a share is that of flows which
        know each other.
    srtt
        Mean of the smoothed RTT at the ends of the intervals of the second half, in seconds; None
        if there is none.
    retransmitted
        Measure of the whole run: the first overflow is where most are.
    noticed
        Of an application what those who use it notice, by measure: of the whole run.
    """

    goodput: float | None
    share: float | None
    srtt: float | None
    retransmitted: float | None
    noticed: Mapping[str, float | None] = field(default_factory=dict)

    def of(self, quantity: str) -> float | None:
        """One of these quantities, by its name."""
        value: float | None = (
            self.noticed[quantity] if quantity in self.noticed else getattr(self, quantity)
        )
        return value


def observe(run: Run) -> dict[str, Observation]:
    """Take what is compared out of a run, by flow."""
    series = series_of(run)
    end_s = run.spec["duration_ns"] / 1e9
    half_s = end_s / 2
    return {
        flow["name"]: Observation(
            goodput=series.over("goodput", number, half_s, end_s),
            share=series.over("share", number, half_s, end_s),
            srtt=_mean_srtt_s(run, flow["name"], half_s),
            retransmitted=series.over("retransmitted", number, 0.0, end_s),
            noticed=_noticed(run, flow),
        )
        for number, flow in enumerate(run.spec["flows"])
    }


def _noticed(run: Run, flow: FlowSpec) -> dict[str, float | None]:
    application = application_of(flow)
    if application is None:
        return {}
    names = [tolerance.quantity for tolerance in APPLICATIONS[application]]
    return {name: _of_whole_run(measure(name), run, flow) for name in names}


def _of_whole_run(row: Measure, run: Run, flow: FlowSpec) -> float | None:
    who = (flow.get("group") or flow["name"]) if row.scope == "group" else flow["name"]
    return row.of_summary(run.summary, "overall", who)


def _mean_srtt_s(run: Run, flow: str, half_s: float) -> float | None:
    import polars as pl

    late = run.flows.filter((pl.col("flow") == flow) & (pl.col("time_s") > half_s + 1e-9))
    values: Floats = late["srtt_s"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return mean(values)
