"""Comparison of two sets of results: versions, backends, stores or conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from jostle.errors import FailedRunsError, InputError
from jostle.results.compared_phase import OVERALL
from jostle.results.condition_names import short_names
from jostle.results.frames import table
from jostle.results.measure_samples import OWN_KEYS, MeasureSample, find_key, grid_keys, samples
from jostle.results.measures import Measure, measure
from jostle.results.number_format import count, decimals, plain, signed, with_interval
from jostle.results.tables import applicable_measures
from jostle.results.text_table import Table
from jostle.stats import Estimate, difference, holm, mann_whitney, welch_test

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.finished_runs import FinishedRuns


Test = Literal["welch", "mann-whitney"]
"""Welch's t test compares means with unequal variances, Mann and Whitney's U test ranks."""
_LEVEL: Final = 0.05
"""A difference with an adjusted p-value below this level is statistically significant."""
_TESTS: Final = {"welch": "Welch's t test", "mann-whitney": "Mann and Whitney's U test"}

Side = TypeVar("Side", bound="FinishedRuns")
FirstSide = TypeVar("FirstSide", bound="FinishedRuns")
SecondSide = TypeVar("SecondSide", bound="FinishedRuns")


@dataclass(frozen=True)
class Difference:
    """A measure of the same flow, link or run on both sides.

    Attributes
    ----------
    measure
        The measure.
    place
        Keys and values that both sides have.
    first, second
        Mean over the runs of each side, with its own 95 % interval.
    change
        Second mean minus first mean, with Welch's 95 % interval of this difference alone. Neither
        interval takes into account how many differences are compared.
    p
        Two-tailed p-value of the comparison's test; None if a side has fewer than two runs or
        no side varies.
    corrected
        p-value adjusted for all tests of the comparison (Holm). It alone decides whether the
        change is significant: in the mark, in the count and for `FailCondition`.
    unfinished
        For each side, how many of its runs or flows did not finish or have no value, so that its
        mean is of the others; empty if none, or if runs failed.
    """

    measure: Measure
    place: dict[str, str]
    first: Estimate
    second: Estimate
    change: Estimate
    p: float | None
    corrected: float | None = None
    unfinished: tuple[str, str] = ("", "")

    @property
    def incomplete(self) -> bool:
        """Whether a side lacks runs, so that no difference is called significant.

        They failed, or the measure has no value in them.
        """
        return bool(self.first.incomplete or self.second.incomplete or any(self.unfinished))

    @property
    def is_paired(self) -> bool:
        """Whether runs of both sides have a value."""
        return bool(self.first.n and self.second.n)

    @cached_property
    def relative(self) -> float | None:
        """Change divided by the first mean; None if a side has no value.

        Also None if the first mean is printed as 0 or the means have opposite signs, because a
        percentage of such a change says nothing about its size.
        """
        first, second = self.first.value, self.second.value
        if self.change.value is None or not first:
            return None
        places = decimals((self.first, self.second), self.measure)
        is_zero = round(first * self.measure.factor, places) == 0.0
        if is_zero or (second is not None and first * second < 0.0):
            return None
        return self.change.value / abs(first)

    @property
    def resolved(self) -> bool | None:
        """Whether the change is statistically significant; None if that is unknown.

        That is so without a test, and if a side lacks runs (see `incomplete`).
        """
        return None if self.incomplete or self.corrected is None else self.corrected < _LEVEL

    @property
    def where(self) -> str:
        """Flow or link, condition and phase, as text."""
        return self._words(self.place)

    @property
    def flow_and_condition(self) -> str:
        """Flow or group, and condition, as text."""
        keys = [key for key in self.place if key != "phase"]
        return self._words(sorted(keys, key=lambda key: key not in ("flow", "group")))

    def _words(self, keys: Iterable[str]) -> str:
        names = short_names([*dict.fromkeys((*self.place, *OWN_KEYS))])
        words = [
            self.place[key]
            if key in ("flow", "group", "link", "phase")
            else f"{names[key]} {self.place[key]}"
            for key in keys
        ]
        return ", ".join(words)

    def __lt__(self, other: Difference) -> bool:
        return self._rank < other._rank

    @cached_property
    def _rank(self) -> tuple[bool, float]:
        """Sort key: significant differences first, then by decreasing size."""
        changed = abs(self.change.value or 0.0)
        size = abs(self.relative) if self.relative is not None else (float("inf") if changed else 0)
        unknown = self.resolved is None and not self.incomplete
        return (not (self.resolved or (unknown and changed > 0)), -size)


@dataclass(frozen=True)
class ComparisonResult:
    """The differences between two sets of results.

    Attributes
    ----------
    names
        Names of the two sides.
    differences
        Significant differences first, then by decreasing size.
    alone
        Sentences about values of one side only, and about settings that differ between the sides.
    one_sided
        Values that no run of one side has.
    test
        Test that decides which differences are significant.
    """

    names: tuple[str, str]
    differences: tuple[Difference, ...]
    alone: tuple[str, ...] = ()
    test: Test = "welch"
    one_sided: tuple[Difference, ...] = ()

    @property
    def resolved(self) -> int:
        """Number of statistically significant differences."""
        return sum(bool(one.resolved) for one in self.differences)

    @property
    def is_deterministic(self) -> bool:
        """Whether several runs on both sides have the same values, so that there is no test."""
        return all(
            one.p is None and not one.incomplete and min(one.first.n, one.second.n) > 1
            for one in self.differences
        )

    def frame(self) -> pl.DataFrame:
        """Return all differences, unrounded, one per row."""
        keys = list(dict.fromkeys(key for one in self.differences for key in one.place))
        rows = [_row(one, keys) for one in self.differences]
        columns = [*keys, "measure", "unit", *_NUMBERS, *_RUNS]
        return table(rows, columns, _NUMBERS)


_NUMBERS: Final = (
    "first", "first_low", "first_high", "second", "second_low", "second_high",
    "difference", "low", "high", "relative", "p", "p_corrected",
)  # fmt: skip


_RUNS: Final = ("n_first", "n_second", "incomplete_first", "incomplete_second")


def _row(one: Difference, keys: Sequence[str]) -> dict[str, Any]:
    return {
        **{key: one.place.get(key) for key in keys},
        "measure": one.measure.name,
        "unit": one.measure.unit,
        **one.first.columns("first", "first_"),
        **one.second.columns("second", "second_"),
        **one.change.columns("difference"),
        "relative": one.relative,
        "p": one.p,
        "p_corrected": one.corrected,
        "n_first": one.first.n,
        "n_second": one.second.n,
        "incomplete_first": one.first.incomplete or one.unfinished[0] or None,
        "incomplete_second": one.second.incomplete or one.unfinished[1] or None,
    }


def compare(
    first: FinishedRuns,
    second: FinishedRuns,
    columns: Sequence[str] = (),
    phases: Sequence[str] = (),
    *,
    names: tuple[str, str] = ("A", "B"),
    each: bool = False,
    test: Test = "welch",
    extra: Sequence[str] = (),
) -> ComparisonResult:
    """Compare every measure of one side with the same measure of the other side.

    The runs of the sides are independent samples. They may differ in number and seeds.

    Parameters
    ----------
    first, second
        The two sides. Values are compared if conditions, flows (or links) and phases have the same
        names. Controllers of a flow may differ. A grid key may differ if each side has at most one
        value of it, and the name of a flow may differ if each side has one flow.
    columns
        Names of measures; if empty, the measures that suit the flows.
    phases
        Names of phases; the complete run if empty.
    names
        Names of the two sides.
    each
        Whether each flow of an entry with `count` is compared separately.
    test
        `welch` compares means; `mann-whitney` compares ranks, for distributions with outliers or
        far from normal.
    extra
        Names of further measures, in addition to `columns` or the measures that suit the flows.

    Raises
    ------
    InputError
        When a measure or a phase is not known, or the sides have nothing in common.
    """
    failed = _failure_notes(first, second, names)
    first, second, differs = _matched(first, second, names)
    same_flow = _same_flow(first, second)
    differs += [f"The flow is called {one} in {names[0]} and {other} in {names[1]}."
                for other, one in same_flow.items()]  # fmt: skip
    wanted = [measure(name) for name in columns] or applicable_measures(first)
    wanted = list(dict.fromkeys((*wanted, *map(measure, extra))))
    asked = tuple(phases) or (OVERALL,)
    found, alone = _differences(first, second, wanted, asked, each=each, test=test)
    found = [one for one in found if one.first.n or one.second.n]
    # A value that one side does not have is no change, unless the side lacks runs.
    pairs = [one for one in found if one.incomplete or one.is_paired]
    one_sided = tuple(one for one in found if not (one.incomplete or one.is_paired))
    alone[0] += sum(not one.second.n for one in one_sided)
    alone[1] += sum(not one.first.n for one in one_sided)
    if found and not pairs:
        title = found[0].measure.title
        raise InputError(f"{names[0]} and {names[1]} never both have a value of the {title}")
    if not pairs:
        text = f"{names[0]} and {names[1]} have no condition and flow in common"
        if failed:
            raise FailedRunsError(f"{text}; {'; '.join(failed)}")
        raise InputError(text)
    adjusted = iter(holm([one.p for one in pairs if one.p is not None]))
    corrected = [one if one.p is None else replace(one, corrected=next(adjusted)) for one in pairs]
    left_out = [f"{name} alone has {count(n, 'value')}."
                for name, n in zip(names, alone, strict=True) if n]  # fmt: skip
    notes = (*differs, *left_out, *failed, *_unfinished_notes(corrected, names))
    return ComparisonResult(names, tuple(sorted(corrected)), notes, test, one_sided)


def _differences(
    first: FinishedRuns,
    second: FinishedRuns,
    wanted: Sequence[Measure],
    phases: Sequence[str],
    *,
    each: bool,
    test: Test,
) -> tuple[list[Difference], list[int]]:
    """Return the differences of values with equal places, and the number of others per side."""
    found, alone = [], [0, 0]
    same_flow = _same_flow(first, second)
    for shown in wanted:
        left, right = (
            _samples_by_keys(side, shown, phases, called, each=each)
            for side, called in ((first, {}), (second, same_flow))
        )
        alone[0] += len(left.keys() - right.keys())
        alone[1] += len(right.keys() - left.keys())
        found += [_difference(shown, one, right[place], test) for place, one in left.items()
                  if place in right]  # fmt: skip
    return found, alone


def _samples_by_keys(
    side: FinishedRuns,
    shown: Measure,
    phases: Sequence[str],
    called: Mapping[str, str],
    *,
    each: bool,
) -> dict[tuple[tuple[str, str], ...], MeasureSample]:
    """Return the samples of a measure by condition, flow or link, and phase."""
    found = samples(side, shown, phases, each=each)
    # In one run of one flow they are its completion.
    return {_comparable_keys(one, called): one for one in found
            if not (one.single and shown.percent)}  # fmt: skip


def _unfinished_notes(found: Sequence[Difference], names: tuple[str, str]) -> list[str]:
    """Say which flows of which side did not finish, so that no verdict is on their values."""
    said = dict.fromkeys(
        f"{name}: {text} ({one.flow_and_condition or one.measure.title}); their means are of the "
        "others, without a verdict."
        for one in found
        for name, text in zip(names, one.unfinished, strict=True)
        if text
    )
    return list(said)


def _failure_notes(
    first: FinishedRuns, second: FinishedRuns, names: tuple[str, str]
) -> tuple[str, ...]:
    """Return remarks on failed runs of both sides; raise an error if no run of a side finished."""
    sides = tuple(zip(names, (first, second), strict=True))
    for name, side in sides:
        if side.failures and not side.results:
            raise side.unfinished_error(f"{name}: ")
    return tuple(
        f"{name}: {note}; no verdict on the remaining runs."
        for name, side in sides
        for note in side.failure_notes
    )


def _matched(
    first: FirstSide, second: SecondSide, names: tuple[str, str]
) -> tuple[FirstSide, SecondSide, list[str]]:
    """Remove grid keys that differ between the sides, and describe these differences."""
    said = []
    for key in dict.fromkeys((*grid_keys(first), *grid_keys(second))):
        values = [
            list(dict.fromkeys(c[key] for c in side.conditions if key in c))
            for side in (first, second)
        ]
        if max(map(len, values)) < 2 and values[0] != values[1]:
            first, second = _without(first, key), _without(second, key)
            told = (f"{name} has {one[0] if one else 'no value'}"
                    for name, one in zip(names, values, strict=True))  # fmt: skip
            said.append(f"Of {key} {', '.join(told)}.")
    return first, second, said


def _same_flow(first: FinishedRuns, second: FinishedRuns) -> dict[str, str]:
    """Return second flow name → first flow name, if each side has a single flow."""
    names = [
        {name for index in range(len(side.conditions)) for name in side.flow_names(index)}
        for side in (first, second)
    ]
    if any(len(one) != 1 for one in names) or names[0] == names[1]:
        return {}
    return {names[1].pop(): names[0].pop()}


def _comparable_keys(
    sample: MeasureSample, called: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (key, called.get(value, value) if key in ("flow", "group") else value)
        for key, value in sample.place.items()
        if key != "controller"
    )


def _difference(
    shown: Measure, left: MeasureSample, right: MeasureSample, test: Test
) -> Difference:
    first, second = left.mean(), right.mean()
    made = welch_test if test == "welch" else mann_whitney
    failed = bool(left.incomplete or right.incomplete)
    unfinished = ("", "") if failed else (_lacking(left), _lacking(right))
    judged = not (failed or any(unfinished))
    found = made(right.values, left.values) if judged else None
    return Difference(
        shown,
        dict(_comparable_keys(left, {})),
        first,
        second,
        difference(right.values, left.values, shown.unit),
        None if found is None else found.p,
        unfinished=unfinished,
    )


def _lacking(one: MeasureSample) -> str:
    """Return how many runs or flows did not finish, or lack a value that other runs have."""
    absent = one.values.count(None)
    if one.unfinished or absent in (0, len(one.values)):
        return one.unfinished
    return f"{absent} of {count(len(one.values), 'run')} have no value"


def between(results: Side, key: str, values: tuple[str, str]) -> tuple[Side, Side]:
    """Return the conditions with the first value of a key, and those with the second.

    Raises
    ------
    InputError
        When there is no such key or value.
    """
    name = find_key(results.conditions, key, ())
    first, second = (_without(results.where({name: value}), name) for value in values)
    return first, second


def _without(results: Side, key: str) -> Side:
    return type(results)(
        results.title,
        results.backend,
        results.backend_version,
        conditions=[{k: v for k, v in c.items() if k != key} for c in results.conditions],
        results=results.results,
        failures=results.failures,
    )


def comparison_table(compared: ComparisonResult, limit: int, width: int | None) -> Table:
    """Return a table of the `limit` largest differences, or of all if `limit` is 0."""
    changed = [one for one in compared.differences if one.change.value != 0.0]
    shown = changed[:limit] if limit else changed
    header = ("measure", "where", *compared.names, "difference", "adjusted p")
    rows = [
        (_title(one.measure), one.where, *_sides(one), _change(one), _p(one.corrected))
        for one in shown
    ]
    same = len(compared.differences) - len(changed)
    notes = [f"{count(same, 'value')} the same on both sides."] if same else []
    if len(changed) > len(shown):
        more = count(len(changed) - len(shown), "smaller difference")
        notes.append(f"… {more}: --max-rows 0 shows all")
    notes += compared.alone
    wide = sum(max(map(len, column)) + 2 for column in zip(header, *rows, strict=True))
    if width is None or wide - 2 <= width:
        return Table(header, tuple(rows), (), 2, notes=tuple(notes))
    # The table is too wide: print measure and place as headings above the rows.
    return Table(
        header[2:],
        tuple(row[2:] for row in rows),
        tuple(range(len(rows))),
        0,
        sections=tuple(f"{row[0]}: {row[1]}" for row in rows),
        notes=tuple(notes),
    )


def _title(shown: Measure) -> str:
    return f"{shown.title} ({shown.display_unit})" if shown.display_unit else shown.title


def _sides(one: Difference) -> tuple[str, str]:
    places = decimals((one.first, one.second), one.measure)
    first, second = (
        with_interval(side, one.measure.factor, places) for side in (one.first, one.second)
    )
    return first, second


def _change(one: Difference) -> str:
    """Format a change relative to the first mean, or in the measure's unit if that mean is 0."""
    if one.change.value is None:
        return plain(None, 1.0, 0)
    sure = "" if one.resolved or one.resolved is None else " ?"
    sure = f" ({_lacks(one)})" if one.incomplete else sure
    if one.relative is None:
        places = decimals((one.second,), one.measure)
        return signed(one.change.value * one.measure.factor, places) + sure
    return f"{signed(100 * one.relative, 1)} %{sure}"


def _lacks(one: Difference) -> str:
    return "not judged" if any(one.unfinished) else "runs failed"


def _p(p: float | None) -> str:
    if p is None:
        return plain(None, 1.0, 0)
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def comparison_note(compared: ComparisonResult) -> str:
    """Return a note that explains the table."""
    tested = sum(one.p is not None for one in compared.differences)
    minus = f"{compared.names[1]} minus {compared.names[0]}"
    if all(one.incomplete for one in compared.differences):
        unfinished = any(any(one.unfinished) for one in compared.differences)
        why = "flows did not finish or runs have no value" if unfinished else "runs failed"
        return f"{minus}. Not tested, because {why}."
    if not tested and compared.is_deterministic:
        return f"{minus}. Nothing is random: no test is possible; give the flows start_jitter."
    if not tested:
        return (
            f"{minus}. One run on a side, or nothing random: no test is possible; give --repeats."
        )
    others = len(compared.differences) - tested
    marked = " ? marks the others." if compared.resolved < tested else ""
    untested = f" {count(others, 'value')} without variation or repeats had no test." * bool(others)
    return (
        f"{minus}, of runs that are not paired. {compared.resolved} of {tested} tested differences "
        f"are statistically significant: adjusted p below {_LEVEL:g} "
        f"({_TESTS[compared.test]}, Holm's adjustment for {count(tested, 'test')})."
        f"{marked}{untested} The intervals are 95 % confidence intervals of each mean by itself, "
        "not adjusted."
    )
