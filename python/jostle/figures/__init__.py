"""Figures: their data (`data`), rendering (`draw`) and output files (`save`)."""

from __future__ import annotations

from jostle.figures.data import (
    Curve,
    CurvesData,
    GroupsData,
    HeatMapData,
    Line,
    PanelData,
    PhaseBand,
    StackedData,
    stacked,
)

__all__ = [
    "Curve",
    "CurvesData",
    "GroupsData",
    "HeatMapData",
    "Line",
    "PanelData",
    "PhaseBand",
    "StackedData",
    "stacked",
]
