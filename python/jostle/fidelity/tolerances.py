"""How far the simulator may lie from the kernel: every tolerance, here and nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from jostle.stats import Estimate

Kind = Literal["solo", "lossy", "shared", "applications"]
"""A flow alone, alone on links that lose packets at random, with others, or beside applications:
which runs are compared and what is judged depend on it."""


@dataclass(frozen=True)
class Tolerance:
    """What is allowed for one quantity. It is enough that one of the allowances holds.

    Parameters
    ----------
    quantity
        Name of the quantity.
    relative
        Largest difference as a part of the kernel's mean.
    absolute
        Largest difference in the quantity's unit.
    or_inside_interval
        Whether a mean inside the 95 % interval of the kernel's mean is within, however wide.
    words
        The same for people.
    """

    quantity: str
    words: str
    relative: float = 0.0
    absolute: float = 0.0
    or_inside_interval: bool = False

    def allowance(self, kernel: float) -> float:
        """Return the largest difference that is allowed beside the kernel's mean `kernel`."""
        return max(self.relative * abs(kernel), self.absolute)

    def excess(self, simulator: Estimate, kernel: Estimate) -> float | None:
        """Return the difference in allowances: up to 1 it is within.

        Infinite where nothing is allowed. A quantity that neither side has does not differ; None
        if only one side has it.
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
            # Inside the interval, however wide: the nearer to its end, the nearer to 1.
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
    # Competition is chaotic: who wins the first overflow decides the next ten seconds. What can be
    # asked is that the mean share over many starts is the kernel's.
    "shared": (
        Tolerance(
            "share",
            "within 5 percentage points of the kernel's mean, or inside its 95 % interval",
            absolute=0.05,
            or_inside_interval=True,
        ),
    ),
    # Of what is beside an application: how much that has to bear.
    "applications": (
        Tolerance(
            "goodput",
            "within 5 %, or inside the 95 % interval of the kernel's mean",
            relative=0.05,
            or_inside_interval=True,
        ),
    ),
}
"""What is judged of flows of bulk data, by kind; other quantities are shown without a verdict."""
