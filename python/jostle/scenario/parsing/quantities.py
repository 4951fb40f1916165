"""Conversion of quantities with units to exact base units.

Times are converted to nanoseconds, rates to bits per second, sizes to bytes. All are whole numbers,
computed with rational arithmetic, so that ``"0.1 ms"`` is exactly 100,000 ns.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Final, Literal, TypeVar

__all__ = [
    "LARGEST",
    "PACKET_BYTES",
    "Amount",
    "Kind",
    "QuantityError",
    "format_amount",
    "format_bound",
    "format_short",
    "parse_amount",
    "parse_number",
    "parse_probability",
    "parse_quantity",
    "parse_rate",
    "parse_size",
    "parse_span",
    "quoted",
]

_Value = TypeVar("_Value")

PACKET_BYTES: Final = 1514
"""Full-sized packet on the wire: 1500 bytes of IP and a 14-byte Ethernet header."""

LARGEST: Final = 2**63 - 1
"""Largest value in base units: the range of an i64, 292 years in nanoseconds."""

_SPANS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
_RATES: Final = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_SIZES: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_PACKETS: Final = ("packets", "packet")
_BDP: Final = "BDP"

# Common spellings of units and the accepted unit.
_MISSPELT: Final = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "msec": "ms",
    "usec": "us",
    "nsec": "ns",
    "m": "min",
    "mins": "min",
    "minute": "min",
    "minutes": "min",
    "hour": "h",
    "hours": "h",
    "bps": "bit/s",
    "kbps": "kbit/s",
    "mbps": "Mbit/s",
    "gbps": "Gbit/s",
    "kb/s": "kbit/s",
    "mb/s": "Mbit/s",
    "gb/s": "Gbit/s",
    "kbit": "kbit/s",
    "mbit": "Mbit/s",
    "gbit": "Gbit/s",
    "byte": "B",
    "bytes": "B",
    "kib": "KiB",
    "pkt": "packets",
    "pkts": "packets",
    "p": "packets",
}

Unit = Literal["bytes", "packets", "bdp"]
_Kind = Literal["time", "rate", "size"]
Kind = Literal["time", "rate", "size", "packets", "bdp", "percent", "number"]
"""Kind of a quantity, for keys that accept several."""

_NAMES: Final[dict[str, str]] = {
    "time": "a time",
    "rate": "a rate",
    "size": "an amount of data",
}
_ALL: Final = {**_SPANS, **_RATES, **_SIZES}
_WRITTEN: Final[dict[str, tuple[str, ...]]] = {
    "time": ("s", "ms", "us", "ns"),
    "rate": ("Gbit/s", "Mbit/s", "kbit/s", "bit/s"),
    "size": ("GB", "MB", "kB", "GiB", "MiB", "KiB", "B"),
}
_EXAMPLES: Final[dict[str, tuple[str, str]]] = {
    "time": ("600", "ms"),
    "rate": ("144", "Mbit/s"),
    "size": ("36", "MB"),
}
_ROUNDING: Final = Fraction(1, 1000)
"""Largest deviation from a whole number of base units (ns, bit/s, bytes) that is rounded off."""
_QUANTITY: Final = re.compile(
    r"\s*(?P<number>[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)"
    r"\s*(?P<unit>[^\d\s].*?)?\s*\Z"
)


_NUMBER_LIKE: Final = re.compile(r"[0-9_.,:eE+ -]{1,40}")
_SHORT: Final = 5
"""Words of up to this many characters are always quoted in error messages."""
_DIGITS: Final = 40
"""Whole numbers of up to this many digits are converted without `Decimal`."""
_LONGEST_TEXT: Final = 200
"""Maximum length of a quantity in characters, including blanks."""


class QuantityError(ValueError):
    """The text is not a quantity of the expected kind. The message names the accepted form."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of data in the unit of the scenario: bytes, packets, or BDPs.

    Parameters
    ----------
    value
        Number of units; a whole number for bytes and packets.
    unit
        ``"bytes"``, ``"packets"`` (of any size) or ``"bdp"``.
    """

    value: Fraction
    unit: Unit

    def to_bytes(self, bdp_bytes: int) -> int:
        """Return the amount in bytes; packets count as full-sized."""
        unit_bytes = {"bytes": 1, "packets": PACKET_BYTES, "bdp": bdp_bytes}[self.unit]
        return self.value.numerator * unit_bytes // self.value.denominator

    def to_packets(self, bdp_bytes: int) -> int:
        """Return the amount in full-sized packets, rounded up, so that it is never 0."""
        if self.unit == "packets":
            return int(self.value)
        return -(-self.to_bytes(bdp_bytes) // PACKET_BYTES)


def _with_memory(parse: Callable[[object], _Value]) -> Callable[[object], _Value]:
    """Parse each text once: the conditions of a scenario repeat most of its quantities."""
    remembered = lru_cache(4096)(parse)

    @wraps(parse)
    def parsed(given: object) -> _Value:
        # Other values than texts can be equal without being the same: `True == 1`.
        return remembered(given) if type(given) is str else parse(given)

    return parsed


@_with_memory
def parse_span(given: object) -> int:
    """Return the nanoseconds of a time such as ``"600 ms"``.

    Raises
    ------
    QuantityError
        If `given` is not a time, has no unit, is negative, or is finer than a nanosecond.
    """
    text, value, _ = _quantity(given, "time", _SPANS)
    return _to_integer(text, value, "ns")


@_with_memory
def parse_rate(given: object) -> int:
    """Return the bits per second of a rate such as ``"144 Mbit/s"``.

    Raises
    ------
    QuantityError
        If `given` is not a rate, has no unit, is negative, or is not whole bits per second.
    """
    text, value, _ = _quantity(given, "rate", _RATES)
    return _to_integer(text, value, "bit/s")


@_with_memory
def parse_size(given: object) -> int:
    """Return the bytes of a size such as ``"36 MB"``.

    Raises
    ------
    QuantityError
        If `given` is not a size, has no unit, is negative, or is not whole bytes.
    """
    text, value, unit = _quantity(given, "size", _SIZES, (*_PACKETS, _BDP))
    if unit == _BDP:
        raise QuantityError(f'{text} cannot be used here — write it in bytes, as in "36 MB"')
    if unit in _PACKETS:
        return _to_integer(text, value * PACKET_BYTES, "B")
    return _to_integer(text, value, "B")


@_with_memory
def parse_amount(given: object) -> Amount:
    """Return an amount such as ``"36 MB"``, ``"1000 packets"`` or ``"1.5 BDP"``.

    Raises
    ------
    QuantityError
        If `given` is not an amount, has no unit, is negative, or is not whole bytes or packets.
    """
    text, value, unit = _quantity(given, "size", _SIZES, (*_PACKETS, _BDP))
    if unit == _BDP:
        _in_range(text, value)
        return Amount(Fraction(value), "bdp")
    if unit in _PACKETS:
        return Amount(Fraction(_to_integer(text, value, "packets")), "packets")
    return Amount(Fraction(_to_integer(text, value, "B")), "bytes")


@_with_memory
def parse_number(given: object) -> float:
    """Return a number without a unit that is not negative.

    Raises
    ------
    QuantityError
        If `given` is not such a number.
    """
    match = None
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        match = _match(given)  # nan and inf do not match
    if match is None or match["unit"] is not None:
        raise QuantityError(f"{_shown(given)} is not a number — write for example 1.5")
    value = _number(_shown(given), match["number"])
    if value < 0:
        raise QuantityError(f"{_shown(given)} is negative — write for example 1.5")
    return float(value)


@_with_memory
def parse_probability(given: object) -> float:
    """Return a probability: a number from 0 to 1, or a percentage such as ``"0.1 %"``.

    Raises
    ------
    QuantityError
        If `given` is neither, or lies outside 0 … 1.
    """
    text = _shown(given)
    match = None
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        match = _match(given)  # nan and inf do not match
    if match is None or match["unit"] not in (None, "%"):
        raise QuantityError(f'{text} is not a probability — write for example 0.01 or "1 %"')
    value = _number(text, match["number"])
    if match["unit"] == "%":
        value /= 100
    if not 0 <= value <= 1:
        raise QuantityError(f"{text} is not a probability from 0 to 1 (0 % to 100 %)")
    return float(value)


@_with_memory
def parse_quantity(given: object) -> tuple[Fraction, Kind]:
    """Return a quantity of any kind and its kind.

    Returns
    -------
    Fraction
        Value in ns, bit/s or bytes; packets, BDPs, percentages and numbers are unconverted.
    Kind
        Kind of the quantity.

    Raises
    ------
    QuantityError
        If `given` is not a quantity, or its unit is unknown.
    """
    text = _shown(given)
    match = None
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        match = _match(given)  # nan and inf do not match
    if match is None:
        raise QuantityError(f'{text} is no quantity — write for example "20 ms", 3 or "1 %"')
    value, unit = _number(text, match["number"]), match["unit"]
    if unit is None:
        return value, "number"
    for kind, units in _KINDS.items():
        if unit in units:
            return value * _ALL.get(unit, 1), kind
    accepted = [u for units in _KINDS.values() for u in units if u.isascii() and u != "packet"]
    near = _MISSPELT.get(unit.lower())
    near = near or next(iter(difflib.get_close_matches(unit, accepted, n=1)), None)
    hint = f'did you mean "{near}"? ' if near else ""
    raise QuantityError(f'{text} has the unknown unit "{unit}" — {hint}accepted: '
                        + ", ".join(accepted))  # fmt: skip


_KINDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "time": tuple(_SPANS),
    "rate": tuple(_RATES),
    "size": tuple(_SIZES),
    "packets": _PACKETS,
    "bdp": (_BDP,),
    "percent": ("%",),
}


def format_amount(value: int, kind: Literal["time", "rate", "size"]) -> str:
    """Format a value in base units with the largest unit in which it is a whole number."""
    units = _WRITTEN[kind]
    unit = next((u for u in units if value % _ALL[u] == 0), units[-1])
    return f"{value // _ALL[unit]} {unit}"


def format_short(value: float, kind: Literal["time", "rate", "size"]) -> str:
    """Format a value in base units with four digits, in the largest unit that gives at least 1."""
    units = _WRITTEN[kind]
    unit = next((u for u in units if value >= _ALL[u]), units[-1])
    return f"{value / _ALL[unit]:.4g} {unit}"


def format_bound(value: int, kind: Literal["time", "rate", "size"]) -> str:
    """Format an upper bound in base units, rounded down if it has too many digits."""
    exact = format_amount(value, kind)
    large = next((u for u in _WRITTEN[kind] if value // _ALL[u] >= 1000), None)
    if large is None or len(exact.split(" ")[0]) <= len(str(value // _ALL[large])):
        return exact
    return f"{value // _ALL[large]} {large}"


def quoted(text: str) -> str:
    """Quote a word of a file that a scenario names, unless the word could be a secret.

    A scenario can name any file that the user can read, and users share error messages.
    """
    if len(text) <= _SHORT or _NUMBER_LIKE.fullmatch(text):
        return f'"{text}"'
    return f"a text of {len(text)} characters"


def _quantity(
    given: object, kind: _Kind, units: Mapping[str, int], others: tuple[str, ...] = ()
) -> tuple[str, Fraction | int, str]:
    """Split a quantity into its displayed form, its value in base units, and its unit."""
    text = _shown(given)
    number, unit = _EXAMPLES[kind]
    example = f'write for example "{number} {unit}"'
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise QuantityError(f"{text} is not {_NAMES[kind]} — {example}")
    match = _match(given)
    if match is None:
        raise QuantityError(f"{text} is not {_NAMES[kind]} — {example}")
    if match["unit"] is None:
        shown = match["number"].lstrip("+-")
        # A number alone may be meant in ms (RTT) or in s (duration). Show both.
        second = f' or "{shown} s"' if kind == "time" else ""
        example = f'write for example "{shown} {unit}"{second}'
        raise QuantityError(f"{text} has no unit — {example}")
    written = match["unit"]
    if written not in units and written not in others:
        raise QuantityError(_wrong_unit(text, written, kind, (*units, *others), example))
    digits = match["number"]
    is_whole = digits.isdecimal() and len(digits) <= _DIGITS
    value = int(digits) if is_whole else _number(text, digits)
    if value < 0:
        raise QuantityError(f"{text} is negative — {example}")
    return text, value * units.get(written, 1), written


def _match(given: str | float) -> re.Match[str] | None:
    """Match a quantity. The length is limited, because matching blanks takes quadratic time."""
    text = str(given)
    return _QUANTITY.match(text) if len(text) <= _LONGEST_TEXT else None


def _wrong_unit(text: str, unit: str, kind: str, known: tuple[str, ...], example: str) -> str:
    for other, units in (("time", _SPANS), ("rate", _RATES), ("size", _SIZES)):
        if other != kind and (unit in units or (other == "size" and unit in (*_PACKETS, _BDP))):
            return f"{text} is {_NAMES[other]}, not {_NAMES[kind]} — {example}"
    accepted = [u for u in known if u.isascii() and u != "packet"]
    near = _MISSPELT.get(unit.lower())
    if near not in accepted:
        same = [u for u in accepted if u.lower() == unit.lower()]
        near = next(iter(same or difflib.get_close_matches(unit, accepted, n=1)), None)
    hint = f'did you mean "{near}"? ' if near else ""
    return f'{text} has the unknown unit "{unit}" — {hint}accepted: {", ".join(accepted)}'


def _number(text: str, digits: str) -> Fraction:
    try:
        decimal = Decimal(digits.replace("_", ""))
    except InvalidOperation:  # the exponent has too many digits
        raise QuantityError(f"{text} is out of range") from None
    # Reject large exponents before a conversion to a number of a million digits.
    if decimal and not -40 < decimal.adjusted() < 40:
        raise QuantityError(f"{text} is too {'large' if decimal.adjusted() > 0 else 'small'}")
    return Fraction(decimal)


def _in_range(text: str, value: Fraction | int) -> None:
    if value > LARGEST:
        raise QuantityError(f"{text} is too large")


def _to_integer(text: str, value: Fraction | int, base: str) -> int:
    _in_range(text, value)
    if isinstance(value, int):
        return value
    nearest = round(value)
    # Programs print 2.1 s as 2.0999999999999996 s, so accept small deviations.
    if abs(value - nearest) >= _ROUNDING or (value and not nearest):
        raise QuantityError(f"{text} is not a whole number of {base}")
    return nearest


def _shown(given: object) -> str:
    if isinstance(given, str):
        whole = len(given) <= _LONGEST_TEXT
        return f'"{given}"' if whole else f'"{given[:40]}…", {len(given)} characters,'
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int | float):
        return str(given)
    return "a table" if isinstance(given, dict) else "a list" if isinstance(given, list) else "this"
