"""Tolerances for differences between the simulator and the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from jostle.stats import Estimate, Expectation, expect

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

    def expected(self, simulator: Estimate, kernel: Estimate) -> Expectation | None:
        """Return the expectation of the simulator's mean; None if the kernel has no value."""
        if kernel.value is None:
            return None
        margin = max(self.relative * abs(kernel.value), self.absolute)
        if self.or_inside_interval and kernel.low is not None and kernel.high is not None:
            margin = max(margin, kernel.value - kernel.low, kernel.high - kernel.value)
        return expect(simulator, "about", kernel.value, margin)

    def wider_bound(self, difference: float, kernel: Estimate, unit: str) -> str:
        """Return the bound that accepts a difference which exceeds the relative one, in words.

        The result is empty if the difference is within the relative bound, or if the absolute one
        is the only number.
        """
        if abs(difference) <= self.relative * abs(kernel.value or 0.0):
            return ""
        if abs(difference) <= self.absolute:
            return f"{self.absolute:g} {unit}" if self.relative else ""
        return "the 95 % interval" if self.or_inside_interval else ""


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
