"""Statistics over runs. Every function says its shapes, units and method."""

from __future__ import annotations

from jostle.stats.covariance_ellipse import Ellipse, sigma_ellipse
from jostle.stats.descriptive import mean, percentile, sd
from jostle.stats.distribution import Box, box, ecdf
from jostle.stats.estimate import Estimate, Estimates, Method, estimate, estimates, within
from jostle.stats.expectation import Expectation, expect
from jostle.stats.hypothesis_tests import (
    Comparison,
    MannWhitneyResult,
    effect_size,
    holm,
    mann_whitney,
    t_test,
    welch_test,
)
from jostle.stats.mean_difference import difference
from jostle.stats.percentiles import percentile_estimate
from jostle.stats.performance_envelope import Envelope, conformance, deviation, envelope
from jostle.stats.series_band import Band, series_band

__all__ = [
    "Band",
    "Box",
    "Comparison",
    "Ellipse",
    "Envelope",
    "Estimate",
    "Estimates",
    "Expectation",
    "MannWhitneyResult",
    "Method",
    "box",
    "conformance",
    "deviation",
    "difference",
    "ecdf",
    "effect_size",
    "envelope",
    "estimate",
    "estimates",
    "expect",
    "holm",
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
