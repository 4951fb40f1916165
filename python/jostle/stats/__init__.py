"""Statistics over runs. Every function says its shapes, units and method."""

from __future__ import annotations

from jostle.stats.bands import Band, series_band
from jostle.stats.describe import jain, mean, percentile, sd
from jostle.stats.difference import difference
from jostle.stats.estimate import Estimate, Method, estimate

__all__ = [
    "Band",
    "Estimate",
    "Method",
    "difference",
    "estimate",
    "jain",
    "mean",
    "percentile",
    "sd",
    "series_band",
]
