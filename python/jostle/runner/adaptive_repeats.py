"""Adaptive repeats: the number of further runs that each condition needs.

The decision for a condition depends only on its own runs, and on all of them. So the runs are
independent of the number of jobs, of the executor and of interruptions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError, name_source, unknown
from jostle.results.compared_phase import OVERALL
from jostle.results.measure_samples import MeasureSample, samples
from jostle.results.measures import Measure, measure
from jostle.results.number_format import count
from jostle.results.summary_values import measure_owners
from jostle.stats import estimate

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan
    from jostle.scenario.stopping_rule import Until

__all__ = ["check", "more_repeats", "unsettled"]

_BASE: Final = {
    "time": ("s", 1e9),
    "rate": ("bit/s", 1.0),
    "size": ("B", 1.0),
    "number": ("1", 1.0),
}
"""Units of measures and their factors to the base units of a scenario, by kind."""


def check(plan: RunPlan) -> None:
    """Check that the stopping rule of a plan can be followed, before anything runs.

    Raises
    ------
    InputError
        If there is no such measure, flow or link, or the measure has another unit.
    """
    until = plan.repeat_until
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
        for planned in (plan.first_run_of_each_condition() if until.who else ())
        for place, _ in measure_owners(wanted, planned.spec, each=False)
    }
    if until.who and until.who not in known:
        names = sorted(name for name in known if name)
        raise InputError(f"{until.place}: {unknown(wanted.scope, until.who, names)}")


def more_repeats(plan: RunPlan, results: ResultSet) -> dict[int, int]:
    """Return the new number of runs of each condition whose interval is too wide, by position.

    It is estimated from the present standard deviation, and is at most twice the present number. A
    condition with a failed run gets no more runs.
    """
    until = plan.repeat_until
    if until is None:
        return {}
    failed = {failure.condition for failure in results.failures}
    wanted: dict[int, int] = {}
    for at, found in _by_condition(until, results).items():
        have = plan.repeats_of(at)
        ratio = max((_ratio(sample, until) for sample in found), default=0.0)
        if ratio <= 1.0 or at in failed or have >= plan.max_repeats:
            continue
        asked = math.ceil(have * min(ratio, 2.0) ** 2)
        wanted[at] = min(max(asked, have + 1), 2 * have, plan.max_repeats)
    return wanted


def unsettled(plan: RunPlan, results: ResultSet) -> tuple[str, ...]:
    """Return remarks on conditions whose interval is still too wide, and on failed runs, if any."""
    until = plan.repeat_until
    if until is None:
        return ()
    failed = {failure.condition for failure in results.failures}
    by_condition = _by_condition(until, results)
    told = _not_repeated(until, len(failed))
    without = [
        at
        for at in range(len(results.conditions))
        if results.runs_of(at) and not _has_value(by_condition.get(at, ()))
    ]
    if without:
        which = count(len(without), "condition")
        told = (f'{which} without a value for "{until.text}" got no more repeats', *told)
    wide = [
        at
        for at, found in by_condition.items()
        if at not in failed and any(_ratio(sample, until) > 1.0 for sample in found)
    ]
    if not wide:
        return told
    labels = [results.labels[at] for at in wide[:3] if results.labels[at]]
    which = f" ({'; '.join(labels)}{' …' if len(wide) > len(labels) else ''})" if labels else ""
    are = "condition is" if len(wide) == 1 else "conditions are"
    return (
        f'{len(wide)} {are} still wider than "{until.text}" after {plan.max_repeats} runs{which}; '
        "raise max_repeats",
        *told,
    )


def _has_value(found: Sequence[MeasureSample]) -> bool:
    return any(value is not None for sample in found for value in sample.values)


def _not_repeated(until: Until, failed: int) -> tuple[str, ...]:
    if not failed:
        return ()
    which = f"{count(failed, 'condition')} with failed runs"
    return (f'{which} got no more repeats, and may be wider than "{until.text}"',)


def _by_condition(until: Until, results: ResultSet) -> dict[int, list[MeasureSample]]:
    if not results.results:
        return {}
    wanted: Measure = measure(until.measure)
    with name_source(until.place):
        found = samples(results, wanted, [until.phase or OVERALL])
    if until.who:
        found = [s for s in found if until.who in (s.place.get(wanted.scope, ""), s.group)]
    by_condition: dict[int, list[MeasureSample]] = {}
    for sample in found:
        by_condition.setdefault(sample.condition, []).append(sample)
    return by_condition


def _ratio(sample: MeasureSample, until: Until) -> float:
    """Return half of the interval relative to its permitted size; 0 without values."""
    # Without the measure's bounds, which would make the interval seem narrower.
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
