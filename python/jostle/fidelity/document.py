"""Comparisons as one JSON document, `jostle.fidelity/2`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jostle.fidelity.applications import APPLICATIONS
from jostle.fidelity.tolerances import TOLERANCES

if TYPE_CHECKING:
    from jostle.fidelity.comparison import Comparison, ComparisonCell, MeasureComparison

SCHEMA: Final = "jostle.fidelity/2"


def document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons as plain data for JSON."""
    cells = [cell for comparison in comparisons for cell in comparison.cells]
    return {
        "schema": SCHEMA,
        "tolerances": {
            kind: {
                t.quantity: {
                    "relative": t.relative or None,
                    "absolute": t.absolute or None,
                    "or_inside_interval": t.or_inside_interval,
                }
                for t in tolerances
            }
            for kind, tolerances in (TOLERANCES | APPLICATIONS).items()
        },
        "cells": {"within": sum(cell.within for cell in cells), "total": len(cells)},
        "scenarios": [_scenario(comparison) for comparison in comparisons],
    }


def _scenario(comparison: Comparison) -> dict[str, Any]:
    return {
        "scenario": comparison.scenario,
        "title": comparison.title,
        "versions": {
            "simulator": comparison.simulator_version,
            "kernel": comparison.kernel_version,
        },
        "assumptions": list(comparison.assumptions),
        "conditions": [_cell(cell) for cell in comparison.cells],
        "failures": [
            {
                "side": side,
                "condition": dict(comparison.cells[failure.condition].condition),
                "seed": failure.seed,
                "error": failure.error,
            }
            for side, failure in comparison.failures
        ],
    }


def _cell(cell: ComparisonCell) -> dict[str, Any]:
    return {
        "condition": dict(cell.condition),
        "runs": dict(zip(("simulator", "kernel"), cell.runs, strict=True)),
        "within": cell.within,
        "incomplete": cell.incomplete or None,
        "flows": [
            {
                "name": flow.name,
                "transport": flow.transport,
                "controller": flow.controller,
                "measures": {m.quantity.name: _measure(m) for m in flow.measures},
            }
            for flow in cell.flows
        ],
    }


def _measure(measure: MeasureComparison) -> dict[str, Any]:
    return {
        "unit": measure.quantity.unit,
        "simulator": measure.simulator.entry(),
        "kernel": measure.kernel.entry(),
        "difference": measure.difference.entry() | {"relative": measure.relative},
        # JSON has no infinity.
        "excess": None if measure.excess in (None, math.inf) else measure.excess,
        "within": measure.within,
    }
