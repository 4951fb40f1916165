"""What is asked of every run: a measure of a flow in a phase, as one number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from jostle.errors import InputError, name_source, unknown
from jostle.results.finished import OVERALL
from jostle.results.measures import Measure, measure
from jostle.results.samples import samples

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import Plan

__all__ = ["Quantity", "parse_quantity"]

_FORM: Final = re.compile(
    r"\s*(?P<measure>[a-z][a-z0-9_]*)"
    r"(?:\s+of\s+(?P<who>\S(?:.*?\S)?))?(?:\s+in\s+(?P<phase>\S(?:.*?\S)?))?\s*"
)
_EXAMPLE: Final = '"jain in steady" or "share of newcomer in steady"'


@dataclass(frozen=True)
class Quantity:
    """A number of every run, in the unit that people read.

    Attributes
    ----------
    text
        As it was written.
    measure
        What it is.
    who
        Flow, group or link; empty where a run has one alone, or for measures of a run.
    phase
        When.
    """

    text: str
    measure: Measure
    who: str
    phase: str

    @property
    def axis(self) -> str:
        """Its name for an axis, with the unit."""
        who = f" of {self.who}" if self.who else ""
        unit = f" ({self.measure.reads})" if self.measure.reads else ""
        return f"{self.measure.heading}{who}{unit}"

    def check(self, plan: Plan) -> None:
        """See that runs will have it, before any is carried out.

        Raises
        ------
        InputError
            When there is no such phase or flow, or several flows and none is named.
        """
        with name_source(plan.source):
            self._check(plan)

    def _check(self, plan: Plan) -> None:
        spec = plan.runs[0].spec
        phases = [phase["name"] for phase in spec["phases"]]
        if self.phase not in phases:
            raise InputError(f'"{self.text}": {unknown("phase", self.phase, phases)}')
        if self.measure.scope not in ("flow", "group", "link"):
            return
        key: Literal["links", "flows"] = "links" if self.measure.scope == "link" else "flows"
        rows = spec[key]
        names: dict[str, None] = {}
        # A count may be 0 in the first condition.
        every = [planned.spec for planned in plan.one_of_each()] if self.who else [spec]
        for row in (row for one in every for row in one[key]):
            names |= dict.fromkeys((str(row["name"]), re.sub(r"-\d+$", "", str(row["name"]))))
        if self.who and self.who not in names:
            what = "link" if self.measure.scope == "link" else "flow"
            raise InputError(f'"{self.text}": {unknown(what, self.who, names)}')
        if not self.who and len(rows) > 1:
            example = f"{self.measure.name} of {next(iter(names))}"
            raise InputError(f'"{self.text}": say of which, as in "{example}"')

    def per_condition(self, results: ResultSet) -> list[tuple[float | None, ...]]:
        """Take it from the runs of each condition, in the order of seeds; None without a value."""
        found: list[tuple[float | None, ...]] = [()] * len(results.conditions)
        if not results.results:
            return found
        for sample in samples(results, self.measure, [self.phase]):
            name = sample.place.get(self.measure.scope, "")
            if self.who in ("", name, sample.group):
                factor = self.measure.factor
                found[sample.condition] = tuple(
                    None if value is None else value * factor for value in sample.values
                )
        return found


def parse_quantity(text: str, *, conditions: bool = False) -> Quantity:
    """Read `MEASURE [of NAME] [in PHASE]`; with `conditions` also measures of two conditions.

    Raises
    ------
    InputError
        When it is something else, or there is no such measure.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f'"{text}": write it as {_EXAMPLE}')
    wanted = measure(match["measure"])
    if not wanted.tabled or (wanted.place == "conditions" and not conditions):
        raise InputError(wanted.elsewhere)
    return Quantity(text, wanted, match["who"] or "", match["phase"] or OVERALL)


def means(values: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Mean of each condition's runs that have a value; None where none has."""
    found: list[float | None] = []
    for runs in values:
        there = [value for value in runs if value is not None]
        found.append(sum(there) / len(there) if there else None)
    return found
