"""Statistics over runs. Every function says its shapes, units and method."""

from __future__ import annotations

from jostle.stats.bands import Band, series_band
from jostle.stats.compare import (
    Comparison,
    Ranks,
    bonferroni,
    effect_size,
    mann_whitney,
    t_test,
    welch_test,
)
from jostle.stats.describe import mean, percentile, sd
from jostle.stats.difference import difference
from jostle.stats.distribution import Box, box, ecdf
from jostle.stats.ellipse import Ellipse, sigma_ellipse
from jostle.stats.envelope import Envelope, conformance, deviation, envelope
from jostle.stats.estimate import Estimate, Estimates, Method, estimate, estimates, within
from jostle.stats.percentiles import percentile_estimate

__all__ = [
    "Band",
    "Box",
    "Comparison",
    "Ellipse",
    "Envelope",
    "Estimate",
    "Estimates",
    "Method",
    "Ranks",
    "bonferroni",
    "box",
    "conformance",
    "deviation",
    "difference",
    "ecdf",
    "effect_size",
    "envelope",
    "estimate",
    "estimates",
    "mann_whitney",
    "mean",
    "percentile",
    "percentile_estimate",
    "sd",
    "series_band",
    "sigma_ellipse",
    "t_test",
    "welch_test",
    "within",
]
