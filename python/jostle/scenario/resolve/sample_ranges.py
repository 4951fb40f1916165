"""Ranges of sampled values: ends with units, and the values between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from jostle.scenario.parsing.problems import did_you_mean
from jostle.scenario.parsing.quantities import (
    Kind,
    QuantityError,
    format_short,
    parse_probability,
    parse_quantity,
)

__all__ = ["KEYS", "Range", "parse_range"]

KEYS: Final = ("from", "to", "scale")
_SCALES: Final = ("linear", "log")
_DIGITS: Final = 4
"""Significant digits of drawn values, so that the condition's name shows the exact value."""

_EXAMPLE: Final = 'write for example { from = "1 Mbit/s", to = "1 Gbit/s", scale = "log" }'


@dataclass(frozen=True)
class Range:
    """All values between two ends, inclusive.

    Parameters
    ----------
    kind
        Kind of the values; `integer` for integers without a unit.
    low, high
        Ends, in base units (ns, bit/s, bytes) or in the unit that both ends share.
    written
        Ends as written in the scenario.
    log
        Whether the logarithm of the value is uniform, instead of the value.
    """

    kind: Kind | Literal["integer"]
    low: float
    high: float
    written: tuple[Any, Any]
    log: bool

    def at(self, share: float) -> Any:
        """Return the value at a position from 0 (low end) to 1 (high end), in scenario form.

        Values other than integers are rounded to four digits, which keeps names short and exact.
        """
        low, high = self.low, self.high
        if self.kind == "integer":
            # All integers are equally likely.
            end = high + 1
            value = self._between(low, end, share)
            return int(min(max(math.floor(value), low), high))
        if share in (0.0, 1.0):
            return self.written[int(share)]
        value = float(f"{self._between(low, high, share):.{_DIGITS}g}")
        if self.kind in ("time", "rate", "size", "packets"):
            value = round(value)
        if value <= low:
            return self.written[0]
        return self.written[1] if value >= high else self._text(value)

    def _between(self, low: float, high: float, share: float) -> float:
        return low * (high / low) ** share if self.log else low + (high - low) * share

    def _text(self, value: float) -> Any:
        match self.kind:
            case "time" | "rate" | "size":
                return format_short(value, self.kind)
            case "packets":
                return f"{value:.0f} packets"
            case "bdp":
                return f"{value:.{_DIGITS}g} BDP"
            case "percent":
                return f"{value:.{_DIGITS}g} %"
            case _:
                return value


class RangeError(QuantityError):
    """An error in a range.

    Parameters
    ----------
    key
        Key of the range's table; empty for the table itself.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def parse_range(table: Mapping[str, Any]) -> Range:
    """Parse a range: `{ from = "1 ms", to = "1 s", scale = "log" }`.

    Raises
    ------
    RangeError
        If a key is missing, unknown or incompatible with another.
    """
    for key in table:
        if key not in KEYS:
            raise RangeError(key, f"unknown key — {did_you_mean(key, KEYS, listed='accepted')}")
    for key in ("from", "to"):
        if key not in table:
            raise RangeError("", f"`{key}` is missing — {_EXAMPLE}")
    scale = table.get("scale", "linear")
    if scale not in _SCALES:
        raise RangeError("scale", f'"{scale}" is no scale — accepted: "linear", "log"')
    written = table["from"], table["to"]
    (low, first), (high, second) = (_end(key, table[key]) for key in ("from", "to"))
    if {first, second} == {"integer", "number"}:
        first = second = "number"
    if first != second:
        message = f"{_shown(written[1])} is {_NAMES[second]}, and `from` {_NAMES[first]}"
        raise RangeError("to", message)
    if low >= high:
        raise RangeError("to", f"{_shown(written[1])} is not more than {_shown(written[0])}")
    if scale == "log" and low <= 0:
        message = f"{_shown(written[0])} has no logarithm — begin above 0"
        raise RangeError("from", message)
    return Range(first, low, high, written, scale == "log")


_NAMES: Final[Mapping[str, str]] = {
    "time": "a time",
    "rate": "a rate",
    "size": "an amount of data",
    "packets": "a number of packets",
    "bdp": "a number of BDP",
    "percent": "a percentage",
    "number": "a number",
    "integer": "a number",
}


def _end(key: str, given: Any) -> tuple[float, Kind | Literal["integer"]]:
    try:
        if isinstance(given, int) and not isinstance(given, bool):
            return float(given), "integer"
        value, kind = parse_quantity(given)
        if kind == "percent":
            parse_probability(given)
    except QuantityError as error:
        raise RangeError(key, str(error)) from None
    return float(value), kind


def _shown(given: Any) -> str:
    return f'"{given}"' if isinstance(given, str) else str(given)
