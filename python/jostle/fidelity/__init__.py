"""Fidelity: comparison of simulator and kernel on the same scenario with the same starts."""

from __future__ import annotations

from jostle.fidelity.compare import (
    Comparison,
    ComparisonCell,
    FlowComparison,
    MeasureComparison,
    compare,
)
from jostle.fidelity.quantities import ComparedQuantity, Observation, observe, quantities
from jostle.fidelity.tolerances import TOLERANCES, Kind, Tolerance

__all__ = [
    "TOLERANCES",
    "ComparedQuantity",
    "Comparison",
    "ComparisonCell",
    "FlowComparison",
    "Kind",
    "MeasureComparison",
    "Observation",
    "Tolerance",
    "compare",
    "observe",
    "quantities",
]
