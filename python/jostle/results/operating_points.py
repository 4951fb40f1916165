"""Operating points of a flow: queueing delay and throughput in steps of ten base RTTs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.errors import InputError, unknown
from jostle.results.flow_paths import base_rtt_s, path_of, rate_bps
from jostle.results.measures import measure
from jostle.results.series_query import position_of, series_of
from jostle.stats import Envelope, envelope

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.stats.descriptive import Floats

RTTS: Final = 10.0
"""Base RTTs per point (`STEP_RTT_MULT` of QUICbench)."""

COUNTED: Final = 0.95
"""Share of a flow's lifetime that is used, from its start (`TRUNCATE_TRACES_BY` of QUICbench)."""

DELAY_AXIS: Final = "Queueing delay (÷ base RTT)"
RATE_AXIS: Final = "Throughput (÷ rate)"
ENVELOPE_CAPTION: Final = (
    "A point for every 10 base RTTs; the outline is the convex hull of the 95 % nearest the mean, "
    "which is the large mark."
)


@dataclass(frozen=True)
class OperatingPoints:
    """Operating points of one flow of one run, relative to base RTT and rate of its path.

    Attributes
    ----------
    delay
        Shape (points,): mean queueing delay of all packets that left the queues of the path's
        links, in base RTTs; NaN if no packet left.
    throughput
        Shape (points,): bits per second that reached the receiver, relative to the path's rate.
    base_rtt_s, rate_bps
        Base RTT, and rate of the slowest link.
    """

    delay: Floats
    throughput: Floats
    base_rtt_s: float
    rate_bps: float

    @cached_property
    def envelope(self) -> Envelope | None:
        """Performance Envelope of the points; None if there are fewer than three."""
        return envelope(self.delay, self.throughput)


def operating_points(run: Run, flow: str, phase: str = "", rtts: float = RTTS) -> OperatingPoints:
    """Return the operating points of a flow.

    QUICbench measures both coordinates from the flow's packets at the bottleneck, in windows of
    ten RTTs. Here throughput is measured at the receiver, and delay is the queueing delay of all
    packets in the queues of the flow's links, because every backend provides it. A kernel reports
    only the smoothed RTT of a flow, which each transport measures differently.

    Parameters
    ----------
    run
        A finished run.
    flow
        Name of the flow.
    phase
        Name of a phase; if empty, the first 95 % of the flow's lifetime.
    rtts
        Base RTTs per point.

    Raises
    ------
    InputError
        When there is no such flow or phase, the flow has no controller, or the sampling interval is
        longer than a point.
    """
    spec = run.spec
    base_s, rate = base_rtt_s(spec, flow), rate_bps(spec, flow)
    from_s, to_s = _window(run, flow, phase)
    if base_s <= 0.0:
        raise InputError(f"`{flow}` has an rtt of 0: an envelope is in parts of it")
    step_s, interval_s = rtts * base_s, spec["interval_ns"] / 1e9
    if step_s < interval_s * (1 - 1e-9):
        raise InputError(
            f"the series has a value every {interval_s:g} s, and {rtts:g} round trips of `{flow}` "
            f'are {step_s:g} s: set sampling_interval = "{step_s * 1e3:g} ms" or less'
        )
    series = series_of(run)

    def bins(name: str, who: str) -> Floats:
        found: Floats = series.bins(
            name, position_of(run, measure(name), who), from_s, to_s, step_s
        )
        return found

    crossed = [spec["links"][at]["name"] for at in path_of(spec, flow)]
    delay = np.sum([bins("queueing_delay", link) for link in crossed], axis=0)
    return OperatingPoints(delay / base_s, bins("throughput", flow) / rate, base_s, rate)


def _window(run: Run, flow: str, phase: str) -> tuple[float, float]:
    """Return the time window of the points, in seconds."""
    spec = run.spec
    if phase:
        ends = {one["name"]: (one["from_ns"], one["to_ns"]) for one in spec["phases"]}
        if phase not in ends:
            raise InputError(unknown("phase", phase, ends))
        return ends[phase][0] / 1e9, ends[phase][1] / 1e9
    facts = next(one for one in run.summary["flows"] if one["name"] == flow)
    if facts["controller"] == "none":
        raise InputError(f"`{flow}` sends datagrams: only flows with a controller have an envelope")
    start_s = facts["start_s"]
    if start_s is None:
        return 0.0, 0.0
    stop_ns = next(one["stop_ns"] for one in spec["flows"] if one["name"] == flow)
    end_s = (spec["duration_ns"] if stop_ns is None else stop_ns) / 1e9
    completion_time_s = facts.get("completion_time_s")
    if completion_time_s is not None:
        end_s = min(end_s, start_s + completion_time_s)
    return start_s, start_s + COUNTED * max(end_s - start_s, 0.0)
