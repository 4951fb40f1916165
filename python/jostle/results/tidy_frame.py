"""Tidy frame of all measures: a row per condition, phase, measure, and flow, group or link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.results.frames import grid_column
from jostle.results.measure_samples import (
    OWN_KEYS,
    MeasureSample,
    chosen_phases,
    grid_keys,
    samples,
)
from jostle.results.measures import Measure, measure, measures
from jostle.results.summary_values import (
    SummaryCells,
    kind_of,
    mean_of_present,
    pool_of,
    spread_of,
)
from jostle.stats import Estimates, estimates, percentile_estimate

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.finished_runs import FinishedRuns
    from jostle.stats.descriptive import Floats

_BLOCK: Final = 20_000
"""Number of rows of each measure that are estimated at once; there may be 100 measures."""


def tidy(
    results: FinishedRuns,
    columns: Sequence[str] = (),
    phases: Sequence[str] | None = None,
    *,
    each: bool = False,
    advance: Callable[[], object] = lambda: None,
) -> pl.DataFrame:
    """Return estimates of measures, unrounded and in the units of the summary.

    Completion percentiles of a single flow are over its runs.

    Parameters
    ----------
    results
        The runs.
    columns
        Names of measures; if empty, all measures that need no parameter.
    phases
        Names of phases; all if absent.
    each
        Whether each flow of an entry with `count` has its own rows.
    advance
        Called after each condition, for progress bars.

    Returns
    -------
    polars.DataFrame
        Grid keys, `phase` (empty for measures of the complete run), `flow` or group, `flows`
        (number of flows) and `controller`, or `link`, `measure`, `unit`, `mean`, `low`, `high` and
        `n` (runs with a value), and for groups the `smallest` and `largest` flow, each a mean over
        runs; number of `failed` runs of the condition, and `incomplete`: how many failed, and why
        (null if none did). A condition of which no run finished has one row without measure.
    """
    import polars as pl

    names = columns or [name for name, one in measures().items() if one.tabled]
    every = [measure(name) for name in names]
    among = chosen_phases(results, every, phases)
    keys = grid_keys(results)
    counts = [results.run_count(at) for at in range(len(results.conditions))]
    grid = [grid_column(key, results.grid[key]) for key in keys]
    grid += [
        pl.Series("failed", [one.failed for one in counts], pl.UInt32),
        pl.Series("incomplete", [one.incomplete or None for one in counts], pl.String),
    ]
    made: list[list[pl.DataFrame]] = [[] for _ in every]
    for block in _blocks(results, every, among, each=each, advance=advance):
        for rows in block.values():
            rows.end(grid)
        for one, frames in zip(every, made, strict=True):
            frames.append(block[kind_of(one)].frame(one))
    whole = pl.concat([frame for frames in made for frame in frames], rechunk=True)
    lost = [at for at, one in enumerate(counts) if one.failed and not one.finished]
    absent = pl.DataFrame([column.gather(lost) for column in grid]) if lost else None
    found = whole if absent is None else pl.concat([whole, absent], how="diagonal")
    return found.select(pl.exclude("failed", "incomplete"), "failed", "incomplete")


def _blocks(
    results: FinishedRuns,
    every: Sequence[Measure],
    phases: Sequence[str],
    *,
    each: bool,
    advance: Callable[[], object],
) -> Iterator[dict[tuple[str, ...], _Rows]]:
    """Yield the rows of blocks of conditions; the last block also compares conditions."""
    kinds: dict[tuple[str, ...], list[Measure]] = {}
    for one in every:
        kinds.setdefault(kind_of(one), []).append(one)

    def empty() -> dict[tuple[str, ...], _Rows]:
        return {kind: _Rows(alike) for kind, alike in kinds.items()}

    block = empty()
    for index in range(len(results.conditions)):
        if results.runs_of(index):
            cells = SummaryCells(results, index, phases, each=each)
            for rows in block.values():
                rows.take(index, cells)
        advance()
        if sum(map(len, block.values())) >= _BLOCK:
            yield block
            block = empty()
    for one in (one for one in every if one.place == "conditions"):
        for sample in samples(results, one, phases, each=each):
            block[kind_of(one)].take_sample(sample)
    yield block


class _Rows:
    """Rows of measures that have the same entities.

    Parameters
    ----------
    alike
        The measures.
    """

    def __init__(self, alike: Sequence[Measure]) -> None:
        self._keys = [one.key for one in alike]
        self._column = {one.name: at for at, one in enumerate(alike)}
        self._alike = alike
        self._conditions: list[int] = []
        self._senders: list[int] = []
        self._places: list[Mapping[str, str]] = []
        self._members: list[int] = []
        self._runs: list[int] = []
        self._singles: list[int] = []
        self._pools = [one for one in alike if pool_of(one) is not None]
        self._pooled: dict[tuple[int, str], Sequence[float | None] | None] = {}
        self._blocks: list[Floats] = []

    def take(self, condition: int, cells: SummaryCells) -> None:
        """Add the values of a condition's summaries."""
        if self._alike[0].place == "conditions":
            return
        first = self._alike[0]
        found = cells.of(first)
        for entity in found:
            number, runs = len(self._places), len(cells.seeds)
            self._add(condition, entity.place, len(entity.names), runs, cells.senders)
            if entity.single:
                self._singles.append(number)
            for one in self._pools if entity.pool else ():
                self._pooled[number, one.name] = cells.pooled(entity, one)
        entries = [entry for entity in found for entry in cells.entries(entity, first)]
        self._blocks.append(_matrix([list(map(entry.get, self._keys)) for entry in entries]))

    def take_sample(self, sample: MeasureSample) -> None:
        """Add a sample that no summary contains."""
        members = len(sample.flows[0]) if sample.flows else 1
        self._add(sample.condition, sample.place, members, len(sample.flows), 0)
        self._blocks.append(_matrix([[value] for run in sample.flows for value in run]))

    def _add(
        self, condition: int, place: Mapping[str, str], members: int, runs: int, senders: int
    ) -> None:
        self._conditions.append(condition)
        self._places.append(place)
        self._members.append(members)
        self._runs.append(runs)
        self._senders.append(senders)

    def __len__(self) -> int:
        return len(self._places)

    def end(self, grid: Sequence[pl.Series]) -> None:
        """Build the columns that identify the rows; afterwards nothing can be added."""
        import polars as pl

        empty = np.empty((0, len(self._keys)))
        self._numbers: Floats = np.concatenate([empty, *(b for b in self._blocks if b.size)])
        self._blocks = []
        own = {key: [place.get(key) for place in self._places] for key in OWN_KEYS}
        of_flows = self._alike[0].scope == "flow"
        flows = self._members if of_flows else [None] * len(self._members)
        self._heads = pl.DataFrame(
            [
                *(column.gather(self._conditions) for column in grid),
                pl.Series("phase", own["phase"], pl.String),
                pl.Series(
                    "flow", own["group" if self._alike[0].scope == "group" else "flow"], pl.String
                ),
                pl.Series("flows", flows, pl.UInt32),
                pl.Series("controller", own["controller"], pl.String),
                pl.Series("link", own["link"], pl.String),
            ]
        )

    def frame(self, wanted: Measure) -> pl.DataFrame:
        """Return the rows of a measure with its estimates."""
        import polars as pl

        values, smallest, largest = self._of_runs(wanted)
        found = self._estimated(wanted, values)
        numbers = {
            "mean": found.value, "low": found.low, "high": found.high, "n": found.n,
            "smallest": smallest, "largest": largest,
        }  # fmt: skip
        types = {"n": pl.UInt32}
        return self._heads.with_columns(
            pl.lit(wanted.name).alias("measure"),
            pl.lit(wanted.unit).alias("unit"),
            *(
                pl.Series(name, column, types.get(name, pl.Float64), nan_to_null=True)
                for name, column in numbers.items()
            ),
        )

    def _of_runs(self, wanted: Measure) -> tuple[Floats, Floats, Floats]:
        """Return the values of a measure per run, and the smallest and largest flow of each row."""
        # Convert −0 to 0.
        flat = self._numbers[:, self._column[wanted.name]] + 0.0
        members, runs = np.array(self._members, np.int64), np.array(self._runs, np.int64)
        smallest, largest = np.full((2, members.size), np.nan)
        alone = members == 1
        if alone.all():
            return flat, smallest, largest
        values = np.full(runs.sum(), np.nan)
        values[np.repeat(alone, runs)] = flat[np.repeat(alone, runs * members)]
        missing = np.isnan(flat)
        # Skip missing values: most measures apply to few kinds of flows.
        cells = np.repeat(np.arange(members.size), runs * members)[~missing]
        there = np.bincount(cells, minlength=members.size) > 0
        there[[cell for cell, name in self._pooled if name == wanted.name]] = True
        several = np.flatnonzero(~alone & there)
        numbers = flat.astype(object)
        numbers[missing] = None
        ends, last = (np.cumsum(of)[several].tolist() for of in (runs * members, runs))
        sizes, times = members[several].tolist(), runs[several].tolist()
        for at, cell in enumerate(several.tolist()):
            begins = range(ends[at] - sizes[at] * times[at], ends[at], sizes[at])
            flows = tuple(tuple(numbers[begin : begin + sizes[at]]) for begin in begins)
            means = self._pooled.get((cell, wanted.name)) or [mean_of_present(it) for it in flows]
            values[last[at] - times[at] : last[at]] = means
            smallest[cell], largest[cell] = spread_of(flows) or (np.nan, np.nan)
        return values, smallest, largest

    def _estimated(self, wanted: Measure, values: Floats) -> Estimates:
        runs = np.array(self._runs, np.int64)
        bounds = {senders: wanted.bounds_among(senders) for senders in set(self._senders)}
        ends = {n: (-np.inf if a is None else a, np.inf if b is None else b)
                for n, (a, b) in bounds.items()}  # fmt: skip
        least, most = np.array([ends[n] for n in self._senders]).reshape(-1, 2).T
        found = estimates(values, runs, least, most)
        if wanted.percent is None:
            return found
        last = np.cumsum(runs)
        for cell in self._singles:
            if found.n[cell]:
                of_runs = values[last[cell] - runs[cell] : last[cell]].tolist()
                one = percentile_estimate(of_runs, wanted.percent, wanted.unit)
                numbers = (one.value, one.low, one.high)
                found.value[cell], found.low[cell], found.high[cell] = (
                    np.nan if number is None else number for number in numbers
                )
                found.n[cell] = one.n
        return found


def _matrix(rows: Sequence[Sequence[float | None]]) -> Floats:
    """Return the numbers of entries by measure; NaN for None."""
    return np.array(rows, dtype=np.float64)
