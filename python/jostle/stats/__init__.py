"""Statistics over runs. Every function says its shapes, units and method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.stats.bands import Band, series_band
    from jostle.stats.covariance_ellipse import Ellipse, sigma_ellipse
    from jostle.stats.descriptive import mean, percentile, sd
    from jostle.stats.distribution import Box, box, ecdf
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
    from jostle.stats.mean_estimate import Estimate, Estimates, Method, estimate, estimates, within
    from jostle.stats.mean_ratio import ratio
    from jostle.stats.percentiles import percentile_estimate
    from jostle.stats.performance_envelope import Envelope, conformance, deviation, envelope

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
    "ratio",
    "sd",
    "series_band",
    "sigma_ellipse",
    "t_test",
    "welch_test",
    "within",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Band": "bands",
        "Box": "distribution",
        "Comparison": "hypothesis_tests",
        "Ellipse": "covariance_ellipse",
        "Envelope": "performance_envelope",
        "Estimate": "mean_estimate",
        "Estimates": "mean_estimate",
        "Expectation": "expectation",
        "MannWhitneyResult": "hypothesis_tests",
        "Method": "mean_estimate",
        "box": "distribution",
        "conformance": "performance_envelope",
        "deviation": "performance_envelope",
        "difference": "mean_difference",
        "ecdf": "distribution",
        "effect_size": "hypothesis_tests",
        "envelope": "performance_envelope",
        "estimate": "mean_estimate",
        "estimates": "mean_estimate",
        "expect": "expectation",
        "holm": "hypothesis_tests",
        "mann_whitney": "hypothesis_tests",
        "mean": "descriptive",
        "percentile": "descriptive",
        "percentile_estimate": "percentiles",
        "ratio": "mean_ratio",
        "sd": "descriptive",
        "series_band": "bands",
        "sigma_ellipse": "covariance_ellipse",
        "t_test": "hypothesis_tests",
        "welch_test": "hypothesis_tests",
        "within": "mean_estimate",
    },
)
