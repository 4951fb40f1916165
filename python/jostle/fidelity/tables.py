"""Comparisons as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.results.tables import ABSENT, Table, plain, with_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostle.fidelity.compare import Cell, Comparison, FlowComparison, MeasureComparison

HEADER = ("condition", "flow", "controller", "quantity")
NUMBERS = ("simulator", "kernel", "difference", "verdict")


def comparison_rows(comparison: Comparison) -> Table:
    """Make a row per condition, flow and quantity, with the unit beside the quantity."""
    grid = len(comparison.cells) > 1 or bool(comparison.cells[0].label)
    rows: list[tuple[str, ...]] = []
    groups = []
    for cell in comparison.cells:
        groups.append(len(rows))
        for number, row in enumerate(_cell_rows(cell)):
            rows.append((*((cell.label if number == 0 else "",) if grid else ()), *row))
    header = HEADER if grid else HEADER[1:]
    return Table((*header, *NUMBERS), tuple(rows), tuple(groups), len(header))


def _cell_rows(cell: Cell) -> Iterator[tuple[str, ...]]:
    if not cell.compared:
        sides = zip(("the simulator", "the kernel"), cell.runs, strict=True)
        missing = " or ".join(side for side, runs in sides if not runs)
        yield (f"no run of {missing}", *[""] * (len(HEADER) + len(NUMBERS) - 2))
    for flow in cell.flows:
        for number, row in enumerate(_flow_rows(cell, flow)):
            yield (*((flow.name, flow.controller) if number == 0 else ("", "")), *row)


def _flow_rows(cell: Cell, flow: FlowComparison) -> Iterator[tuple[str, ...]]:
    for measure in flow.measures:
        shown = measure.quantity
        if len(cell.flows) == 1 and shown.name == "share":
            continue
        yield (
            f"{shown.title} ({shown.shown_unit})",
            with_interval(measure.simulator, shown.factor, shown.decimals),
            with_interval(measure.kernel, shown.factor, shown.decimals),
            difference_text(measure),
            verdict(measure),
        )


def difference_text(measure: MeasureComparison) -> str:
    """Write a difference in the way in which it is judged: relative, in points, or in packets."""
    shown = measure.quantity
    if measure.difference.value is None:
        return ABSENT
    if shown.name == "share":
        return f"{signed(measure.difference.value * shown.factor, 1)} points"
    relative = measure.relative
    percent = None if relative is None else f"{signed(100 * relative, 1)} %"
    if shown.name == "retransmitted":
        packets = signed(measure.difference.value, 0)
        return packets if percent is None else f"{packets} ({percent})"
    return percent or plain(measure.difference.value, shown.factor, shown.decimals)


def verdict(measure: MeasureComparison) -> str:
    """Say whether a difference is within its tolerance; an empty text if it is not judged."""
    if measure.within is None:
        return ""
    return "within" if measure.within else "OUTSIDE"


def signed(value: float, decimals: int) -> str:
    """Write a number with its sign; what rounds to nothing has none."""
    text = f"{value:+.{decimals}f}"
    if float(text) == 0.0:
        return text[1:]
    return text.replace("-", "\N{MINUS SIGN}")
