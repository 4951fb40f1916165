"""Comparisons as tables for display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.figures.data import flow_label
from jostle.results.number_format import ABSENT, plain, signed, with_interval
from jostle.results.text_table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jostle.fidelity.comparison import (
        Comparison,
        ComparisonCell,
        FlowComparison,
        MeasureComparison,
    )

_GAP = 2
_FAR = 0.1
"""Difference of an unjudged quantity from which it is reported, as a share of the kernel's mean."""
_NAMED = 3

HEADER = ("condition", "flow", "controller", "quantity")
NUMBERS = ("simulator", "kernel", "difference", "verdict")


def comparison_rows(comparison: Comparison, width: int | None = None) -> Table:
    """Return a table with a row per condition, flow and quantity, and the unit after the quantity.

    If the table is wider than `width` characters, conditions and flows are headings above the rows.
    """
    table = _in_columns(comparison)
    widths = (
        max(map(len, column)) + _GAP for column in zip(table.header, *table.rows, strict=True)
    )
    return table if width is None or sum(widths) - _GAP <= width else _in_sections(comparison)


def _in_sections(comparison: Comparison) -> Table:
    rows: list[tuple[str, ...]] = []
    groups, sections = [], []
    for cell in comparison.cells:
        for flow in cell.flows:
            groups.append(len(rows))
            who = flow_label({"name": flow.name, "controller": flow.sender})
            sections.append(f"{cell.label}: {who}" if cell.label else who)
            for quantity, *numbers in _flow_rows(cell, flow):
                rows.append((quantity.replace(" (packets)", ""), *numbers))
        if not cell.compared:
            groups.append(len(rows))
            sections.append(cell.label)
            (row,) = _cell_rows(cell)
            rows.append((row[0], *[""] * len(NUMBERS)))
    header = (HEADER[-1], *NUMBERS)
    return Table(header, tuple(rows), tuple(groups), 1, sections=tuple(sections))


def _in_columns(comparison: Comparison) -> Table:
    grid = len(comparison.cells) > 1 or bool(comparison.cells[0].label)
    rows: list[tuple[str, ...]] = []
    groups = []
    for cell in comparison.cells:
        groups.append(len(rows))
        for number, row in enumerate(_cell_rows(cell)):
            rows.append((*((cell.label if number == 0 else "",) if grid else ()), *row))
    header = HEADER if grid else HEADER[1:]
    return Table((*header, *NUMBERS), tuple(rows), tuple(groups), len(header))


def _cell_rows(cell: ComparisonCell) -> Iterator[tuple[str, ...]]:
    if not cell.compared:
        sides = zip(("the simulator", "the kernel"), cell.runs, strict=True)
        missing = " or ".join(side for side, runs in sides if not runs)
        why = cell.incomplete or f"no run of {missing}"
        yield (why, *[""] * (len(HEADER) + len(NUMBERS) - 2))
    for flow in cell.flows:
        for number, row in enumerate(_flow_rows(cell, flow)):
            yield (*((flow.name, flow.sender) if number == 0 else ("", "")), *row)


def _flow_rows(cell: ComparisonCell, flow: FlowComparison) -> Iterator[tuple[str, ...]]:
    for measure in flow.measures:
        shown = measure.quantity
        if len(cell.flows) == 1 and shown.name == "share":
            continue
        yield (
            f"{shown.title} ({shown.shown_unit})" if shown.shown_unit else shown.title,
            with_interval(measure.simulator, shown.factor, shown.decimals),
            with_interval(measure.kernel, shown.factor, shown.decimals),
            difference_text(measure),
            verdict(measure),
        )


def difference_text(measure: MeasureComparison) -> str:
    """Return a difference in the form in which it is judged: relative, in points, or in packets."""
    shown = measure.quantity
    if measure.difference.value is None:
        return ABSENT
    if shown.shown_unit == "%":
        return f"{signed(measure.difference.value * shown.factor, 1)} points"
    relative = measure.relative
    percent = None if relative is None else f"{signed(100 * relative, 1)} %"
    if shown.name == "retransmitted":
        packets = signed(measure.difference.value, 0)
        return packets if percent is None else f"{packets} ({percent})"
    return percent or plain(measure.difference.value, shown.factor, shown.decimals)


def not_judged(comparisons: Iterable[Comparison]) -> str:
    """Return a note on unjudged quantities and the largest of their differences, or empty text."""
    cells = [cell for comparison in comparisons for cell in comparison.cells]
    found = [(flow, measure, cell) for cell in cells for flow, measure in cell.not_judged]
    absent = _absent(cells)
    if not found:
        return absent
    names = ", ".join(dict.fromkeys(measure.quantity.title for _, measure, _ in found))
    far = [one for one in found if abs(one[1].relative or 0.0) >= _FAR]
    far.sort(key=lambda one: -abs(one[1].relative or 0.0))
    text = f"Not judged where flows share a link: {names}."
    if far:
        worst = "; ".join(
            f"{measure.quantity.title} of {flow.name}{f' ({cell.label})' if cell.label else ''} "
            f"{signed(100 * (measure.relative or 0.0), 0)} %"
            for flow, measure, cell in far[:_NAMED]
        )
        more = f", and {len(far) - _NAMED} more" if len(far) > _NAMED else ""
        text += f" Of these more than {_FAR * 100:.0f} % off: {worst}{more}."
    return f"{text} {absent}".rstrip()


def _absent(cells: Iterable[ComparisonCell]) -> str:
    """Return a note on quantities of which neither side has a value, or empty text."""
    names: dict[str, dict[str, None]] = {}
    for cell in cells:
        for flow, measure in cell.absent:
            names.setdefault(measure.quantity.title, {})[flow.name] = None
    each = "; ".join(f"{title} of {', '.join(flows)}" for title, flows in names.items())
    return f"Not judged, because neither side has a value: {each}." if each else ""


def verdict(measure: MeasureComparison) -> str:
    """Return whether a difference is within its tolerance, or that it is not judged."""
    if measure.within is None:
        return "not judged"
    if not measure.within:
        return "OUTSIDE"
    return f"within {measure.wider_bound}" if measure.wider_bound else "within"
