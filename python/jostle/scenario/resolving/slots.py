"""Paths that are assigned anew at fixed times, as those of terminals below a constellation.

The rate is a Gaussian copula as jitter's: a standard normal value says how unusual it is just now,
and the quantile table what that means. The value has two parts. One wanders within an assignment
and is drawn anew with the next; the other one changes from assignment to assignment, and slowly.

Drawn in Python, as starts are: a RunSpec holds steps, which every backend plays.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from jostle.scenario.fields import QuantileTable, Steps
from jostle.scenario.models import Slots
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import format_amount

__all__ = ["Slotted", "slotted"]

_MOST_STEPS: Final = 1_000_000
# So coarse that the last bit of a logarithm, which platforms round differently, changes nothing.
_RATE_GRAIN_BPS: Final = 1_000
_DELAY_GRAIN_NS: Final = 1_000
_NORMAL: Final = NormalDist()


@dataclass(frozen=True)
class Slotted:
    """What is drawn of a link.

    Parameters
    ----------
    name
        Of the link, which gives it numbers of its own.
    slots
        What the scenario says.
    base_ns
        Steps of the delay that comes with every assignment.
    duration_ns
        Of the run.
    """

    name: str
    slots: Slots
    base_ns: Steps
    duration_ns: int

    @property
    def mean_bps(self) -> int:
        """Mean of the rate; 0 if it is not drawn."""
        table = self.slots.rate or ()
        pairs = itertools.pairwise(table)
        return round(sum((p1 - p0) * (v0 + v1) / 2 for (p0, v0), (p1, v1) in pairs))

    @property
    def peak_bps(self) -> int:
        """Highest rate; 0 if it is not drawn."""
        return self.slots.rate[-1][1] if self.slots.rate else 0

    def steps(self, seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return times (ns) with rates (bit/s; none if they are not drawn) and with delays (ns)."""
        rates: list[tuple[int, int]] = []
        delays: list[tuple[int, int]] = []
        numbers = random.Random(f"slots/{seed}/{self.name}")
        level = _normal(numbers)
        place_ns = _at(self.slots.place, numbers.random()) if self.slots.place else 0
        kept = math.exp(-self.slots.every / self.slots.lasting_for)
        for start_ns, end_ns in self._assignments(seed):
            delay_ns = place_ns
            delay_ns += _at(self.slots.delay, numbers.random()) if self.slots.delay else 0
            delays.extend(self._delays(start_ns, end_ns, delay_ns))
            if self.slots.rate:
                rates.extend(self._rates(start_ns, end_ns, level, numbers))
            level = _mixed(kept * kept, level, _normal(numbers))
        return rates, _changes(delays)

    def _assignments(self, seed: int) -> Iterator[tuple[int, int]]:
        """Start and end of each; the first one began before the run."""
        every_ns = self.slots.every
        # The same for all links of a run: a constellation has one clock.
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
            rate_bps = _at(table, _NORMAL.cdf(_mixed(slots.lasting, level, wandering)))
            yield at_ns, round(rate_bps / _RATE_GRAIN_BPS) * _RATE_GRAIN_BPS
            wandering = _mixed(kept * kept, wandering, _normal(numbers))
            at_ns += slots.step

    def _delays(self, start_ns: int, end_ns: int, more_ns: int) -> Iterator[tuple[int, int]]:
        more_ns = round(more_ns / _DELAY_GRAIN_NS) * _DELAY_GRAIN_NS
        before = bisect.bisect_right([at for at, _ in self.base_ns], start_ns) - 1
        yield start_ns, self.base_ns[before][1] + more_ns
        for at_ns, base_ns in self.base_ns[before + 1 :]:
            if at_ns < end_ns:
                yield at_ns, base_ns + more_ns


def slotted(
    name: str,
    slots: Slots,
    base_ns: Sequence[tuple[int, int]],
    duration_ns: int,
    *,
    path: KeyPath,
    report: Report,
) -> Slotted | None:
    """Return what is drawn of a link; None if something of its slots was reported."""
    at = (*path, "slots")
    if slots.gap >= slots.every:
        gap, every = (format_amount(value, "time") for value in (slots.gap, slots.every))
        report.add((*at, "gap"), f"{gap} is not less than {every}, the time of an assignment")
        return None
    if duration_ns // min(slots.every, slots.step) > _MOST_STEPS:
        shown = format_amount(min(slots.every, slots.step), "time")
        message = f"{shown} is too short for a run of this length"
        report.add((*at, "step" if slots.step < slots.every else "every"), message, ("duration",))
        return None
    return Slotted(name, slots, tuple(base_ns), duration_ns)


def _normal(numbers: random.Random) -> float:
    # 0 has no quantile; 2⁻⁵⁴ is what rounds to it.
    return _NORMAL.inv_cdf(max(numbers.random(), 2.0**-54))


def _mixed(share: float, one: float, other: float) -> float:
    """Return a standard normal value of which `share` of the variance is the first one's."""
    return math.sqrt(share) * one + math.sqrt(1 - share) * other


def _at(table: QuantileTable, probability: float) -> int:
    """Value of a quantile table, linear between its points."""
    index = bisect.bisect_right([p for p, _ in table], probability) - 1
    index = min(max(index, 0), len(table) - 2)
    (p0, v0), (p1, v1) = table[index], table[index + 1]
    share = (probability - p0) / (p1 - p0)
    return round(v0 + min(max(share, 0.0), 1.0) * (v1 - v0))


def _changes(steps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out steps that change nothing."""
    kept = list(steps[:1])
    kept += [new for old, new in itertools.pairwise(steps) if new[1] != old[1]]
    return kept
