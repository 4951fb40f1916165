"""Repeats where they are needed: how often each condition is still to be run.

The rule looks at a condition's own runs alone, and at all of those that it asked for, so that runs
are the same whatever the number of jobs, wherever they are carried out and however often that
is interrupted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError, name_source, unknown
from jostle.results.cells import whose
from jostle.results.finished import OVERALL
from jostle.results.measures import Measure, measure
from jostle.results.samples import Sample, samples
from jostle.stats import estimate

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import Plan
    from jostle.scenario.until import Until

__all__ = ["check", "more_repeats", "unsettled"]

_BASE: Final = {
    "time": ("s", 1e9),
    "rate": ("bit/s", 1.0),
    "size": ("B", 1.0),
    "number": ("1", 1.0),
}
"""Unit of measures, and how many of the base units of a scenario it has, by kind."""


def check(plan: Plan) -> None:
    """See that the rule of a plan can be followed, before anything runs.

    Raises
    ------
    InputError
        When there is no such measure, flow or link, or the measure's unit is another one.
    """
    until = plan.until
    if until is None:
        return
    with name_source(until.place):
        wanted = measure(until.measure)
    if not wanted.tabled or wanted.place == "conditions":
        raise InputError(f"{until.place}: {wanted.elsewhere}")
    if until.kind != "percent" and _BASE[until.kind][0] != wanted.unit:
        raise InputError(
            f'{until.place}: `{wanted.name}` is in {wanted.unit}, and "{until.text}" bounds it in '
            "another unit — write a percentage of the mean"
        )
    known = {
        place.get(wanted.scope, "")
        for planned in (plan.one_of_each() if until.who else ())
        for place, _ in whose(wanted, planned.spec, each=False)
    }
    if until.who and until.who not in known:
        names = sorted(name for name in known if name)
        raise InputError(f"{until.place}: {unknown(wanted.scope, until.who, names)}")


def more_repeats(plan: Plan, results: ResultSet) -> dict[int, int]:
    """Say how many runs each condition shall have whose interval is too wide, by position.

    The next number is what the present deviation asks for, twice the present one at most; a
    condition in which a run failed has no more.
    """
    until = plan.until
    if until is None:
        return {}
    failed = {failure.condition for failure in results.failures}
    wanted: dict[int, int] = {}
    for at, found in _by_condition(until, results).items():
        have = plan.repeats_of(at)
        ratio = max((_ratio(sample, until) for sample in found), default=0.0)
        if ratio <= 1.0 or at in failed or have >= plan.most_repeats:
            continue
        asked = math.ceil(have * min(ratio, 2.0) ** 2)
        wanted[at] = min(max(asked, have + 1), 2 * have, plan.most_repeats)
    return wanted


def unsettled(plan: Plan, results: ResultSet) -> tuple[str, ...]:
    """Say in which conditions the interval is still too wide, if in any."""
    until = plan.until
    if until is None:
        return ()
    wide = [
        at
        for at, found in _by_condition(until, results).items()
        if any(_ratio(sample, until) > 1.0 for sample in found)
    ]
    if not wide:
        return ()
    labels = [results.labels[at] for at in wide[:3] if results.labels[at]]
    which = f" ({'; '.join(labels)}{' …' if len(wide) > len(labels) else ''})" if labels else ""
    are = "condition is" if len(wide) == 1 else "conditions are"
    return (
        f'{len(wide)} {are} still wider than "{until.text}" after {plan.most_repeats} runs{which}; '
        "raise most_repeats",
    )


def _by_condition(until: Until, results: ResultSet) -> dict[int, list[Sample]]:
    if not results.results:
        return {}
    wanted: Measure = measure(until.measure)
    with name_source(until.place):
        found = samples(results, wanted, [until.phase or OVERALL])
    if until.who:
        found = [s for s in found if until.who in (s.place.get(wanted.scope, ""), s.group)]
    by_condition: dict[int, list[Sample]] = {}
    for sample in found:
        by_condition.setdefault(sample.condition, []).append(sample)
    return by_condition


def _ratio(sample: Sample, until: Until) -> float:
    """Half of the interval in parts of what it may be; 0 where nothing has a value."""
    # Not cut at the measure's bounds, where it would seem narrow.
    found = estimate(sample.values, sample.measure.unit)
    if found.value is None or found.high is None:
        return 0.0 if found.value is None else math.inf
    half = found.high - found.value
    allowed = (
        until.half * abs(found.value)
        if until.kind == "percent"
        else until.half / _BASE[until.kind][1]
    )
    if half <= 0.0:
        return 0.0
    return half / allowed if allowed > 0 else math.inf
