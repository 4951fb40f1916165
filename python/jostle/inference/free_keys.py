"""Keys of a scenario that a fit may change, with their ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jostle.errors import InputError
from jostle.scenario.resolving.addressing import find, value_at
from jostle.scenario.text.units import QuantityError

__all__ = ["FreeKey", "free_keys"]

_QUANTITY: Final = re.compile(r"\s*(?P<number>[+-]?[\d._]+(?:[eE][+-]?\d+)?)\s*(?P<unit>\D.*?)?\s*")
_DECIMALS: Final = {
    **dict.fromkeys(("B", "packets", "packet", "ns", "bit/s"), 0),
    **dict.fromkeys(("kB", "kbit/s", "us", "µs", "μs"), 3),
    **dict.fromkeys(("MB", "Mbit/s", "ms"), 6),
    **dict.fromkeys(("KiB", "MiB", "GiB"), 0),
}
"""Decimals after which bytes, nanoseconds and bits per second are whole no more."""
_FACTOR: Final = 4.0
"""Without a range, a key may become so many times larger or smaller."""
_DIGITS: Final = 6


@dataclass(frozen=True)
class FreeKey:
    """A key and the range of its values.

    Attributes
    ----------
    key
        As a scenario addresses it: `bottleneck.rate`.
    low, high
        The range, in `unit`.
    unit
        As the scenario writes it: `Mbit/s`, `ms`, `BDP`, `%`, or nothing for a plain number.
    start
        Where the search begins.
    """

    key: str
    low: float
    high: float
    unit: str
    start: float

    @property
    def logarithmic(self) -> bool:
        """Whether the range is searched by factors, as all are that do not begin at 0."""
        return self.low > 0

    def place(self, value: float) -> float:
        """Where in the range a value is: 0 at its low end, 1 at its high end."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, place: float) -> float:
        """Give the value at a place of the range, rounded as it would be written."""
        if self.logarithmic:
            exact = self.low * (self.high / self.low) ** place
        else:
            exact = self.low + (self.high - self.low) * place
        return round(float(f"{exact:.{_DIGITS}g}"), _DECIMALS.get(self.unit, 2 * _DIGITS))

    def written(self, value: float) -> str | float:
        """Write a value as a scenario has it."""
        if not self.unit:
            return value
        # Quantities in powers of ten would be right as well, and are not how people write.
        digits = f"{value:.{_DECIMALS.get(self.unit, 2 * _DIGITS)}f}"
        return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} {self.unit}"


def free_keys(document: Mapping[str, Any], words: Sequence[str]) -> tuple[FreeKey, ...]:
    """Read `KEY` or `KEY=LOW..HIGH UNIT`, each of which may be several with commas between them.

    Parameters
    ----------
    document
        The scenario, whose value of a key is where the search begins; without a range it extends
        to a quarter and four times of it.
    words
        What was given.

    Raises
    ------
    InputError
        When a key is none, or has neither a range nor a number to begin with.
    """
    given = [part.strip() for word in words for part in word.split(",") if part.strip()]
    keys = [_free_key(document, *part.partition("=")[::2]) for part in given]
    names = [one.key for one in keys]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--free {twice}: given twice")
    if not keys:
        raise InputError("--free: name at least one key, as in --free bottleneck.rate")
    return tuple(keys)


def _free_key(document: Mapping[str, Any], key: str, text: str) -> FreeKey:
    key = key.strip()
    try:
        paths = find(document, key)
    except QuantityError as error:
        raise InputError(f"--free {key}: {error}") from error
    there, present = value_at(document, paths[0])
    written = _number(present) if there and not isinstance(present, bool) else None
    if text.strip():
        low, high, unit = _range(key, text)
        inside = written is not None and written[1] == unit and low <= written[0] <= high
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        return FreeKey(key, low, high, unit, written[0] if written and inside else middle)
    if written is None or written[0] <= 0:
        raise InputError(
            f"--free {key}: the scenario has no number there to begin with — give a range, as in "
            f'"{key}=0.001..5 %"'
        )
    number, unit = written
    high = number * _FACTOR
    return FreeKey(key, number / _FACTOR, min(high, 100.0) if unit == "%" else high, unit, number)


def _range(key: str, text: str) -> tuple[float, float, str]:
    lower, dots, upper = text.partition("..")
    from_, to = _number(lower.strip()), _number(upper.strip())
    if not dots or from_ is None or to is None:
        raise InputError(f'--free {key}={text}: write a range as in "5..50 Mbit/s"')
    (low, first), (high, unit) = from_, to
    if first not in ("", unit):
        raise InputError(f"--free {key}={text}: both ends in one unit, {unit or first}")
    if not 0 <= low < high:
        raise InputError(f"--free {key}={text}: from a smaller value, at least 0, to a larger one")
    return low, high, unit


def _number(value: Any) -> tuple[float, str] | None:
    """Take a value of a scenario apart: its number and its unit."""
    if isinstance(value, int | float):
        return float(value), ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        return float(match["number"]), match["unit"] or ""
    except ValueError:
        return None
