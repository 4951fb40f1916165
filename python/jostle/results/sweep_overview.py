"""Overview of a sweep: its most important measure, with conditions side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jostle.results.condition_names import short_names
from jostle.results.main_measures import main_samples
from jostle.results.measure_samples import MeasureSample, grid_keys, samples
from jostle.results.measures import Measure, measure
from jostle.results.number_format import ABSENT, decimals, with_interval
from jostle.results.tables import kinds_of
from jostle.results.text_table import Table
from jostle.results.unfinished import means_notes
from jostle.stats import estimate

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

MOST_COLUMNS = 8
"""Largest number of values that are shown side by side."""


def overview(results: FinishedRuns) -> Table | None:
    """Return a table of a sweep over two keys or more.

    The first grid key with at most `MOST_COLUMNS` values gives the columns, because scenario
    authors list the key that they compare first. Other keys and the flows give the rows. The
    measure is the main one of the first kind of flows, in the phase that compares them; goodput
    if a transfer completes in no run, or if other flows exist. None with fewer than two keys that
    vary.
    """
    keys = grid_keys(results)
    values = {
        key: list(dict.fromkeys(one[key] for one in results.conditions if key in one))
        for key in keys
    }
    varied = [key for key in keys if len(values[key]) > 1]
    columns = next((key for key in varied if len(values[key]) <= MOST_COLUMNS), None)
    if len(varied) < 2 or columns is None:
        return None
    phase = results.phases[0].name
    kinds = kinds_of(results)
    found = main_samples(results, kinds[0], phase)
    if kinds[0] == "transfers" and (len(kinds) > 1 or not _all_complete(found)):
        found = samples(results, measure("goodput"), [phase])
    flows = list(dict.fromkeys(one.place["flow"] for one in found))
    apart = [*(key for key in varied if key != columns), *(["flow"] if len(flows) > 1 else [])]
    table = _table(found, apart, columns, short_names(keys))
    unfinished = means_notes(results, ((one.condition, one.finish) for one in found))
    return replace(table, notes=(*results.failure_notes, *unfinished))


def _all_complete(found: list[MeasureSample]) -> bool:
    """Return whether each transfer completes in some run."""
    return all(any(value is not None for value in sample.values) for sample in found)


def _table(
    found: list[MeasureSample], apart: list[str], columns: str, names: dict[str, str]
) -> Table:
    wanted: Measure = found[0].measure
    at = {
        (tuple(one.place.get(key, "") for key in apart), one.place.get(columns, "")): estimate(
            one.values, wanted.unit, bounds=wanted.bounds
        )
        for one in found
    }
    heads = list(dict.fromkeys(column for _, column in at))
    rows = list(dict.fromkeys(row for row, _ in at))
    lines = []
    for row in rows:
        cells = [at.get((row, head)) for head in heads]
        # Numbers of a row are compared with each other, so they have the same decimals.
        places = decimals([one for one in cells if one], wanted)
        lines.append(
            (*row, *(with_interval(one, wanted.factor, places) if one else ABSENT for one in cells))
        )
    begins = tuple(n for n, row in enumerate(rows) if n == 0 or rows[n - 1][:1] != row[:1])
    header = (*(names.get(key, key) for key in apart), *heads)
    title = f"{wanted.axis} by {names[columns]}"
    return Table(header, tuple(lines), begins, len(apart), title)
