"""A sweep at a glance: the measure that is asked for first, one condition beside the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.results.conditions import short_names
from jostle.results.finished import OVERALL
from jostle.results.formats import ABSENT, decimals, with_interval
from jostle.results.measures import Measure, measure
from jostle.results.samples import Sample, grid_keys, samples
from jostle.results.tables import Table
from jostle.stats import estimate

if TYPE_CHECKING:
    from jostle.results.finished import FinishedRuns

MOST_COLUMNS = 8
"""Values that stand beside each other."""


def overview(results: FinishedRuns) -> Table | None:
    """Table of a sweep over two keys or more: what is compared first beside each other.

    The grid's first key with few values has the columns, for that is what its author compares; all
    others, and the flows, have the rows. Shown is how long flows took if all of them end, else what
    they got. None where the table of all measures is as short.
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
    found = _completions(results) or samples(results, measure("throughput"), [OVERALL])
    flows = list(dict.fromkeys(one.place["flow"] for one in found))
    apart = [*(key for key in varied if key != columns), *(["flow"] if len(flows) > 1 else [])]
    return _table(found, apart, columns, short_names(keys))


def _completions(results: FinishedRuns) -> list[Sample]:
    """How long flows took; nothing if one of them has no end in any run."""
    found = samples(results, measure("completion"))
    return found if all(any(one is not None for one in each.values) for each in found) else []


def _table(found: list[Sample], apart: list[str], columns: str, names: dict[str, str]) -> Table:
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
        # A row is what is compared: its numbers have the digits that tell them apart.
        places = decimals([one for one in cells if one], wanted)
        lines.append(
            (*row, *(with_interval(one, wanted.factor, places) if one else ABSENT for one in cells))
        )
    begins = tuple(n for n, row in enumerate(rows) if n == 0 or rows[n - 1][:1] != row[:1])
    header = (*(names.get(key, key) for key in apart), *heads)
    title = f"{wanted.axis} by {names[columns]}"
    return Table(header, tuple(lines), begins, len(apart), title)
