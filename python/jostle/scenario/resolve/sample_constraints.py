"""Constraints of a sample: comparisons of keys and quantities, parsed without executing code.

`bottleneck.rate * flows.main.rtt <= 10 MB` compares two products; `flows.a.controller !=
flows.b.controller` compares two words. Units are checked: a rate times a time is an amount of data.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NoReturn

from jostle.scenario.parsing.quantities import PACKET_BYTES, Kind, QuantityError, parse_quantity

__all__ = ["Constraint", "parse_constraint"]

_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_EQUAL: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"==": operator.eq, "!=": operator.ne}
_KEY: Final = r'[A-Za-z_][\w-]*(?:\.(?:"[^"]*"|[\w-]+))*'
_TOKENS: Final = re.compile(
    r"\s*(?:(?P<operator><=|>=|==|!=|<|>|\*|/)"
    rf"|(?P<number>(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?\s*(?:%|[A-Za-zµμ]+(?:/s)?)?)"
    rf'|(?P<key>{_KEY})|"(?P<word>[^"]*)")'
)
_MOST_CHARACTERS: Final = 1000
_EXAMPLE: Final = 'write for example "bottleneck.rate * flows.NAME.rtt <= 10 MB"'

# Powers of time, data and BDP.
Units = tuple[int, int, int]
_UNITS: Final[Mapping[Kind, Units]] = {
    "time": (1, 0, 0),
    "rate": (-1, 1, 0),
    "size": (0, 1, 0),
    "packets": (0, 1, 0),
    "bdp": (0, 0, 1),
    "percent": (0, 0, 0),
    "number": (0, 0, 0),
}
# Seconds and bytes, in the base units of parsed quantities.
_FACTORS: Final[Mapping[Kind, Fraction]] = {
    "time": Fraction(1, 10**9),
    "rate": Fraction(1, 8),
    "packets": Fraction(PACKET_BYTES),
    "percent": Fraction(1, 100),
}


@dataclass(frozen=True)
class _Factor:
    """A key or a value, and whether it is a divisor."""

    key: str
    value: Any
    divides: bool


@dataclass(frozen=True)
class Constraint:
    """One comparison.

    Parameters
    ----------
    text
        Comparison as written in the scenario.
    """

    text: str
    _left: tuple[_Factor, ...]
    _operator: str
    _right: tuple[_Factor, ...]

    @property
    def keys(self) -> list[str]:
        """Keys in the comparison."""
        return list(dict.fromkeys(f.key for f in (*self._left, *self._right) if f.key))

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the comparison holds for values of its keys, in the form of the document.

        Raises
        ------
        QuantityError
            If the two sides have different units.
        """
        left, right = (self._side(side, values) for side in (self._left, self._right))
        if self._operator in _EQUAL and not (isinstance(left, tuple) and isinstance(right, tuple)):
            return _EQUAL[self._operator](left, right)
        if not isinstance(left, tuple) or not isinstance(right, tuple):
            raise QuantityError(f"{self._operator} is for quantities — words are == or != others")
        if left[1] != right[1]:
            raise QuantityError(
                f"the left side is {_unit(left[1])} and the right side {_unit(right[1])}"
            )
        return {**_ORDER, **_EQUAL}[self._operator](left[0], right[0])

    def _side(self, side: tuple[_Factor, ...], values: Mapping[str, Any]) -> Any:
        """Return the number and its units, or a value that is not a quantity unchanged."""
        found = [_quantity(values[f.key] if f.key else f.value) for f in side]
        if len(found) == 1:
            return found[0]
        product, units = Fraction(1), (0, 0, 0)
        for factor, one in zip(side, found, strict=True):
            if not isinstance(one, tuple):
                raise QuantityError(f"{factor.key or factor.value} is no quantity")
            number, kind = one
            if factor.divides and not number:
                raise QuantityError(f"{factor.key or factor.value} is 0 and divides")
            product = product / number if factor.divides else product * number
            sign = -1 if factor.divides else 1
            units = tuple(u + sign * k for u, k in zip(units, kind, strict=True))
        return product, units


def parse_constraint(text: Any) -> Constraint:
    """Parse one comparison.

    Raises
    ------
    QuantityError
        If the text is not a valid comparison.
    """
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise QuantityError(f"a constraint is a text — {_EXAMPLE}")
    sides: list[list[_Factor]] = [[]]
    compared, expected, divides = "", True, False
    for token in _tokens(text):
        kind, word = token
        if (kind != "operator") != expected:
            _refuse(text, word)
        expected = not expected
        if kind != "operator":
            # A word that is not a number is compared as text.
            sides[-1].append(_Factor(word if kind == "key" else "",
                                     None if kind == "key" else word, divides))  # fmt: skip
            divides = False
        elif word in ("*", "/"):
            divides = word == "/"
        elif compared:
            raise QuantityError("one comparison at a time — write a constraint for each")
        else:
            compared = word
            sides.append([])
    if not compared or expected:
        raise QuantityError(f"this compares nothing — {_EXAMPLE}")
    made = Constraint(text, tuple(sides[0]), compared, tuple(sides[1]))
    if not made.keys:
        raise QuantityError(f"no key is compared — {_EXAMPLE}")
    return made


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while text[at:].strip():
        match = _TOKENS.match(text, at)
        if match is None or match.lastgroup is None:
            _refuse(text, text[at:].strip()[:20])
        yield match.lastgroup, match[match.lastgroup]
        if match.lastgroup == "number":
            parse_quantity(match["number"])
        at = match.end()


def _refuse(text: str, word: str) -> NoReturn:
    raise QuantityError(f'"{text}" is not understood at "{word}" — {_EXAMPLE}')


def _quantity(given: Any) -> Any:
    """Return a number in s and B with its units; other values are returned unchanged."""
    try:
        value, kind = parse_quantity(given)
    except QuantityError:
        return given
    return value * _FACTORS.get(kind, 1), _UNITS[kind]


def _unit(units: Units) -> str:
    if not any(units):
        return "a number"
    names = {
        (1, 0, 0): "a time",
        (-1, 1, 0): "a rate",
        (0, 1, 0): "an amount of data",
        (0, 0, 1): "a number of BDP",
    }
    powers = " ".join(
        f"{name}^{power}" for name, power in zip(("s", "B", "BDP"), units, strict=True) if power
    )
    return names.get(units, powers)
