"""Matrix of one measure over all conditions, for sweeps with more conditions than lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from jostle.results.condition_names import short_names
from jostle.results.flow_notes import flow_notes
from jostle.results.main_measures import main_samples
from jostle.results.measure_samples import MeasureSample, grid_keys, samples
from jostle.results.measures import Measure, measure
from jostle.results.number_format import ABSENT, count, decimals, with_interval
from jostle.results.tables import View, kinds_of, rows_of
from jostle.results.text_table import Table
from jostle.results.unfinished import means_notes

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns
    from jostle.results.flow_groups import TrafficKind

_GAP: Final = 2


def sweep_matrix(results: FinishedRuns, phase: str, view: View) -> list[Table]:
    """Return tables that show all conditions, if `phase_tables` would omit some.

    The values of one grid key have a column each: the first key that fits the width. Rows are
    the values of the other keys. The list is empty if the usual tables show every row, or if the
    view sets columns, an order, separate flows or no limit.

    Parameters
    ----------
    results
        The runs.
    phase
        Name of a phase.
    view
        Layout of the tables; see `phase_tables`.
    """
    asked = view.columns or view.sort or view.each or not view.limit or view.width is None
    kinds: tuple[TrafficKind | Literal["link"], ...] = (*kinds_of(results), "link")
    rows = {kind: rows_of(results, kind, each=False) for kind in kinds}
    varying = [
        key for key in grid_keys(results) if len({c.get(key) for c in results.conditions}) > 1
    ]
    if asked or len(varying) < 2 or max(map(len, rows.values())) <= view.limit:
        return []
    found = []
    for kind in kinds:
        names = {row.who for row in rows[kind]}
        if kind == "link":
            of_links = measure("queue_delay_estimate" if "bulk" in kinds else "queueing_delay")
            taken = [s for s in samples(results, of_links, (phase,)) if s.place["link"] in names]
        else:
            taken = main_samples(results, kind, phase)
        if not any(value is not None for sample in taken for value in sample.values):
            continue
        table = _table(results, taken[0].measure, taken, varying, view)
        if table is None:
            return []
        if kind != "link":
            flows = [(row.condition, row.who) for row in rows[kind]]
            notes = flow_notes(results, phase, kind, flows, each=False)
            table = replace(table, notes=(*table.notes, *notes))
        found.append(table)
    return found


def _table(
    results: FinishedRuns,
    wanted: Measure,
    found: Sequence[MeasureSample],
    varying: Sequence[str],
    view: View,
) -> Table | None:
    several = len({sample.place[wanted.scope] for sample in found}) > 1
    words = [*varying, *([wanted.scope] if several else [])]
    estimates = {
        tuple(sample.place.get(key, "") for key in words): sample.estimate() for sample in found
    }
    places = decimals(estimates.values(), wanted)
    texts = {key: with_interval(one, wanted.factor, places) for key, one in estimates.items()}
    short = short_names(grid_keys(results))
    who = "" if several else f" of {found[0].place[wanted.scope]}"
    for column in varying:
        at = words.index(column)
        columns = list(dict.fromkeys(key[at] for key in texts))
        rows = list(dict.fromkeys((*key[:at], *key[at + 1 :]) for key in texts))
        rest = [key for key in words if key != column]
        lines = [
            (
                *_changed(row, rows[number - 1] if number else ()),
                *(texts.get((*row[:at], value, *row[at:]), ABSENT) for value in columns),
            )
            for number, row in enumerate(rows)
        ]
        header = (*(short.get(key, key) for key in rest), *columns)
        if _width(header, lines) > (view.width or 0):
            continue
        shown = lines[: view.limit]
        starts = [number for number, line in enumerate(shown) if line[0]]
        left = len(lines) - len(shown)
        more = f"… {count(left, 'more row')}. " if left else ""
        conditions = count(len(results.conditions), "condition")
        note = f"{more}{conditions}: --max-rows 0 shows each by itself."
        title = f"{wanted.axis}{who}, by {short[column]}"
        notes = (
            note,
            *results.failure_notes,
            *means_notes(results, ((one.condition, one.finish) for one in found)),
        )
        return Table(header, tuple(shown), tuple(starts), len(rest), title, notes=notes)
    return None


def _changed(row: Sequence[str], before: Sequence[str]) -> list[str]:
    """Blank the leading texts of a row that repeat the row above."""
    same = 0
    while same < len(before) - 1 and row[same] == before[same]:
        same += 1
    return ["" if at < same else text for at, text in enumerate(row)]


def _width(header: Sequence[str], lines: Sequence[Sequence[str]]) -> int:
    columns = zip(header, *lines, strict=True)
    return sum(max(map(len, column)) + _GAP for column in columns) - _GAP
