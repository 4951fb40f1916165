"""Positions on an axis for the values of a grid key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jostle.results.condition_names import short_names
from jostle.results.measure_samples import grid_keys

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

_SI: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
_BASES: Final = ("bit/s", "BDP", "packets", "packet", "B", "s", "%")
_LOG_FROM: Final = 20.0
"""Ratio of largest to smallest value above which an axis is logarithmic."""


@dataclass(frozen=True)
class Axis:
    """Positions on an axis for the values of a key.

    Attributes
    ----------
    label
        Label of the axis.
    places
        Value → position.
    names
        Names of the positions 0, 1, … if the values are not numbers.
    log
        Whether the axis is logarithmic.
    """

    label: str
    places: Mapping[str, float]
    names: tuple[str, ...]
    log: bool

    @classmethod
    def of(cls, results: FinishedRuns, key: str, values: Sequence[str]) -> Axis:
        """Return the axis for the values of a key."""
        names = tuple(dict.fromkeys(values))
        label = key_name(results, key)
        numbers = [_number(name) for name in names]
        units = {unit for _, unit, _ in numbers if unit is not None}
        bases = {base for _, _, base in numbers}
        if None in bases or len(bases) != 1 or len(names) < 2:
            return cls(label, {name: float(at) for at, name in enumerate(names)}, names, False)
        # Convert to the unit of the first value, so that 500 kbit/s precedes 1 Mbit/s.
        unit = numbers[0][1] or ""
        scale = _scale(unit)
        places = {name: n * _scale(u or "") / scale for name, (n, u, _) in
                  zip(names, numbers, strict=True)}  # fmt: skip
        low, high = min(places.values()), max(places.values())
        titled = f"{label} ({unit})" if units != {""} else label
        return cls(titled, places, (), low > 0 and high / low >= _LOG_FROM)


def _number(text: str) -> tuple[float, str | None, str | None]:
    """Split a quantity into number, unit and unit dimension; the latter is None for other text."""
    match = re.fullmatch(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(\S*)", text.strip())
    if match is None:
        return 0.0, None, None
    unit = match[2]
    base = next((b for b in _BASES if unit.endswith(b) and unit.removesuffix(b) in _SI), None)
    return float(match[1]), unit, unit if base is None else base


def _scale(unit: str) -> float:
    for base in _BASES:
        if unit.endswith(base) and unit.removesuffix(base) in _SI:
            return _SI[unit.removesuffix(base)]
    return 1.0


def without_unit(names: Sequence[str], label: str) -> tuple[tuple[str, ...], str]:
    """Move a unit that all names end with to the label."""
    numbers = [_number(name) for name in names]
    units = {unit for _, unit, base in numbers if base is not None}
    if len(units) != 1 or not all(base is not None for _, _, base in numbers):
        return tuple(names), label
    (unit,) = units
    if not unit:
        return tuple(names), label
    return tuple(name.removesuffix(unit).strip() for name in names), f"{label} ({unit})"


def key_name(results: FinishedRuns, key: str) -> str:
    """Return the shortest ending of a grid key that is unique."""
    return short_names(grid_keys(results)).get(key, key)
