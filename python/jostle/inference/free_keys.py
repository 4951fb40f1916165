"""Keys of a scenario that a fit may change, with their ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jostle.errors import InputError
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.resolve.key_paths import find, full_key, value_at

__all__ = ["FittedKey", "free_keys"]

_QUANTITY: Final = re.compile(r"\s*(?P<number>[+-]?[\d._]+(?:[eE][+-]?\d+)?)\s*(?P<unit>\D.*?)?\s*")
_DECIMALS: Final = {
    **dict.fromkeys(("B", "packets", "packet", "ns", "bit/s"), 0),
    **dict.fromkeys(("kB", "kbit/s", "us", "µs", "μs"), 3),
    **dict.fromkeys(("MB", "Mbit/s", "ms"), 6),
    **dict.fromkeys(("KiB", "MiB", "GiB"), 0),
}
"""Decimals by unit, up to which a value is a whole number of bytes, ns or bit/s."""
_FACTOR: Final = 4.0
"""Factor by which a key without a range may increase or decrease."""
_DIGITS: Final = 6


@dataclass(frozen=True)
class FittedKey:
    """A key with the range of its values.

    Attributes
    ----------
    key
        Key in scenario notation: `bottleneck.rate`.
    low, high
        Ends of the range, in `unit`.
    unit
        Unit in scenario notation: `Mbit/s`, `ms`, `BDP`, `%`, or empty for a plain number.
    start
        Initial value of the search.
    """

    key: str
    low: float
    high: float
    unit: str
    start: float

    @property
    def logarithmic(self) -> bool:
        """Whether the range is searched on a logarithmic scale; so if it does not begin at 0."""
        return self.low > 0

    def relative_position(self, value: float) -> float:
        """Return the position of a value in the range: 0 at its low end, 1 at its high end."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, place: float) -> float:
        """Return the value at a position in the range, rounded to the precision of the output."""
        if self.logarithmic:
            exact = self.low * (self.high / self.low) ** place
        else:
            exact = self.low + (self.high - self.low) * place
        return round(float(f"{exact:.{_DIGITS}g}"), _DECIMALS.get(self.unit, 2 * _DIGITS))

    def written(self, value: float) -> str | float:
        """Return a value in scenario notation."""
        if not self.unit:
            return value
        # Avoid exponents, which are valid but less readable.
        digits = f"{value:.{_DECIMALS.get(self.unit, 2 * _DIGITS)}f}"
        return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} {self.unit}"


def free_keys(document: Mapping[str, Any], words: Sequence[str]) -> tuple[FittedKey, ...]:
    """Parse comma-separated keys `KEY` or `KEY=LOW..HIGH UNIT`.

    Parameters
    ----------
    document
        Scenario. The search starts at its value of a key. The default range is a quarter to four
        times that value.
    words
        Arguments of `--vary`.

    Raises
    ------
    InputError
        If a key does not exist, or has neither a range nor a number as value.
    """
    given = [part.strip() for word in words for part in word.split(",") if part.strip()]
    keys = [_free_key(document, *part.partition("=")[::2]) for part in given]
    names = [one.key for one in keys]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--vary {twice}: given twice")
    if not keys:
        raise InputError("--vary: name at least one key, as in --vary bottleneck.rate")
    return tuple(keys)


def _free_key(document: Mapping[str, Any], key: str, text: str) -> FittedKey:
    key = key.strip()
    try:
        key = full_key(document, key)
        paths = find(document, key)
    except QuantityError as error:
        raise InputError(f"--vary {key}: {error}") from error
    there, present = value_at(document, paths[0])
    written = _number(present) if there and not isinstance(present, bool) else None
    if text.strip():
        low, high, unit = _range(key, text)
        inside = written is not None and written[1] == unit and low <= written[0] <= high
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        return FittedKey(key, low, high, unit, written[0] if written and inside else middle)
    if written is None or written[0] <= 0:
        raise InputError(
            f"--vary {key}: the scenario has no number there to begin with — give a range, as in "
            f'"{key}=0.001..5 %"'
        )
    number, unit = written
    high = number * _FACTOR
    return FittedKey(key, number / _FACTOR, min(high, 100.0) if unit == "%" else high, unit, number)


def _range(key: str, text: str) -> tuple[float, float, str]:
    lower, dots, upper = text.partition("..")
    from_, to = _number(lower.strip()), _number(upper.strip())
    if not dots or from_ is None or to is None:
        raise InputError(f'--vary {key}={text}: write a range as in "5..50 Mbit/s"')
    (low, first), (high, unit) = from_, to
    if first not in ("", unit):
        raise InputError(f"--vary {key}={text}: both ends in one unit, {unit or first}")
    if not 0 <= low < high:
        raise InputError(f"--vary {key}={text}: from a smaller value, at least 0, to a larger one")
    return low, high, unit


def _number(value: Any) -> tuple[float, str] | None:
    """Split a value of a scenario into its number and its unit."""
    if isinstance(value, int | float):
        return float(value), ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        return float(match["number"]), match["unit"] or ""
    except ValueError:
        return None
