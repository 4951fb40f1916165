"""Expectations: a value with its interval, the accepted range around a number, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from jostle.stats.mean_estimate import Estimate

Relation = Literal["above", "below", "about"]
Verdict = Literal["holds", "fails", "open"]

_SIGNS: Final[dict[Relation, str]] = {"above": "≥", "below": "≤", "about": "about"}
_Z: Final = 1.959964
"""Standard deviations between the middle and an end of a 95 % interval."""


@dataclass(frozen=True)
class Expectation:
    """A number with a value and a verdict of runs on it.

    Attributes
    ----------
    relation
        In words: `≥ 2 ×`, `≤ 5 %`, `about 100 Mbit/s`.
    target
        Number that the value is compared with: a bound, a published number, the mean of another
        side.
    ours
        The value, or the ratio (or difference) of two values.
    holds
        Whether the value is in the accepted range; None if it is missing, a run failed, or runs
        ended too early to tell.
    certain
        Whether the complete confidence interval agrees with `holds`, or a single run decides.
    under, over
        Accepted distance below and above the target; infinite without a limit.
    is_worst_run
        Whether a single run beyond the bound decides, as in “all runs end within 5 s”.
    """

    relation: str
    target: float
    ours: Estimate
    holds: bool | None
    certain: bool
    under: float
    over: float
    is_worst_run: bool = False

    def for_worst_run(self) -> Expectation:
        """Return the expectation of the worst run alone, which an interval cannot excuse."""
        return replace(self, is_worst_run=True, certain=self.certain or self.holds is False)

    @property
    def is_open(self) -> bool:
        """Whether the interval, or the possible values, also allow the other verdict."""
        return self.ended_early or (
            self.holds is not None and self.ours.low is not None and not self.certain
        )

    @property
    def ended_early(self) -> bool:
        """Whether it is not known if the value is in the range, because runs ended too early."""
        return self.holds is None and self.ours.possible is not None and not self.ours.incomplete

    @property
    def verdict(self) -> Verdict | None:
        """Verdict; `open` if the interval allows both, None if the value is not judged."""
        if self.is_open:
            return "open"
        return None if self.holds is None else "holds" if self.holds else "fails"

    @property
    def ratio(self) -> float | None:
        """The value divided by the target; None without a value of all runs or a target of 0."""
        value = self.ours.value
        if value is None or self.ours.possible is not None or not self.target:
            return None
        return value / self.target

    @property
    def excess(self) -> float:
        """Distance of the value beyond the accepted range, relative to the target.

        It is negative inside the range, and −∞ without a value. For a target of 0 it is relative to
        the margin of the range, or absolute without one.
        """
        if self.ours.value is None:
            return -math.inf
        away = self.ours.value - self.target
        sides = [sign * away - limit for sign, limit in ((1, self.over), (-1, self.under))
                 if limit < math.inf]  # fmt: skip
        return max(sides) / (abs(self.target) or min(self.under, self.over) or 1.0)

    @property
    def used_margin(self) -> float | None:
        """Distance from the target divided by the accepted distance; None without a value.

        It is at most 1 inside the range, and infinite beyond a target without a margin.
        """
        if self.ours.value is None:
            return None
        away = self.ours.value - self.target
        margin = self.over if away > 0 else self.under
        return 0.0 if away == 0.0 else abs(away) / margin if margin else math.inf

    @property
    def probability(self) -> float:
        """Probability that the value is in the accepted range, from its interval.

        Without an interval, and for a range with two ends, it is 1 or 0.
        """
        ours, sure = self.ours, 1.0 if self.holds else 0.0
        one_sided = math.inf in (self.under, self.over)
        if not one_sided or (self.is_worst_run and not self.holds):
            return sure
        if ours.value is None or ours.low is None or ours.high is None:
            return sure
        beyond = self.target - ours.value
        end = ours.high if beyond > 0 else ours.low
        deviation = abs(end - ours.value) / _Z
        if deviation == 0.0 or not math.isfinite(deviation):
            return sure
        below = 0.5 * (1 + math.erf(beyond / deviation / math.sqrt(2)))
        return below if self.under == math.inf else 1 - below


def expect(
    ours: Estimate,
    relation: Relation,
    target: float,
    margin: float = 0.0,
) -> Expectation:
    """Judge a value that should be above, below or about a number.

    Parameters
    ----------
    ours
        The value.
    relation, target, margin
        Accepted range: from the target upwards, downwards, or the margin to both sides.

    Examples
    --------
    >>> from jostle.stats import Estimate, expect
    >>> found = expect(Estimate(9.5, 8.9, 10.1, 5, "ms", "mean"), "below", 10.0)
    >>> found.relation, found.holds, found.verdict
    ('≤ 10 ms', True, 'open')
    """
    under, over = margin, margin
    if relation != "about":
        under, over = (0.0, math.inf) if relation == "above" else (math.inf, 0.0)
    words = f"{_SIGNS[relation]} {target:g} {ours.unit}".strip()
    if relation == "about" and margin > 0:
        words += f" ± {margin:g}"
    return expect_between(ours, target, under, over, words)


def expect_between(
    ours: Estimate, target: float, under: float, over: float, words: str
) -> Expectation:
    """Judge a value that should be at most `under` below and `over` above a number."""

    def accepts(value: float) -> bool:
        return -under <= value - target <= over

    unknown = Expectation(words, target, ours, None, False, under, over)
    if ours.incomplete:
        return unknown
    if ours.possible is not None:
        least, most = ours.possible
        outside = most < target - under or least > target + over
        if not outside and not (accepts(least) and accepts(most)):
            return unknown
        if ours.value is None or ours.never:
            return replace(unknown, holds=not outside, certain=True)
    if ours.value is None:
        return unknown
    holds, certain = accepts(ours.value), False
    if ours.low is not None and ours.high is not None:
        certain = accepts(ours.low) == accepts(ours.high) == holds
        # An interval that contains the range leaves a miss open, although its ends are outside.
        certain &= holds or not ours.low < target < ours.high
    return Expectation(words, target, ours, holds, certain, under, over)


def joint_verdict(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """Return the verdict of expectations that have to hold together.

    It fails if one fails, is unknown if another is not judged, and is open if another is open.
    """
    known = set(verdicts)
    worst: tuple[Verdict | None, ...] = ("fails", None, "open")
    return next((one for one in worst if one in known), "holds")
