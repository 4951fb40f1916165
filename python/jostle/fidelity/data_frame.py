"""Comparisons as one frame, with a row per scenario, condition, flow and quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jostle.results.frames import table

if TYPE_CHECKING:
    import polars as pl

    from jostle.fidelity.comparison import Comparison, MeasureComparison

_SIDES: Final = ("simulator", "kernel", "difference")
_NUMBERS: Final = tuple(f"{side}{end}" for side in _SIDES for end in ("", "_low", "_high"))


def fidelity_frame(comparisons: Sequence[Comparison]) -> pl.DataFrame:
    """Return comparisons as a frame, unrounded and in the units of the summary.

    Returns
    -------
    polars.DataFrame
        `scenario`, grid keys, `flow`, `transport`, `controller`, `quantity`, `unit`; mean, `_low`
        and `_high` of the simulator, the kernel and their difference; `relative` (to the kernel's
        mean) and `verdict`: `within`, `outside`, or null if the quantity is not judged.
    """
    keys = list(
        dict.fromkeys(key for one in comparisons for cell in one.cells for key in cell.condition)
    )
    rows = [
        {
            "scenario": comparison.scenario,
            **{key: cell.condition.get(key) for key in keys},
            "flow": flow.name,
            "transport": flow.transport,
            "controller": flow.controller,
            **_numbers(measure),
        }
        for comparison in comparisons
        for cell in comparison.cells
        for flow in cell.flows
        for measure in flow.measures
    ]
    facts = ["scenario", *keys, "flow", "transport", "controller", "quantity", "unit"]
    return table(rows, [*facts, *_NUMBERS, "relative", "verdict"], (*_NUMBERS, "relative"))


def _numbers(measure: MeasureComparison) -> dict[str, Any]:
    judged = {True: "within", False: "outside", None: None}
    found = {
        "quantity": measure.quantity.name,
        "unit": measure.quantity.unit,
        "relative": measure.relative,
        "verdict": judged[measure.within],
    }
    for side in _SIDES:
        found |= getattr(measure, side).columns(side, f"{side}_")
    return found
