"""Paths that are reassigned at fixed times, like the paths of satellite terminals.

The rate is a Gaussian copula, like jitter: a standard normal value is converted to a rate by the
quantile table. The normal value has two components. One varies within an assignment and is redrawn
with the next; the other changes only between assignments, and slowly.

The values are drawn in Python, like flow starts. A RunSpec contains the resulting steps, which all
backends can execute.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jostle.scenario.fields import QuantileTable, Steps
from jostle.scenario.models import ReassignmentSlots
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount

if TYPE_CHECKING:
    from statistics import NormalDist

__all__ = ["ReassignmentDraws", "slotted"]

_MOST_STEPS: Final = 1_000_000
# Coarse rounding hides the last bit of logarithms, which differs between platforms.
_RATE_GRAIN_BPS: Final = 1_000
_DELAY_GRAIN_NS: Final = 1_000


@dataclass(frozen=True)
class ReassignmentDraws:
    """Generator of a link's random rates and delays.

    Parameters
    ----------
    name
        Name of the link, which selects its random numbers.
    slots
        Slots in the scenario.
    base_ns
        Delay steps to which the delay of each assignment is added.
    base_bps
        Rate steps which the gaps interrupt, unless the rate is random.
    duration_ns
        Duration of the run.
    """

    name: str
    slots: ReassignmentSlots
    base_ns: Steps
    base_bps: Steps
    duration_ns: int

    @property
    def mean_bps(self) -> int:
        """Mean rate; 0 if the rate is not random."""
        table = self.slots.rate or ()
        pairs = itertools.pairwise(table)
        return round(sum((p1 - p0) * (v0 + v1) / 2 for (p0, v0), (p1, v1) in pairs))

    @property
    def peak_bps(self) -> int:
        """Highest rate; 0 if the rate is not random."""
        return self.slots.rate[-1][1] if self.slots.rate else 0

    def steps(self, seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return rate steps (ns, bit/s; empty if the link's own are unchanged) and delay steps."""
        rates: list[tuple[int, int]] = []
        delays: list[tuple[int, int]] = []
        numbers = random.Random(f"slots/{seed}/{self.name}")
        level = _normal(numbers)
        place_ns = (
            _at(self.slots.per_run_delay, numbers.random()) if self.slots.per_run_delay else 0
        )
        kept = math.exp(-self.slots.every / self.slots.variance_share_time)
        for start_ns, end_ns in self._assignments(seed):
            delay_ns = place_ns
            delay_ns += _at(self.slots.delay, numbers.random()) if self.slots.delay else 0
            delays.extend(self._delays(start_ns, end_ns, delay_ns))
            if self.slots.rate:
                rates.extend(self._rates(start_ns, end_ns, level, numbers))
            elif self.slots.gap:
                rates.extend(self._interrupted(start_ns, end_ns))
            level = _mixed(kept * kept, level, _normal(numbers))
        return rates, _changes(delays)

    def _assignments(self, seed: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of each assignment; the first starts before the run."""
        every_ns = self.slots.every
        # All links of a run share the assignment times of the constellation.
        first_ns = 1 + int(random.Random(f"slots/{seed}").random() * (every_ns - 1))
        start_ns = 0
        for end_ns in range(first_ns, self.duration_ns + every_ns, every_ns):
            yield start_ns, min(end_ns, self.duration_ns)
            start_ns = end_ns
            if start_ns >= self.duration_ns:
                return

    def _rates(
        self, start_ns: int, end_ns: int, level: float, numbers: random.Random
    ) -> Iterator[tuple[int, int]]:
        slots, table = self.slots, self.slots.rate or ()
        at_ns = start_ns
        if start_ns > 0 and slots.gap:
            yield at_ns, 0
            at_ns += slots.gap
        kept = math.exp(-slots.step / slots.correlation)
        wandering = _normal(numbers)
        while at_ns < end_ns:
            rate_bps = _at(
                table, _normal_distribution().cdf(_mixed(slots.variance_share, level, wandering))
            )
            yield at_ns, round(rate_bps / _RATE_GRAIN_BPS) * _RATE_GRAIN_BPS
            wandering = _mixed(kept * kept, wandering, _normal(numbers))
            at_ns += slots.step

    def _delays(self, start_ns: int, end_ns: int, more_ns: int) -> Iterator[tuple[int, int]]:
        more_ns = round(more_ns / _DELAY_GRAIN_NS) * _DELAY_GRAIN_NS
        for at_ns, base_ns in _between(self.base_ns, start_ns, end_ns):
            yield at_ns, base_ns + more_ns

    def _interrupted(self, start_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
        """Yield the link's own rates after the gap with which an assignment begins."""
        if start_ns > 0:
            yield start_ns, 0
            start_ns += self.slots.gap
        if start_ns < end_ns:
            yield from _between(self.base_bps, start_ns, end_ns)


def slotted(
    name: str,
    slots: ReassignmentSlots,
    base_ns: Sequence[tuple[int, int]],
    base_bps: Sequence[tuple[int, int]] | None,
    duration_ns: int,
    *,
    path: KeyPath,
    report: Report,
) -> ReassignmentDraws | None:
    """Return the generator of a link's slots; None if a problem was reported.

    `base_bps` are the steps of the link's own rate, or None if it has none.
    """
    at = (*path, "reassignment")
    if slots.gap >= slots.every:
        gap, every = (format_amount(value, "time") for value in (slots.gap, slots.every))
        report.add((*at, "gap"), f"{gap} is not less than {every}, the time of an assignment")
        return None
    if duration_ns // min(slots.every, slots.step) > _MOST_STEPS:
        shown = format_amount(min(slots.every, slots.step), "time")
        message = f"{shown} is too short for a run of this length"
        report.add((*at, "step" if slots.step < slots.every else "every"), message, ("duration",))
        return None
    if slots.gap and not slots.rate and base_bps is None:
        message = (
            "a gap interrupts a rate that is constant or has steps, "
            'not a random rate or a trace — write gap = "0 s"'
        )
        report.add((*at, "gap"), message, (*path, "rate"), (*path, "trace"))
        return None
    return ReassignmentDraws(name, slots, tuple(base_ns), tuple(base_bps or ()), duration_ns)


@functools.cache
def _normal_distribution() -> NormalDist:
    # The module is slow to import, and few scenarios have a satellite.
    from statistics import NormalDist

    return NormalDist()


def _normal(numbers: random.Random) -> float:
    # The quantile of 0 is infinite; use 2⁻⁵⁴, the largest value that rounds to it.
    return _normal_distribution().inv_cdf(max(numbers.random(), 2.0**-54))


def _mixed(share: float, one: float, other: float) -> float:
    """Return a standard normal value; `share` of its variance comes from the first value."""
    return math.sqrt(share) * one + math.sqrt(1 - share) * other


def _at(table: QuantileTable, probability: float) -> int:
    """Return the value of a quantile table by linear interpolation."""
    index = bisect.bisect_right([p for p, _ in table], probability) - 1
    index = min(max(index, 0), len(table) - 2)
    (p0, v0), (p1, v1) = table[index], table[index + 1]
    share = (probability - p0) / (p1 - p0)
    return round(v0 + min(max(share, 0.0), 1.0) * (v1 - v0))


def _between(steps: Steps, start_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    """Yield the value at `start_ns`, and the steps after it and before `end_ns`."""
    index = bisect.bisect_right(steps, start_ns, key=_time_ns)
    yield start_ns, steps[index - 1][1]
    yield from steps[index : bisect.bisect_left(steps, end_ns, key=_time_ns)]


def _time_ns(step: tuple[int, int]) -> int:
    return step[0]


def _changes(steps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Remove steps that repeat the previous value."""
    kept = list(steps[:1])
    kept += [new for old, new in itertools.pairwise(steps) if new[1] != old[1]]
    return kept
