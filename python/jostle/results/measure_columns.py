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
_ROWS_AT_ONCE: Final = 30_000
"""Rows of segments from which they are assigned to runs, in less time than one by one."""


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
        counts: list[int] = []
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
            alike.append(number)
            counts.append(len(runs))
        self._alike: Ints = np.repeat(np.array(alike, np.int64), counts)
        self._begins: dict[str, Ints] = {}
        self._sizes: dict[str, int] = {}
        ends: dict[tuple[int, ...], tuple[Ints, int]] = {}
        for scope in self._names[0]:
            # Runs mostly have as many groups as flows, and scopes share the array.
            sizes = tuple(len(names[scope]) for names in self._names)
            if sizes not in ends:
                of_runs = np.array(sizes)[self._alike]
                total = np.cumsum(of_runs)
                ends[sizes] = total - of_runs, int(total[-1])
            self._begins[scope], self._sizes[scope] = ends[sizes]
        groups = [group for first in first_of_each for group in results.flow_groups(first)]
        several = any(len(group.members) > 1 for group in groups)
        # The group of a single flow has the flow's measures.
        self._together = [
            (m.scope, m.key)
            for m in shown_together({group.kind for group in groups})
            if m.scope != "group" or several
        ]
        self._columns: dict[tuple[str, str, str], Floats] = {}

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
        known = self._names_at(condition)[wanted.scope]
        block = self._block(self._column(wanted, phase), wanted.scope, condition, runs)
        places = [known[name] for name in names]
        if len(places) == 1:
            return block[:, places[0] : places[0] + 1]
        return block[:, places]

    def differ(self, condition: int, runs: int) -> bool:
        """Return whether any measure that has been read differs between runs of a condition."""
        import numpy as np

        for (_, scope, _), column in self._columns.items():
            block = self._block(column, scope, condition, runs)
            if not np.array_equal(block[1:], np.broadcast_to(block[0], block[1:].shape), True):
                return True
        return False

    def _block(self, column: Floats, scope: str, condition: int, runs: int) -> Floats:
        """Return the values of a condition, shape (runs, names)."""
        size = len(self._names_at(condition)[scope])
        begin = self._begins[scope][self._first[condition]]
        return column[begin : begin + runs * size].reshape(runs, size)

    def _column(self, wanted: Measure, phase: str) -> Floats:
        key = phase, wanted.scope, wanted.key
        if key not in self._columns:
            # Opening a table takes longer than reading twenty of its columns, of all phases.
            several = list(dict.fromkeys((key[1:], *self._together)))
            phases = [phase, *sorted(set[str]().union(*self._phases) - {phase})]
            size = sum(8 * self._sizes[scope] for scope, _ in several)
            if size * len(phases) > _MOST_BYTES:
                phases = [phase]
            present = sum(column.nbytes for column in self._columns.values())
            if present + size * len(phases) > _MOST_BYTES:
                self._columns = {}
            self._load([(p, *one) for p in phases for one in several])
        return self._columns[key]

    def _load(self, wanted: Sequence[tuple[str, str, str]]) -> None:
        """Read columns, given by phase, scope and key, unless they are there."""
        import numpy as np
        import polars as pl

        new = [one for one in wanted if one not in self._columns]
        for phase, scope, key in new:
            self._columns[phase, scope, key] = np.full(self._sizes[scope], np.nan)
        places = [
            (number, phase, scope, name, place)
            for number, names in enumerate(self._names)
            for phase in dict.fromkeys(phase for phase, _, _ in new)
            if phase in self._phases[number]
            for scope in names
            for name, place in names[scope].items()
        ]
        types = {"alike": pl.Int64, "phase": pl.String, "scope": pl.String, "name": pl.String}
        entries = pl.DataFrame(places, schema={**types, "place": pl.Int64}, orient="row")
        numbers: dict[str, int] = {}
        names_of_segments = (cast("RunInSegment", result.run).segment for result in self._runs)
        which = np.array([numbers.setdefault(name, len(numbers)) for name in names_of_segments])
        order = np.argsort(which, kind="stable")
        left = np.split(order, np.cumsum(np.bincount(which))[:-1])
        while left:
            left = self._take(left, new, entries)

    def _take(
        self,
        segments: Sequence[Ints],
        wanted: Sequence[tuple[str, str, str]],
        entries: pl.DataFrame,
    ) -> list[Ints]:
        """Read columns of some segments, given by their runs; return the runs that are left.

        The first run of each names a segment, in which other runs may be missing.
        """
        import numpy as np
        import polars as pl

        keys = list(dict.fromkeys(key for _, _, key in wanted))
        tables: list[pl.DataFrame] = []
        names: list[pl.DataFrame] = []
        for runs in segments:
            number = pl.lit(len(tables), pl.UInt32).alias("segment")
            first = cast("RunInSegment", self._runs[runs[0]].run)
            tables.append(first.measure_table(keys, _HEADS).with_columns(number))
            ids = [self._runs[run].run.run_id for run in runs.tolist()]
            places = pl.DataFrame({"run": ids, "at": runs, "alike": self._alike[runs]})
            names.append(places.with_columns(number))
            if sum(table.height for table in tables) > _ROWS_AT_ONCE:
                break
        there = pl.concat(tables).join(pl.concat(names), on=["segment", "run"])
        rows = there.with_columns(pl.col("name").fill_null("")).join(
            entries, on=["alike", "phase", "scope", "name"]
        )
        for (phase, scope), part in rows.partition_by("phase", "scope", as_dict=True).items():
            into = self._begins[scope][part["at"].to_numpy()] + part["place"].to_numpy()
            for key in (key for *its, key in wanted if its == [phase, scope]):
                self._columns[phase, scope, key][into] = part[key].to_numpy()
        begun, rest = segments[: len(tables)], segments[len(tables) :]
        found = there["at"].unique().sort().to_numpy()
        counts = np.bincount(np.searchsorted(found, rows["at"].to_numpy()), minlength=len(found))
        expected = np.bincount(entries["alike"].to_numpy(), minlength=len(self._names))
        wrong = found[counts != expected[self._alike[found]]].tolist()
        if wrong := [*wrong, *(runs[0] for runs in begun if runs[0] not in found)]:
            run = self._runs[wrong[0]].run.run_id
            raise StoreError(f"segment of run {run}: its measures are not measures of its runs")
        left = (runs[~np.isin(runs, found)] for runs in begun)
        return [*(runs for runs in left if runs.size), *rest]


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
