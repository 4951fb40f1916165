"""The runs of a study, and the number that a value has in each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.results.compared_phase import OVERALL
from jostle.results.conformance import Pair, repeatabilities
from jostle.results.measures import Bounds, measure
from jostle.results.run_count import RunCount
from jostle.scenario.parsing.quantities import parse_size, parse_span
from jostle.stats.descriptive import Floats, drop_missing
from jostle.studies.models import EACH_ACK
from jostle.studies.operating_points_archive import BACKEND as KEPT_BACKEND
from jostle.studies.published_values import PublishedValues
from jostle.studies.study import Study
from jostle.studies.time_windows import MeasureArguments, RunView, TimeWindow

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.results.operating_points import OperatingPoints
    from jostle.studies.models import Value
    from jostle.studies.operating_points_archive import ArchivedOperatingPoints

NEVER: Final = {
    "completion_time": "completed",
    "convergence_time": "converged",
    "download_time": "delivered that size",
}
"""Measures that are infinite in a run in which the event, the past participle, never occurred."""
_Key = tuple[frozenset[tuple[str, str]], int]
"""Labels of a condition, and a seed."""


class Runs:
    """Finished runs of a study on one backend.

    Parameters
    ----------
    study
        The study.
    results
        By name of the experiment; experiments that the backend did not run are absent.
    elsewhere
        The same for every backend, by its name, for values that name a backend.
    kept
        Recorded operating points of Linux's flows, for values of Linux if it did not run.
    """

    def __init__(
        self,
        study: Study,
        results: Mapping[str, ResultSet],
        elsewhere: Mapping[str, Mapping[str, ResultSet]] | None = None,
        kept: ArchivedOperatingPoints | None = None,
    ) -> None:
        self.study = study
        self.kept = kept
        self.results = results
        self._elsewhere = elsewhere or {}
        self._views: dict[tuple[str, str, int], list[RunView]] = {}

    @cached_property
    def published(self) -> PublishedValues:
        """Values that the paper publishes."""
        return PublishedValues(self.study)

    def published_spans(self, value: Value, run: RunView) -> Iterator[tuple[float, float, float]]:
        """Yield from and to in s of each time window with a published value, and the value."""
        _, experiment = self.study.experiment_of(value)
        for window, published in self.published.by_window(value).items():
            span = run.span(window, experiment.windows.get(window), value.flow)
            yield span.from_s, span.to_s, published

    def per_run(self, value: Value) -> list[float | None]:
        """Return the number of a value in each run of its conditions.

        Returns
        -------
        list
            In the measure's unit, in the order of conditions and seeds; None for a run in which
            the measure has no value, infinite for one in which its event never occurred (`NEVER`).
            Empty if this backend has no such run.
        """
        if value.measure == "harm":
            lost = self.per_run(value.model_copy(update={"measure": "throughput"}))
            return [None if kept is None else (1 - kept) * measure("harm").factor for kept in lost]
        found = self._values(value)
        if not value.relative_to:
            return [one for _, one in found]
        where = {**value.where, **value.relative_to}
        whole = dict(self._values(value.model_copy(update={"where": where})))
        others = [whole.get(key) for key, _ in found]
        return [
            None if one is None or not other or np.isinf([one, other]).all() else one / other
            for (_, one), other in zip(found, others, strict=True)
        ]

    def possible(self, value: Value) -> list[tuple[float, float]]:
        """Return the smallest and largest possible number in each run.

        Returns
        -------
        list
            Pairs; in a run that ends before an event, the event may come at any later time, and a
            run without a value may have had any. Empty if every run has a value, or none.
        """
        if value.measure not in NEVER:
            return self._with_unknown(value)
        ranges = self._ranges(value)
        if value.relative_to:
            where = {**value.where, **value.relative_to}
            whole = self._ranges(value.model_copy(update={"where": where, "relative_to": {}}))
            ranges = {
                key: (low / whole[key][1], high / whole[key][0] if whole[key][0] else np.inf)
                for key, (low, high) in ranges.items()
                if key in whole and whole[key][1]
            }
        found = list(ranges.values())
        return found if any(low != high for low, high in found) else []

    def _with_unknown(self, value: Value) -> list[tuple[float, float]]:
        """Return the possible numbers of all runs, if some have no value."""
        found = self.per_run(value)
        known = [one for one in found if one is not None]
        if len(known) in (0, len(found)):
            return []
        wanted = measure(value.measure)
        least, most = wanted.display_bounds
        if value.bins_above is not None:
            least, most = 0.0, 100.0
        elif value.relative_to and wanted.name != "harm":
            most = None
        ends = (-np.inf if least is None else least, np.inf if most is None else most)
        return [ends if one is None else (one, one) for one in found]

    def _ranges(self, value: Value) -> dict[_Key, tuple[float, float]]:
        largest, least = self._values(value), self._values(value, least=True)
        return {
            key: (low, high)
            for (key, high), (_, low) in zip(largest, least, strict=True)
            if low is not None and high is not None
        }

    def _values(self, value: Value, *, least: bool = False) -> list[tuple[_Key, float | None]]:
        """Return the number in each run before division; a run and its divisor have equal keys.

        If an event did not occur, it is infinite, or with `least` the time that the run gave it.
        """
        if measure(value.measure).place == "pairs":
            return self._paired(value)
        name, experiment = self.study.experiment_of(value)
        apart = {experiment.keys[key] for key in value.relative_to}
        labels = [
            frozenset((key, label) for key, label in dict(condition).items() if key not in apart)
            for condition in self.study.scenarios[name].conditions
        ]
        return [
            ((labels[condition], run.seed), self._run_value(value, run, span, least=least))
            for condition, run, span in self._runs(value)
        ]

    def _paired(self, value: Value) -> list[tuple[_Key, float | None]]:
        """Compare the n-th run of a value with the n-th run of its reference."""
        name, _ = self.study.experiment_of(value)
        wanted = measure(value.measure)
        found: list[tuple[_Key, float | None]] = []
        for condition in self.study.conditions(value):
            labels = frozenset(dict(self.study.scenarios[name].conditions[condition]).items())
            seeded = self.seeded_points(value, condition)
            ours = [points for _, points in seeded]
            if value.reference is None:
                numbers = repeatabilities(ours)
            else:
                against = self.study.reference_of(value, condition)
                (other,) = self.study.conditions(against)
                theirs = self.points(against, other)
                numbers = [
                    Pair(*pair).value(wanted.name) for pair in zip(ours, theirs, strict=False)
                ]
            found += [
                ((labels, seed), None if number is None else number * wanted.factor)
                for (seed, _), number in zip(seeded, numbers, strict=False)
            ]
        return found

    def points(self, value: Value, condition: int) -> list[OperatingPoints]:
        """Return the operating points of a value's flow in each run of a condition."""
        return [points for _, points in self.seeded_points(value, condition)]

    def seeded_points(self, value: Value, condition: int) -> list[tuple[int, OperatingPoints]]:
        """Return the operating points of a value's flow in each run of a condition, with its seed.

        If the value is of Linux, and Linux did not run, these are the recorded points.
        """
        name, _ = self.study.experiment_of(value)
        phase = "" if value.window == OVERALL else value.window
        there = self.views(name, condition, value.backend)
        if there or self.kept is None or value.backend != KEPT_BACKEND:
            return [(run.seed, run.points(value.flow, phase)) for run in there]
        labels = dict(self.study.scenarios[name].conditions[condition])
        kept = self.kept.of(name, value.flow, phase, labels)
        return [(one.seed, one.points) for one in kept]

    def per_bin(self, value: Value) -> Floats:
        """Return the bins of a value's measure in all of its runs; shape (bins,)."""
        found = [_bins(value, run, span) for _, run, span in self._runs(value)]
        whole: Floats = np.concatenate(found) if found else np.array([])
        return drop_missing(whole)

    def incomplete(self, *values: Value) -> str:
        """Return how many runs of some values finished if any of them failed; else nothing."""
        if not self._any_failed:
            return ""
        counts: dict[tuple[int, int], RunCount] = {}
        for value in (other for one in values for other in self._related(one)):
            name, _ = self.study.experiment_of(value)
            results = self._done(value.backend).get(name)
            if results is None:
                continue
            for condition in self.study.conditions(value):
                at = self._position(results, (name, condition))
                counts[id(results), at] = results.run_count(at)
        return RunCount.sum_of(counts.values()).incomplete

    def _done(self, backend: str) -> Mapping[str, ResultSet]:
        """Return the results of a backend, or of this one, by name of the experiment."""
        return self._elsewhere.get(backend, {}) if backend else self.results

    @cached_property
    def _any_failed(self) -> bool:
        every = (self.results, *self._elsewhere.values())
        return any(results.failures for done in every for results in done.values())

    def _related(self, value: Value) -> Iterator[Value]:
        """Yield a value and the values by which it is divided or with which it is compared."""
        yield value
        if value.relative_to:
            where = {**value.where, **value.relative_to}
            yield value.model_copy(update={"where": where, "relative_to": {}})
        if value.reference is not None:
            for condition in self.study.conditions(value):
                yield self.study.reference_of(value, condition)

    def bounds(self, value: Value) -> Bounds:
        """Return the smallest and largest possible value, in the measure's own unit."""
        wanted = measure(value.measure)
        specs = (run.spec for _, run, _ in self._runs(value))
        every = [wanted.bounds_in(spec) for spec in specs] if wanted.name == "jain" else []
        return min(every, default=wanted.bounds)

    def summary(self, value: Value) -> list[float]:
        """Return the sample that is summarised, without runs that have no value.

        For `share`, a run within the limits is 100 and another one 0, so that the mean is a
        percentage.
        """
        there = [one for one in self.per_run(value) if one is not None]
        if value.summary != "share":
            return there
        low = -np.inf if value.above is None else value.above
        high = np.inf if value.below is None else value.below
        return [100.0 if low <= one <= high else 0.0 for one in there]

    def are_of_same_runs(self, left: Value, right: Value) -> bool:
        """Return whether two values are of the same runs, each of which has both of them."""
        sides = [
            (value.backend, self.study.experiment_of(value)[0], self.study.conditions(value))
            for value in (left, right)
        ]
        return sides[0] == sides[1] and not any(
            one is None for value in (left, right) for one in self.per_run(value)
        )

    def representative(self, value: Value) -> RunView | None:
        """Return the run with the median value (the upper of two); None without runs."""
        found = [
            (one, at, run)
            for at, (_, run, span) in enumerate(self._runs(value))
            if (one := self._run_value(value, run, span)) is not None
        ]
        return sorted(found)[len(found) // 2][-1] if found else None

    def _runs(self, value: Value) -> Iterator[tuple[int, RunView, TimeWindow]]:
        name, experiment = self.study.experiment_of(value)
        window = experiment.windows.get(value.window)
        for condition in self.study.conditions(value):
            for run in self.views(name, condition, value.backend):
                yield condition, run, run.span(value.window, window, value.flow)

    def views(self, experiment: str, condition: int, backend: str = "") -> Sequence[RunView]:
        """Return the runs of a condition on a backend; empty if it ran none."""
        key = (backend, experiment, condition)
        if key not in self._views:
            results = self._done(backend).get(experiment)
            self._views[key] = [] if results is None else [
                RunView(one.run) for one in results.runs_of(self._position(results, key[1:]))
            ]  # fmt: skip
        return self._views[key]

    def position(self, experiment: str, condition: int) -> int:
        """Return the position of a study's condition in the results; −1 if it was not run."""
        return self._position(self.results[experiment], (experiment, condition))

    def _position(self, results: ResultSet, place: tuple[str, int]) -> int:
        # The results may have fewer conditions than the study.
        experiment, condition = place
        labels = dict(self.study.scenarios[experiment].conditions[condition])
        return next((at for at, one in enumerate(results.conditions) if one == labels), -1)

    def _run_value(
        self, value: Value, run: RunView, span: TimeWindow, *, least: bool = False
    ) -> float | None:
        members = run.members(value.flow) if measure(value.measure).scope == "flow" else ()
        found = [
            self._flow_value(value.model_copy(update={"flow": name}), run, span)
            for name in members or (value.flow,)
        ]
        if value.measure in NEVER:
            names = members or (value.flow,)
            found = [
                one if one is not None else run.censoring_time_s(value.measure, name, span) if least
                else np.inf
                for name, one in zip(names, found, strict=True)
            ]  # fmt: skip
        there = [one for one in found if one is not None]
        return sum(there) / len(there) if there else None

    def _flow_value(self, value: Value, run: RunView, span: TimeWindow) -> float | None:
        wanted = measure(value.measure)
        if wanted.place == "states":
            state = run.states(value.flow).value(value, (span.from_s, span.to_s))
            return None if state is None else state * wanted.factor
        if wanted.place == "asked":
            size = None if value.size is None else parse_size(value.size)
            asked = MeasureArguments(size, value.percentile, value.above, value.below)
            return run.value(wanted, value.flow, span, asked)
        if value.percentile is None and value.bins_above is None:
            return run.value(wanted, value.flow, span)
        there = drop_missing(_bins(value, run, span))
        if not there.size:
            return None
        if value.bins_above is not None:
            return 100.0 * float(np.mean(there >= value.bins_above))
        return float(np.percentile(there, value.percentile or 0.0))


def _bins(value: Value, run: RunView, span: TimeWindow) -> Floats:
    """Return a value's bins in a run, or its values at ACKs; shape (bins,)."""
    wanted = measure(value.measure)
    if value.bin == EACH_ACK:
        return run.at_acks(wanted, value.flow, span)
    bin_s = None if value.bin is None else parse_span(value.bin) / 1e9
    return run.bins(wanted, value.flow, span, bin_s)
