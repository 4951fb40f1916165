"""Formatting of numbers and estimates for reports."""

from __future__ import annotations

import math

from jostle.results.number_format import ABSENT
from jostle.stats import Estimate

_ROUNDING = 1e-9
"""Relative width below which an interval is considered to be a rounding error."""


def with_interval(estimate: Estimate, *, unit: bool = False) -> str:
    """Format a value with half of its interval, or with both ends if it is asymmetric.

    If runs failed, the text says how many, and why.
    """
    failed = f" ({estimate.incomplete})" if estimate.incomplete else ""
    if estimate.value is None:
        return f"{ABSENT}{failed}"
    text = digits(estimate.value)
    if estimate.low is not None and estimate.high is not None:
        half = (estimate.high - estimate.low) / 2
        middle = (estimate.high + estimate.low) / 2
        if half <= _ROUNDING * abs(estimate.value):
            text += f" ± {digits(0)}"
        elif abs(middle - estimate.value) <= 0.1 * half:
            text += f" ± {digits(half)}"
        else:
            text += f" ({digits(estimate.low)} … {digits(estimate.high)})"
    return (f"{text} {estimate.unit}" if unit and estimate.unit else text) + failed


def digits(value: float) -> str:
    """Format a number: an integer from 1000, two significant digits below 0.1."""
    size = abs(value)
    if math.isinf(size):
        return "∞" if value > 0 else "−∞"
    if size >= 1000:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:.2g}"
