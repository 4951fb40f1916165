"""Captions of plots: how many runs there are, of which time, and how many values are missing."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.results.compared_phase import OVERALL
from jostle.results.measure_samples import MeasureSample
from jostle.results.number_format import count


def interval_caption(found: Sequence[MeasureSample], every: Sequence[MeasureSample]) -> str:
    """Name the runs of points with intervals; `every` has those that could not be drawn, too."""
    runs = {len(sample.values) for sample in found}
    what = "One run for each point" if runs == {1} else f"Mean and 95 % interval of {_runs(runs)}"
    return f"{what}{_window(found)}.{per_flow(found)}{_drawn(every)}"


def per_flow(found: Sequence[MeasureSample]) -> str:
    """Say that a value is a mean per flow, if it is of several flows of a `count`."""
    several = any(len(run) > 1 for sample in found for run in sample.flows)
    return " Of flows of one `count`: mean per flow." if several else ""


def runs_caption(
    found: Sequence[MeasureSample], every: Sequence[MeasureSample], *, rest: str = "the others"
) -> str:
    """Name the runs of values; `every` has those that could not be drawn, too.

    `rest` names the values that are missing, with what the figure does with them.
    """
    runs = {len(sample.values) for sample in found}
    return f"{_runs(runs).capitalize()} of each condition{_window(found)}.{_drawn(every, rest)}"


def _window(found: Sequence[MeasureSample]) -> str:
    """Name the phase of the values, unless several phases are drawn or none applies."""
    phases = {sample.place.get("phase") for sample in found}
    name = phases.pop() if len(phases) == 1 else None
    if name is None:
        return ""
    return ", over the complete run" if name == OVERALL else f", in phase “{name}”"


def _runs(runs: set[int]) -> str:
    low, high = min(runs), max(runs)
    return count(low, "run") if low == high else f"{low} to {high} runs"


def _drawn(every: Sequence[MeasureSample], rest: str = "the others") -> str:
    """Say how many values are drawn, if some are missing, and why."""
    numbers = [_numbers(sample) for sample in every]
    if all(known == total for known, total in numbers):
        return ""
    knowns, totals = ({pair[at] for pair in numbers} for at in (0, 1))
    noun = "flow" if any(sample.is_of_several for sample in every) else "run"
    nouns = noun if totals == {1} else f"{noun}s"
    of = f"{_range(totals)} {nouns}" + " each" * (len(every) > 1)
    unfinished = any(sample.finish is not None and sample.finish.unfinished for sample in every)
    why = "did not finish" if unfinished else "have no value"
    return f" With a value: {_range(knowns)} of {of}; {rest} {why}."


def _numbers(sample: MeasureSample) -> tuple[int, int]:
    """Return the number of values that a sample has, and that it should have."""
    values = [value for run in sample.flows for value in run]
    return len(values) - values.count(None), len(values)


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
