"""Where a flow works: points of queueing delay and throughput, one for every ten round trips."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.errors import InputError, unknown
from jostle.results.measures import measure
from jostle.results.paths import base_rtt_s, rate_bps, way_of
from jostle.results.series import position_of, series_of
from jostle.stats import Envelope, envelope

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.stats.describe import Floats

RTTS: Final = 10.0
"""Round trips of the quiet path that a point stands for (`STEP_RTT_MULT` of QUICbench)."""

COUNTED: Final = 0.95
"""Share of a flow's life that counts, from its start (`TRUNCATE_TRACES_BY` of QUICbench)."""

DELAY_AXIS: Final = "Queueing delay (÷ base RTT)"
RATE_AXIS: Final = "Throughput (÷ rate)"
ENVELOPE_CAPTION: Final = (
    "A point for every 10 base RTTs; the outline is the convex hull of the 95 % nearest the mean, "
    "which is the large mark."
)


@dataclass(frozen=True)
class OperatingPoints:
    """Points of one flow of one run, in parts of what its path has.

    Attributes
    ----------
    delay
        Shape (points,): mean waiting time in the queues of the path's links, of all packets that
        left them, in base RTTs; NaN where none did.
    throughput
        Shape (points,): bits that reached the receiver per second, in parts of the path's rate.
    base_rtt_s, rate_bps
        Round trip of the quiet path, and rate of its slowest link.
    """

    delay: Floats
    throughput: Floats
    base_rtt_s: float
    rate_bps: float

    @cached_property
    def envelope(self) -> Envelope | None:
        """Around them; None if there are fewer than three."""
        return envelope(self.delay, self.throughput)


def operating_points(run: Run, flow: str, phase: str = "", rtts: float = RTTS) -> OperatingPoints:
    """Take the points of a flow.

    QUICbench takes both coordinates of the flow's packets at the bottleneck, in a window of ten
    round trips. Here throughput is that of the receiver, and the delay what all packets waited for
    in the queues of the flow's links, which every backend has: a kernel tells of flows only the
    smoothed RTT, and transports measure that in ways of their own.

    Parameters
    ----------
    run
        A finished run.
    flow
        Name of the flow.
    phase
        Name of a phase; if empty, the first 95 % of the flow's life.
    rtts
        Base RTTs that a point stands for.

    Raises
    ------
    InputError
        When there is no such flow or phase, the flow has no controller, or the series is too coarse
        for so short a time.
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
            f'are {step_s:g} s: set interval = "{step_s * 1e3:g} ms" or less'
        )
    series = series_of(run)

    def bins(name: str, who: str) -> Floats:
        found: Floats = series.bins(
            name, position_of(run, measure(name), who), from_s, to_s, step_s
        )
        return found

    crossed = [spec["links"][at]["name"] for at in way_of(spec, flow)]
    delay = np.sum([bins("queueing_delay", link) for link in crossed], axis=0)
    return OperatingPoints(delay / base_s, bins("throughput", flow) / rate, base_s, rate)


def _window(run: Run, flow: str, phase: str) -> tuple[float, float]:
    """Give the time that counts, from and to."""
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
    completion_s = facts.get("completion_s")
    if completion_s is not None:
        end_s = min(end_s, start_s + completion_s)
    return start_s, start_s + COUNTED * max(end_s - start_s, 0.0)
