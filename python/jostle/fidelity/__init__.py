"""Fidelity: comparison of simulator and kernel on the same scenario with the same starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.fidelity.compared_quantities import (
        ComparedQuantity,
        Observation,
        observe,
        quantities,
    )
    from jostle.fidelity.comparison import (
        Comparison,
        ComparisonCell,
        FlowComparison,
        MeasureComparison,
        compare,
    )
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

__getattr__ = lazy_names(
    __name__,
    {
        "ComparedQuantity": "compared_quantities",
        "Comparison": "comparison",
        "ComparisonCell": "comparison",
        "FlowComparison": "comparison",
        "Kind": "tolerances",
        "MeasureComparison": "comparison",
        "Observation": "compared_quantities",
        "TOLERANCES": "tolerances",
        "Tolerance": "tolerances",
        "compare": "comparison",
        "observe": "compared_quantities",
        "quantities": "compared_quantities",
    },
)
