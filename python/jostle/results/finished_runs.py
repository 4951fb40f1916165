"""Finished runs by condition, from which tables, figures and a ResultSet are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from jostle.backends import lateness
from jostle.errors import FailedRunsError, InputError, unknown
from jostle.results import condition_names
from jostle.results.compared_phase import OVERALL, compared_phase, in_reading_order
from jostle.results.condition_names import Condition
from jostle.results.flow_groups import FlowGroup, flow_groups
from jostle.results.run_count import RunCount
from jostle.scenario.parsing.key_endings import ambiguous, matching_keys

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from jostle.backends import Run, Spec

GridValue = str | float | bool
"""Value of a grid key: a number, or text as in the scenario."""
CAPTURE = "capture"
"""Name of the backend in results of captures and logs."""
SIMULATOR = "sim"
"""Name of the backend whose runs are in virtual time, so that none is late."""
_NAMED = 8
"""Number of remarks on failed runs; further conditions share one."""
_NAMED_SPANS = 3
"""Number of spans of a phase that are written out."""
_LISTED = 3
"""Number of conditions that a remark on failed runs names; the remaining ones are counted."""


class ConditionRun(NamedTuple):
    """A finished run and its place in the plan."""

    condition: int
    seed: int
    run: Run


@dataclass(frozen=True)
class Failure:
    """A run that failed, its place in the plan, and why."""

    condition: int
    seed: int
    error: str


@dataclass(frozen=True)
class Phase:
    """A window of time."""

    name: str
    from_s: float
    to_s: float

    @property
    def span(self) -> str:
        """Start and end, as text."""
        return f"{self.from_s:g}–{self.to_s:g} s"


class FinishedRuns:
    """The runs of a scenario, in the order of the plan.

    Parameters
    ----------
    title
        Title of the scenario.
    backend, backend_version
        Name and version of the backend that ran the scenario.
    conditions
        Every condition of the plan.
    results
        The runs that finished.
    failures
        The runs that failed.
    """

    def __init__(
        self,
        title: str,
        backend: str,
        backend_version: str,
        *,
        conditions: Sequence[Condition],
        results: Sequence[ConditionRun],
        failures: Sequence[Failure] = (),
    ) -> None:
        self.title = title
        self.backend = backend
        self.backend_version = backend_version
        self.conditions = tuple(dict(condition) for condition in conditions)
        self.results = tuple(results)
        self.failures = tuple(failures)
        self.said: tuple[str, ...] = ()
        """Remarks on the runs for the user, such as repeats that did not reach the precision."""
        self.sources: tuple[Path, ...] = ()
        """Captures that were measured; empty for runs of a scenario."""
        self.last_cells: tuple[object, Any] | None = None
        """Values of the condition that was tabled last; see `summary_values.cells_of`."""
        self.planned_spec: Callable[[int, int], Spec] | None = None
        """Specification of a run by condition and seed, if it need not be read from the store."""
        self.columns: Any = False
        """Columns of many runs, false until asked for; see `measure_columns.columns_of`."""

    @property
    def measured(self) -> bool:
        """Whether these are measurements of captures or logs, which cannot be repeated."""
        return self.backend == CAPTURE

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Name of each condition."""
        return tuple(condition_names.labels(self.conditions))

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Phases of the runs: the one that compares flows, the others, and `overall` last."""
        found: dict[str, Phase] = {}
        for index in range(len(self.conditions)):
            for phase in self.phases_of(index):
                found.setdefault(phase.name, phase)
        # Without named phases, the summary need not be decoded.
        first = compared_phase(self.results[0].run.summary) if len(found) > 1 else OVERALL
        return tuple(found[name] for name in in_reading_order(list(found), first))

    def spans_of(self, phase: str) -> str:
        """Return the start and end of a phase as text; conditions may have different ones.

        Examples
        --------
        >>> import jostle
        >>> jostle.run("scenarios/first.toml", store=False).spans_of("overall")
        '0–20 s'
        """
        every = (one for at in range(len(self.conditions)) for one in self.phases_of(at))
        spans = list(dict.fromkeys(one.span for one in every if one.name == phase))
        if len(spans) > _NAMED_SPANS:
            return f"{spans[0]} to {spans[-1]}, in {len(spans)} forms"
        return " or ".join(spans)

    def phases_of(self, condition: int) -> tuple[Phase, ...]:
        """Phases of one condition (a grid may move them)."""
        return tuple(
            Phase(phase["name"], phase["from_ns"] / 1e9, phase["to_ns"] / 1e9)
            for phase in (self.spec_of(condition)["phases"] if self.runs_of(condition) else ())
        )

    def runs_of(self, condition: int) -> list[ConditionRun]:
        """Finished runs of a condition, given by its position."""
        return self._by_condition.get(condition, [])

    def seeds_of(self, condition: int) -> tuple[int, ...]:
        """Return the seeds of the finished runs of a condition, given by its position.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> len(results.seeds_of(0)) == len(results.runs_of(0))
        True
        """
        if condition not in self._seeds:
            self._seeds[condition] = tuple(result.seed for result in self.runs_of(condition))
        return self._seeds[condition]

    def run_count(self, condition: int) -> RunCount:
        """Return how many runs of a condition finished, and why the others failed.

        Raises
        ------
        InputError
            If there is no such condition.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> str(results.run_count(0))
        '1 run'
        """
        if not 0 <= condition < len(self.conditions):
            raise InputError(f"condition {condition}: there are {len(self.conditions)}, from 0")
        return RunCount(len(self.runs_of(condition)), self._errors.get(condition, ()))

    def _all_identical(self, condition: int) -> bool:
        """Return whether runs of a condition with several seeds have equal summaries."""
        runs = self.runs_of(condition)
        if len(set(self.seeds_of(condition))) < 2:
            return False
        # Summaries that differ in a column need not be read.
        if self.columns and self.columns.differ(condition, len(runs)):
            return False
        return all(_have_equal_summaries(result.run, runs[0].run) for result in runs[1:])

    @property
    def run_counts(self) -> RunCount:
        """Return how many runs of all conditions finished, and why the others failed."""
        return RunCount(len(self.results), tuple(failure.error for failure in self.failures))

    def unfinished_error(self, begin: str, *conditions: int) -> InputError:
        """Return the error that no run of some conditions finished, by default of all.

        The text is `begin`, the name of a single condition, and the reasons of the failures.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> str(results.unfinished_error("nothing to draw: "))
        'nothing to draw: no run finished'
        """
        counts = [self.run_count(at) for at in conditions] or [self.run_counts]
        label = self.labels[conditions[0]] if len(conditions) == 1 else ""
        place = f"{label}: " if label else ""
        together = RunCount.sum_of(counts)
        if not together.errors:
            return InputError(f"{begin}{place}no run finished")
        return FailedRunsError(f"{begin}{place}{together}")

    def incomplete(self, *conditions: int) -> str:
        """Return how many runs of some conditions finished, if any of them failed; else nothing."""
        return RunCount.sum_of(map(self.run_count, conditions)).incomplete

    @cached_property
    def failure_notes(self) -> tuple[str, ...]:
        """Remarks on failed runs: `controller bbr: 15 of 20 runs, 5 failed: reason`.

        They are part of every output, because means of the remaining runs are biased. Conditions
        with equal numbers and reasons share a remark. The last remark is about late runs in real
        time, which are as invalid.
        """
        alike: dict[str, list[int]] = {}
        for at in sorted(self._errors):
            alike.setdefault(str(self.run_count(at)), []).append(at)
        told = list(alike.items())
        named = told if len(told) <= _NAMED + 1 else told[:_NAMED]
        notes = [f"{self._names(conditions)}{text}" for text, conditions in named]
        if others := [at for _, conditions in told[len(named) :] for at in conditions]:
            notes.append(f"{len(others)} more conditions together: {self.incomplete(*others)}")
        if self.late_runs:
            first = self.late_runs[0].run.summary[lateness.KEY]
            notes.append(
                f"INVALID: late. In {len(self.late_runs)} of {len(self.results)} runs in real "
                f"time, one sample in a hundred came more than {1e3 * first['bound_s']:g} ms after "
                "its time "
                f"({1e3 * first['p99_s']:.3g} ms, at most {1e3 * first['max_s']:.3g} ms, in the "
                "first one), so the results describe this machine as much as the scenario. Stop "
                "other programs, or use virtual time: --backend kernel"
            )
        return tuple(notes)

    @cached_property
    def late_runs(self) -> tuple[ConditionRun, ...]:
        """Runs in real time for which the machine was too busy."""
        # Runs of a backend with one version are all in real time, or none is.
        if (
            not self.results
            or self.backend == SIMULATOR
            or not lateness.is_measured(self.results[0].run)
        ):
            return ()
        return tuple(
            result for result in self.results if lateness.exceeds_bound(result.run.summary)
        )

    def _names(self, conditions: Sequence[int]) -> str:
        """Return the names of some conditions as the start of a remark on each of them."""
        labels = [self.labels[at] for at in conditions if self.labels[at]]
        if not labels:
            return ""
        if len(conditions) == len(self.conditions) > 1:
            return f"each of {len(conditions)} conditions: "
        more = len(labels) - _LISTED
        listed = [*labels[:_LISTED], *([f"{more} more conditions"] if more > 0 else [])]
        return "; ".join(listed) + (", each: " if len(labels) > 1 else ": ")

    @cached_property
    def _errors(self) -> dict[int, tuple[str, ...]]:
        found: dict[int, tuple[str, ...]] = {}
        for failure in self.failures:
            found[failure.condition] = (*found.get(failure.condition, ()), failure.error)
        return found

    @cached_property
    def _by_condition(self) -> dict[int, list[ConditionRun]]:
        found: dict[int, list[ConditionRun]] = {}
        for result in self.results:
            found.setdefault(result.condition, []).append(result)
        return found

    def spec_of(self, condition: int) -> Spec:
        """Return the specification of a condition's first run; a stored one is read at most once.

        Raises
        ------
        InputError
            When no run of it finished.
        """
        if condition not in self._specs:
            runs = self.runs_of(condition)
            if not runs:
                raise self.unfinished_error("", condition)
            first, planned = runs[0], self.planned_spec
            self._specs[condition] = (
                first.run.spec if planned is None else planned(condition, first.seed)
            )
        return self._specs[condition]

    def flow_groups(self, condition: int, *, each: bool = False) -> list[FlowGroup]:
        """Return the groups of a condition's flows; see `flow_groups.flow_groups`.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> [group.name for group in results.flow_groups(0)]
        ['incumbent', 'newcomer']
        """
        key = condition, each
        if key not in self._groups:
            self._groups[key] = flow_groups(self.spec_of(condition), each=each)
        return self._groups[key]

    @cached_property
    def _groups(self) -> dict[tuple[int, bool], list[FlowGroup]]:
        return {}

    @cached_property
    def _specs(self) -> dict[int, Spec]:
        return {}

    @cached_property
    def _seeds(self) -> dict[int, tuple[int, ...]]:
        return {}

    def flow_names(self, condition: int) -> list[str]:
        """Names of a condition's flows, in the order of the scenario."""
        return [flow["name"] for flow in self._listed(condition, "flows")]

    def link_names(self, condition: int) -> list[str]:
        """Names of a condition's links, in the order of the scenario."""
        return [link["name"] for link in self._listed(condition, "links")]

    def _listed(self, condition: int, kind: Literal["flows", "links"]) -> Sequence[Any]:
        return self.spec_of(condition)[kind] if self.runs_of(condition) else ()

    def condition_series(self, condition: int) -> pl.DataFrame:
        """Series of all flows and runs of a condition: the runs' `flows` frames with `seed`."""
        import polars as pl

        return pl.concat(
            r.run.flows.with_columns(pl.lit(r.seed, dtype=pl.UInt64).alias("seed"))
            for r in self.runs_of(condition)
        )

    def condition_links(self, condition: int) -> pl.DataFrame:
        """Series of all links and runs of a condition: the runs' `links` frames with `seed`."""
        import polars as pl

        # Runs that an earlier version stored have fewer columns.
        return pl.concat(
            (
                r.run.links.with_columns(pl.lit(r.seed, dtype=pl.UInt64).alias("seed"))
                for r in self.runs_of(condition)
            ),
            how="diagonal",
        )

    def condition_index(self, condition: int | str | Condition | None) -> int:
        """Return the position of a condition, given its position, label, or keys and values.

        Raises
        ------
        InputError
            When no condition matches, or several do.
        """
        every = range(len(self.conditions))
        if condition is None:
            matches = list(every)
        elif isinstance(condition, int):
            matches = [condition] if condition in every else []
        elif isinstance(condition, str):
            matches = [i for i in every if self.labels[i] == condition]
        else:
            wanted = condition.items()
            matches = [i for i in every if wanted <= self.conditions[i].items()]
        if len(matches) == 1:
            return matches[0]
        found = "no such condition" if not matches else "several conditions"
        raise InputError(f"{found}: name one of " + " | ".join(self.labels))

    def where(
        self, values: Mapping[str, GridValue | Sequence[GridValue]] | None = None, /, **named: Any
    ) -> Self:
        """Return the conditions that have given values of the grid.

        Parameters
        ----------
        values
            Grid key → value, or several values of which a condition must have one: a number, or
            text as in the scenario ("10 Mbit/s"). A key may be shortened to its end (`rate` for
            `bottleneck.rate`) if no other key has that end.
        **named
            The same, for keys without a dot.

        Raises
        ------
        InputError
            When there is no such key or value.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/parking-lot.toml", store=False, repeats=1)
        >>> [condition["flows.long.controller"] for condition in results.conditions]
        ['reno', 'cubic', 'bbr']
        >>> len(results.where(controller=["reno", "bbr"]).conditions)
        2
        """
        wanted: dict[str, set[str]] = {}
        for name, given in {**(values or {}), **named}.items():
            key = self._grid_key(name)
            there = list(dict.fromkeys(c[key] for c in self.conditions if key in c))
            several = isinstance(given, Sequence) and not isinstance(given, str)
            wanted[key] = {_named(key, one, there) for one in (given if several else [given])}
        kept = [
            at
            for at, condition in enumerate(self.conditions)
            if all(condition.get(key) in words for key, words in wanted.items())
        ]
        place = {at: position for position, at in enumerate(kept)}
        return type(self)(
            self.title,
            self.backend,
            self.backend_version,
            conditions=[self.conditions[at] for at in kept],
            results=[
                r._replace(condition=place[r.condition])
                for r in self.results
                if r.condition in place
            ],
            failures=[
                replace(f, condition=place[f.condition])
                for f in self.failures
                if f.condition in place
            ],
        )

    @cached_property
    def grid(self) -> Mapping[str, Sequence[Any]]:
        """Values of each grid key by condition: numbers if all of them are numbers."""
        keys = dict.fromkeys(key for condition in self.conditions for key in condition)
        return {key: condition_names.typed_values(self.conditions, key) for key in keys}

    def _grid_key(self, name: str) -> str:
        keys = list(self.grid)
        matches = matching_keys(name, keys)
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise InputError(ambiguous(name, matches))
        if not keys:
            raise InputError("the scenario has no grid")
        raise InputError(unknown("grid key", name, keys))

    def __len__(self) -> int:
        return len(self.results)


def _have_equal_summaries(run: Run, other: Run) -> bool:
    """Return whether two runs have the same measures; texts of stored ones are not decoded."""
    texts = [getattr(one, "summary_text", None) for one in (run, other)]
    return run.summary == other.summary if None in texts else texts[0] == texts[1]


def _named(key: str, value: GridValue, names: Sequence[str]) -> str:
    """Return the name of a value of the grid, which is equal to a number or the same text."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    for name in names:
        if name == text or (_number(name) is not None and _number(name) == _number(value)):
            return name
    raise InputError(unknown(f"value of {key}", text, names))


def _number(value: GridValue) -> float | None:
    """Return a number, or text of one; None for other text and for truth values."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except ValueError:
        return None
