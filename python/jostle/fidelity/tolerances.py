"""Tolerances for differences between the simulator and the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from jostle.stats import Estimate

Kind = Literal["solo", "lossy", "shared", "applications"]
"""Kind of a run, which selects the judged quantities: one flow alone, one flow on links with random
loss, several flows, or applications with other flows."""


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of one quantity. The difference must be within at least one of its bounds.

    Parameters
    ----------
    quantity
        Name of the quantity.
    relative
        Maximum difference as a share of the kernel's mean.
    absolute
        Maximum difference in the quantity's unit.
    or_inside_interval
        Whether a mean within the kernel's 95 % interval is accepted, regardless of its width.
    words
        Description of the tolerance.
    """

    quantity: str
    words: str
    relative: float = 0.0
    absolute: float = 0.0
    or_inside_interval: bool = False

    def allowance(self, kernel: float) -> float:
        """Return the maximum difference for the mean `kernel` of the kernel."""
        return max(self.relative * abs(kernel), self.absolute)

    def excess(self, simulator: Estimate, kernel: Estimate) -> float | None:
        """Return the difference divided by the tolerance; up to 1 it is within.

        The result is infinite if the tolerance is 0. It is 0 if neither side has a value, and None
        if only one side has.
        """
        if simulator.value is None or kernel.value is None:
            return 0.0 if simulator.value is kernel.value else None
        distance = abs(simulator.value - kernel.value)
        if distance == 0.0:
            return 0.0
        allowance = self.allowance(kernel.value)
        excess = distance / allowance if allowance else math.inf
        if self.or_inside_interval and kernel.low is not None and kernel.high is not None:
            reach = max(kernel.value - kernel.low, kernel.high - kernel.value)
            # Distance as a share of the interval's half width: at most 1 within the interval.
            excess = min(excess, distance / reach) if reach else excess
        return excess


_ALONE: Final = (
    Tolerance("goodput", "within 2 %", relative=0.02),
    Tolerance("srtt", "within 5 %", relative=0.05),
    Tolerance("retransmitted", "within 25 % or 30 packets", relative=0.25, absolute=30.0),
)

TOLERANCES: Final[dict[Kind, tuple[Tolerance, ...]]] = {
    "solo": _ALONE,
    "lossy": _ALONE,
    # Competition is chaotic: the winner of the first overflow dominates the next ten seconds. So
    # only the mean share over many starts is compared.
    "shared": (
        Tolerance(
            "share",
            "within 5 percentage points of the kernel's mean, or inside its 95 % interval",
            absolute=0.05,
            or_inside_interval=True,
        ),
    ),
    # Flows next to an application: the load that the application meets.
    "applications": (
        Tolerance(
            "goodput",
            "within 5 %, or inside the 95 % interval of the kernel's mean",
            relative=0.05,
            or_inside_interval=True,
        ),
    ),
}
"""Judged quantities of bulk flows, by kind; other quantities are shown without a verdict."""
