"""Fidelity: the simulator beside the kernel, on the same scenario with the same starts."""

from __future__ import annotations

from jostle.fidelity.compare import (
    Cell,
    Comparison,
    FlowComparison,
    MeasureComparison,
    compare,
)
from jostle.fidelity.observe import Observation, Quantity, observe, quantities
from jostle.fidelity.tolerances import TOLERANCES, Kind, Tolerance

__all__ = [
    "TOLERANCES",
    "Cell",
    "Comparison",
    "FlowComparison",
    "Kind",
    "MeasureComparison",
    "Observation",
    "Quantity",
    "Tolerance",
    "compare",
    "observe",
    "quantities",
]
