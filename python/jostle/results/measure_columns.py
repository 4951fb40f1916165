"""Measures of many stored runs, read as columns of the store's tables instead of as summaries.

A store keeps runs in segments, each with a table of all measures of its runs. A summary of one flow
takes 20 kB once it is decoded, and its measures take 1 kB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from jostle.errors import StoreError
from jostle.results.measures import Measure
from jostle.results.suitable_measures import shown_together

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from jostle.backends import Spec
    from jostle.results.finished_runs import ConditionRun, FinishedRuns
    from jostle.stats.descriptive import Floats

    Ints = npt.NDArray[np.int64]

__all__ = ["MeasureColumns", "RunInSegment", "are_many", "columns_of"]

_LEAST_FLOWS: Final = 2_000
"""Number of flows of all runs from which columns are faster than summaries, including the import
of Polars."""
_MOST_BYTES: Final = 300_000_000
"""Size from which the columns that are kept make room for the next ones."""


_HEADS: Final = ("run", "scope", "name", "phase")


class RunInSegment(Protocol):
    """A run whose measures are in a table, together with other runs' measures."""

    @property
    def run_id(self) -> str:
        """Name of the run."""

    @property
    def segment(self) -> str:
        """Name of the segment, which is equal for runs in the same table."""

    @property
    def has_measures(self) -> bool:
        """Whether the segment has a table of measures with the names of this version."""

    def measure_table(self, keys: Sequence[str], heads: Sequence[str]) -> pl.DataFrame:
        """Return measures of all runs of the segment, and columns that name their rows."""


def columns_of(results: FinishedRuns) -> MeasureColumns | None:
    """Return the columns of results; None for few runs, and for runs that are not in segments."""
    if results.columns is False:
        results.columns = MeasureColumns(results) if are_many(results) else None
    columns: MeasureColumns | None = results.columns
    return columns


def are_many(results: FinishedRuns) -> bool:
    """Return whether results have many flows, with all of their runs in segments."""
    runs = results.results
    if not runs or not getattr(runs[0].run, "has_measures", False):
        return False
    flows = len(runs) * len(results.spec_of(runs[0].condition)["flows"])
    return flows >= _LEAST_FLOWS and all(getattr(r.run, "has_measures", False) for r in runs)


class MeasureColumns:
    """Values of measures of all runs, by scope and measure.

    Parameters
    ----------
    results
        The runs; `are_many` is true for them.
    """

    def __init__(self, results: FinishedRuns) -> None:
        import numpy as np

        self._runs: list[ConditionRun] = []
        self._first: dict[int, int] = {}
        # Conditions with equal names of flows, groups, links and phases share them.
        self._names: list[dict[str, dict[str, int]]] = []
        self._phases: list[frozenset[str]] = []
        known: dict[object, int] = {}
        alike: list[int] = []
        first_of_each: list[int] = []
        for condition in range(len(results.conditions)):
            runs = results.runs_of(condition)
            if not runs:
                continue
            names = _names_of(results.spec_of(condition))
            phases = frozenset(phase.name for phase in results.phases_of(condition))
            number = known.setdefault((*map(tuple, names.values()), phases), len(known))
            if number == len(self._names):
                self._names.append(names)
                self._phases.append(phases)
                first_of_each.append(condition)
            self._first[condition] = len(self._runs)
            self._runs += runs
            alike += [number] * len(runs)
        self._alike: Ints = np.array(alike, np.int64)
        self._begins: dict[str, Ints] = {}
        self._sizes: dict[str, int] = {}
        for scope in self._names[0]:
            sizes = np.array([len(names[scope]) for names in self._names])[self._alike]
            ends = np.cumsum(sizes)
            self._begins[scope], self._sizes[scope] = ends - sizes, int(ends[-1])
        every = {group.kind for first in first_of_each for group in results.flow_groups(first)}
        self._together = [(m.scope, m.key) for m in shown_together(every)]
        self._phase = ""
        self._columns: dict[tuple[str, str], Floats] = {}

    def has(self, scope: str, condition: int, name: str) -> bool:
        """Return whether the runs of a condition have a flow, group or link of a name."""
        return name in self._names_at(condition)[scope]

    def _names_at(self, condition: int) -> dict[str, dict[str, int]]:
        return self._names[int(self._alike[self._first[condition]])]

    def values(
        self, wanted: Measure, phase: str, condition: int, runs: int, names: Sequence[str]
    ) -> Floats:
        """Return a measure of flows, groups or links of each run, shape (runs, names).

        Raises
        ------
        StoreError
            When a table cannot be read, or does not have the measures of a run.
        """
        column = self._column(wanted, phase)
        known = self._names_at(condition)[wanted.scope]
        begin = self._begins[wanted.scope][self._first[condition]]
        block = column[begin : begin + runs * len(known)].reshape(runs, len(known))
        places = [known[name] for name in names]
        if len(places) == 1:
            return block[:, places[0] : places[0] + 1]
        return block[:, places]

    def _column(self, wanted: Measure, phase: str) -> Floats:
        key = wanted.scope, wanted.key
        if phase != self._phase or sum(one.nbytes for one in self._columns.values()) > _MOST_BYTES:
            self._phase, self._columns = phase, {}
            self._entries = self._entries_with(phase)
        if key not in self._columns:
            # Opening a table takes longer than reading twenty of its columns.
            several = dict.fromkeys((key, *self._together))
            self._load([one for one in several if one not in self._columns])
        return self._columns[key]

    def _entries_with(self, phase: str) -> Ints:
        """Return how many entries a run has in a phase, by the number of its names."""
        import numpy as np

        sizes = [sum(map(len, names.values())) for names in self._names]
        there = [phase in phases for phases in self._phases]
        return np.array([size * is_there for size, is_there in zip(sizes, there, strict=True)])

    def _load(self, wanted: Sequence[tuple[str, str]]) -> None:
        """Read columns, given by scope and key, of the present phase."""
        import numpy as np
        import polars as pl

        for scope, key in wanted:
            self._columns[scope, key] = np.full(self._sizes[scope], np.nan)
        places = [
            (number, scope, name, place)
            for number, names in enumerate(self._names)
            for scope in names
            for name, place in names[scope].items()
        ]
        types = {"alike": pl.Int64, "scope": pl.String, "name": pl.String, "place": pl.Int64}
        entries = pl.DataFrame(places, schema=types, orient="row")
        segments: dict[str, list[int]] = {}
        for at, result in enumerate(self._runs):
            segments.setdefault(cast("RunInSegment", result.run).segment, []).append(at)
        for runs in segments.values():
            left = runs
            while left:
                left = self._take(left, wanted, entries)

    def _take(
        self, runs: list[int], wanted: Sequence[tuple[str, str]], entries: pl.DataFrame
    ) -> list[int]:
        """Read columns of the segment of the first run; return the runs that are not in it."""
        import numpy as np
        import polars as pl

        first = cast("RunInSegment", self._runs[runs[0]].run)
        table = first.measure_table(list(dict.fromkeys(key for _, key in wanted)), _HEADS)
        at = np.array(runs)
        names = [self._runs[run].run.run_id for run in runs]
        places = pl.DataFrame({"run": names, "at": at, "alike": self._alike[at]})
        there = table.join(places, on="run")
        rows = there.filter(pl.col("phase") == self._phase)
        rows = rows.with_columns(pl.col("name").fill_null("")).join(
            entries, on=["alike", "scope", "name"]
        )
        for scope in self._begins:
            of_scope = rows.filter(pl.col("scope") == scope)
            into = self._begins[scope][of_scope["at"].to_numpy()] + of_scope["place"].to_numpy()
            for key in (key for its, key in wanted if its == scope):
                self._columns[scope, key][into] = of_scope[key].to_numpy()
        found = there["at"].unique().sort()
        _, counts = np.unique(rows["at"].to_numpy(), return_counts=True)
        expected = self._entries[self._alike[found.to_numpy()]]
        if runs[0] not in found or not np.array_equal(counts, expected[expected > 0]):
            run = self._runs[runs[0]].run.run_id
            raise StoreError(f"segment of run {run}: its measures are not measures of its runs")
        return [] if len(found) == len(runs) else sorted({*runs} - {*found.to_list()})


def _names_of(spec: Spec) -> dict[str, dict[str, int]]:
    """Return the flows, groups and links of a run, and the run itself, with their positions."""
    groups = dict.fromkeys(flow.get("group") or flow["name"] for flow in spec["flows"])
    names = {
        "flow": [flow["name"] for flow in spec["flows"]],
        "group": list(groups),
        "link": [link["name"] for link in spec["links"]],
        "run": [""],
    }
    return {scope: {name: at for at, name in enumerate(of)} for scope, of in names.items()}
