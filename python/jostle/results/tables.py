"""Results as tables for people: units that are easily read, mean ± half of the interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from jostle.results.measures import measure
from jostle.stats import Estimate, estimate

if TYPE_CHECKING:
    from jostle.results.finished import FinishedRuns

MOST_FLOWS = 12
"""Flows of a condition that a table shows."""

ABSENT = "–"


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    header, rows
        Texts.
    groups
        Rows at which a new condition begins.
    text_columns
        How many columns, counted from the left, hold words and not numbers.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[int, ...]
    text_columns: int


_COLUMNS = ("throughput", "share", "rtt", "cwnd", "retransmission_ratio")
"""Measures of a flow that a table shows; of the run it shows Jain's index."""
_PLAIN = {"share": 1}
"""Decimals of those that are shown without their interval: it follows from the others'."""
_DIGITS = 4
_MOST_DECIMALS = 3


def phase_rows(results: FinishedRuns, phase: str) -> Table:
    """One phase: a row per condition and flow."""
    grid = len(results.conditions) > 1 or bool(results.labels[0])
    every = [measure(name) for name in (*_COLUMNS, "jain")]
    words = (*(("condition",) if grid else ()), "flow", "controller")
    titles = (*words, *(f"{m.title}\n{m.reads}" if m.reads else m.title for m in every))
    rows: list[tuple[str, ...]] = []
    groups = []
    decimals = _decimals(results, phase)
    for index, label in enumerate(results.labels):
        body = _condition_rows(results, index, phase, decimals)
        if body:
            groups.append(len(rows))
        for number, row in enumerate(body):
            rows.append((*((label if number == 0 else "",) if grid else ()), *row))
    return Table(titles, tuple(rows), tuple(groups), len(words))


def _decimals(results: FinishedRuns, phase: str) -> dict[str, int]:
    """Decimals by measure, so that the largest number of a column has some digits, not all."""
    decimals = {}
    for name in _COLUMNS:
        column = measure(name)
        values = [
            column.of_entry(flow, phase)
            for result in results.results
            for flow in result.run.summary["flows"]
        ]
        largest = max((abs(v) * column.factor for v in values if v is not None), default=0.0)
        before_point = math.floor(math.log10(largest)) + 1 if largest > 0 else 1
        decimals[name] = min(max(_DIGITS - before_point, 0), _MOST_DECIMALS)
    return decimals


def _condition_rows(
    results: FinishedRuns, condition: int, phase: str, decimals: Mapping[str, int]
) -> list[tuple[str, ...]]:
    runs = [r.run.summary for r in results.of(condition)]
    if not runs:
        return []
    flows = runs[0]["flows"]

    def found(name: str, flow: str = "") -> Estimate:
        wanted = measure(name)
        return estimate([wanted.of_summary(run, phase, flow) for run in runs], wanted.unit)

    rows = []
    for number, flow in enumerate(flows[:MOST_FLOWS]):
        cells = []
        for name in _COLUMNS:
            ours, factor = found(name, flow["name"]), measure(name).factor
            cells.append(
                plain(ours.value, factor, _PLAIN[name])
                if name in _PLAIN
                else with_interval(ours, factor, decimals[name])
            )
        fairness = with_interval(found("jain"), measure("jain").factor, 3) if number == 0 else ""
        rows.append((flow["name"], flow["controller"], *cells, fairness))
    if len(flows) > MOST_FLOWS:
        more = f"… {len(flows) - MOST_FLOWS} more flows"
        rows.append((more, *[""] * (len(rows[0]) - 1)))
    return rows


def with_interval(found: Estimate, factor: float, decimals: int) -> str:
    """`mean ± half width`; the mean alone where there is no interval."""
    text = plain(found.value, factor, decimals)
    if found.low is None or found.high is None:
        return text
    return f"{text} ± {(found.high - found.low) / 2 * factor:.{decimals}f}"


def plain(value: float | None, factor: float, decimals: int) -> str:
    """Write a number with a fixed number of decimals; a dash if it is absent."""
    return ABSENT if value is None else f"{value * factor:.{decimals}f}"


def interval_note(results: FinishedRuns) -> str:
    """Say what stands behind ± in tables of these results; nothing if no run finished."""
    counts = sorted({len(results.of(c)) for c in range(len(results.conditions))} - {0})
    if not counts:
        return ""
    if counts == [1]:
        runs = "One run" if len(results) == 1 else "One run per condition"
        return f"{runs}: there is no confidence interval; give --repeats."
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"± half of the 95 % confidence interval of the mean over {n} runs (Student t)."


def html_table(table: Table) -> str:
    """Write a table as HTML."""
    lines = ['<table class="jostle"><thead><tr>', _html_cells("th", table.header, table)]
    lines.append("</tr></thead><tbody>")
    for number, row in enumerate(table.rows):
        first = ' class="first"' if number in table.groups else ""
        lines.append(f"<tr{first}>{_html_cells('td', row, table)}</tr>")
    lines.append("</tbody></table>")
    return "".join(lines)


def _html_cells(tag: str, cells: Sequence[str], table: Table) -> str:
    return "".join(
        f'<{tag} style="text-align:{"left" if number < table.text_columns else "right"}">'
        f"{escape(cell).replace(chr(10), '<br>')}</{tag}>"
        for number, cell in enumerate(cells)
    )
