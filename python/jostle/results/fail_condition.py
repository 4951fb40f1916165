"""Bounds on the changes between two sides, at which a comparison fails."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError
from jostle.results.measures import Measure, measure
from jostle.scenario.parsing.value_words import QUOTED, VALUE, owner_and_phase
from jostle.stats import Estimate
from jostle.stats.expectation import Expectation, Relation, expect

if TYPE_CHECKING:
    from jostle.results.compare import Difference

__all__ = ["FailCondition"]

_MEETS: Final[Mapping[str, Relation]] = {"<": "above", ">": "below"}
"""Sign of a condition → relation of changes that do not fulfil it."""
_RELATION: Final = re.compile(
    rf"{VALUE}\s*(?P<sign>[<>])\s*(?P<number>[-+−]?\d+(?:\.\d+)?)\s*(?P<unit>\S*)"
)


@dataclass(frozen=True)
class FailCondition:
    """A bound on changes, such as `goodput of newcomer < -5 %`.

    Attributes
    ----------
    text
        The bound as the user wrote it.
    measure
        Measure whose change is bounded.
    who, phase
        Flow or link, and phase; any if empty.
    relation, bound, percent
        Changes that meet the bound: in the display unit of the measure, or in per cent.
    """

    text: str
    measure: Measure
    who: str
    phase: str
    relation: Relation
    bound: float
    percent: bool

    @classmethod
    def parse(cls, text: str) -> FailCondition:
        """Parse `MEASURE [of FLOW] [in PHASE] < NUMBER [% or unit]`.

        Raises
        ------
        InputError
            When the text has another form, or the measure or its unit is not known.
        """
        match = _RELATION.fullmatch(text.strip())
        if match is None:
            raise InputError(
                f'--fail-on "{text}": write it as "goodput < -5 %" or '
                '"rtt_p95 of web in steady > 10 ms"' + (f"; {QUOTED}" if " in " in text else "")
            )
        shown = measure(match["measure"])
        bound = float(match["number"].replace("\N{MINUS SIGN}", "-"))
        unit, relation = match["unit"], _MEETS[match["sign"]]
        if unit not in ("%", "", shown.display_unit, "points"):
            raise InputError(
                f'--fail-on "{text}": {shown.name} is in {shown.display_unit or "no unit"}; '
                "% is of the first side's mean"
            )
        if unit == "points" and shown.display_unit != "%":
            raise InputError(f'--fail-on "{text}": only shares have points')

        who, phase = owner_and_phase(match)
        return cls(text, shown, who, phase, relation, bound, unit == "%")

    def expected(self, one: Difference) -> Expectation:
        """Return the expectation that a change meets the bound."""
        size = one.change.value
        if size is not None and not self.percent:
            size *= self.measure.factor
        elif size and not one.first.value:
            size = math.copysign(math.inf, size)
        elif size and one.first.value:
            size *= 100 / abs(one.first.value)
        unit = "%" if self.percent else self.measure.display_unit
        words = "second minus first"
        return expect(
            Estimate(size, None, None, one.change.n, unit, words), self.relation, self.bound
        )

    def broken_by(self, differences: Iterable[Difference]) -> list[Difference]:
        """Return the differences that are beyond the bound, or unknown as values are missing.

        Insignificant differences are left out, and differences between sides with failed runs.

        Raises
        ------
        InputError
            When no difference matches the measure, flow and phase of the bound.
        """
        meant = [
            one
            for one in differences
            if one.measure.name == self.measure.name
            and self.who in ("", one.place.get("flow"), one.place.get("link"))
            and self.phase in ("", one.place.get("phase"))
        ]
        if not meant:
            quotes = f"; {QUOTED}" if " in " in self.text else ""
            raise InputError(f'--fail-on "{self.text}": no such value was compared{quotes}')
        return [
            one
            for one in meant
            if any(one.unfinished)
            or (
                not one.incomplete
                and one.resolved is not False
                and (one.change.value is None or self.expected(one).holds is False)
            )
        ]
