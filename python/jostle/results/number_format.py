"""Numbers as tables write them: digits by how far a value can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.results.measures import Measure
    from jostle.stats import Estimate

ABSENT = "–"
_DIGITS = 4
_MOST_DECIMALS = 3
_OF_INTERVALS = 2
"""Digits of an interval's half that say something."""
_SMALL = 10
"""A value below so many units of its column's last digit has its own number of decimals."""
_LOPSIDED = 0.01
_FAR_OFF = 0.1
_ROUNDING = 1e-9
"""Share of a value below which its interval is what floating-point arithmetic leaves of none."""


def decimals(found: Iterable[Estimate], shown: Measure) -> int:
    """Choose decimals for a column.

    Of intervals two digits are written, of the largest value four at most, so that no column shows
    digits that the next repeats would change.
    """
    factor = shown.factor
    present = [one for one in found if one.value is not None]
    if shown.unit in ("packet", "flow") and all(
        float(one.value or 0.0).is_integer() for one in present
    ):
        return 0
    largest = max((abs(one.value or 0.0) * factor for one in present), default=0.0)
    before_point = math.floor(math.log10(largest)) + 1 if largest > 0 else 1
    most = min(max(_DIGITS - before_point, 0), _MOST_DECIMALS)
    halves = sorted(half for one in present if 0.0 < (half := _half(one) * factor) < math.inf)
    return min(most, _own_decimals(halves[len(halves) // 2])) if halves else most


def _own_decimals(half: float) -> int:
    """Choose decimals for an interval's half."""
    return min(_MOST_DECIMALS, max(0, _OF_INTERVALS - 1 - math.floor(math.log10(half))))


def _half(found: Estimate) -> float:
    return 0.0 if found.low is None or found.high is None else (found.high - found.low) / 2


def with_interval(found: Estimate, factor: float, decimals: int) -> str:
    """`mean ± half width`; the interval's ends where it is lopsided; the mean alone without one.

    The mean stands alone as well if all values are equal.
    """
    text = plain(found.value, factor, decimals)
    if found.value is None or found.low is None or found.high is None:
        return text
    half = _half(found)
    if half <= _ROUNDING * abs(found.value):
        # All values are equal, so that they say nothing about the accuracy of the mean.
        return text
    middle = (found.high + found.low) / 2
    if math.isinf(half) or abs(middle - found.value) > _LOPSIDED * half:
        return f"{text} ({_range(found.low, found.high, factor, decimals)})"
    unit = 10.0**-decimals
    if half * factor < unit / 2:
        own = _own_decimals(half * factor)
        if abs(found.value) * factor < _SMALL * unit and own > decimals:
            return with_interval(found, factor, own)
        return f"{text} ± <{unit:.{decimals}f}"
    return f"{text} ± {half * factor:.{decimals}f}"


def plain(value: float | None, factor: float, decimals: int) -> str:
    """Write a number with a fixed number of decimals; a dash if it is absent."""
    return ABSENT if value is None else _fixed(value * factor, decimals)


def _fixed(value: float, decimals: int) -> str:
    """Write a number; what rounds to 0 has no sign."""
    if math.isinf(value):
        return digits(value)
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def spread(ends: tuple[float, float] | None, factor: float, decimals: int) -> str:
    """Write the smallest and the largest; a dash if there are none."""
    return ABSENT if ends is None else _range(*ends, factor, decimals)


def _range(low: float, high: float, factor: float, decimals: int) -> str:
    return f"{_fixed(low * factor, decimals)}–{_fixed(high * factor, decimals)}"


def signed(value: float, decimals: int) -> str:
    """Write a number with its sign; what rounds to nothing has none."""
    text = f"{value:+.{decimals}f}"
    if float(text) == 0.0:
        return text[1:]
    return text.replace("-", "\N{MINUS SIGN}")


def percent(share: float, decimals: int) -> str:
    """Write a share as percent: `12.5 %`."""
    return f"{_fixed(100 * share, decimals)} %"


def count(number: int, noun: str) -> str:
    """Write how many there are: `1 run`, `2 runs`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def estimate_text(estimate: Estimate, *, unit: bool = False, runs: bool = False) -> str:
    """Format a value with half of its interval, or with both ends if it is asymmetric.

    If an event never occurred, the text is the number of such runs. If runs ended before an event,
    it is the range of the possible values. If runs failed, it says how
    many, and why. With `runs` it ends with their number.
    """
    failed = f" ({estimate.incomplete})" if estimate.incomplete else ""
    if runs and estimate.n and estimate.value is not None and not estimate.incomplete:
        failed = f" (n = {estimate.n})"
    if estimate.value is None:
        return f"{ABSENT}{failed}"
    is_count = estimate.never and estimate.unit != "×"
    if estimate.possible is not None and not is_count:
        least, most = estimate.possible
        unit_text = f" {estimate.unit}" if unit and estimate.unit else ""
        return f"{digits(least)} to {digits(most)}{unit_text}{failed}"
    if is_count:
        return estimate.method + (f" ({estimate.incomplete})" if estimate.incomplete else "")
    text = digits(estimate.value)
    if estimate.low is not None and estimate.high is not None:
        half = _half(estimate)
        middle = (estimate.high + estimate.low) / 2
        if half <= _ROUNDING * abs(estimate.value):
            text += f" ± {digits(0)}"
        elif half < math.inf and abs(middle - estimate.value) <= _FAR_OFF * half:
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
