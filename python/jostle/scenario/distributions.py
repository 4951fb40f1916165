"""Quantities that are constant or random: `"20 kB"`, `{ distribution = "lognormal", … }`.

The engine implements the distributions and computes their means. This module parses their scenario
syntax. Values are written with units; a table may give the mean instead of the distribution's own
parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, cast

from jostle.run_spec import DistributionKind, Quantity
from jostle.safe_io.untrusted_files import TABLE_BYTES, read_text
from jostle.scenario.parsing.problems import did_you_mean
from jostle.scenario.parsing.quantities import (
    QuantityError,
    parse_number,
    parse_probability,
    parse_size,
    parse_span,
    quoted,
)

__all__ = ["DistributionKeyError", "RandomQuantity", "Unit", "parse_quantity", "quantity_spec"]

Unit = Literal["size", "time", "count"]

_WORKLOADS: Final = Path(__file__).parent / "workloads"
_PARSE: Final[Mapping[Unit, Callable[[Any], float]]] = {
    "size": parse_size,
    "time": parse_span,
    "count": parse_number,
}
_EXAMPLES: Final[Mapping[Unit, str]] = {"size": "20 kB", "time": "2 s", "count": "10"}
_FILE_UNITS: Final[Mapping[Unit, str]] = {"size": "B", "time": "s", "count": ""}
"""Unit of the values in a file without a `unit` key: bytes, as in published workloads."""
_DIGITS: Final = 12
"""Significant digits of computed values. Platforms differ in the last digits of a float, and the
values enter the hash that names a run."""


class DistributionKeyError(QuantityError):
    """An error in one key of a distribution table."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class RandomQuantity:
    """A distribution as the scenario describes it.

    Parameters
    ----------
    law
        Distribution in the engine's form. The points of a distribution read from `file` are absent.
    min, max
        Bounds in base units; the distribution is truncated to them. None if there is no bound.
    file
        File with the points: a bundled workload, or a path relative to the scenario's folder.
    unit
        Base units (bytes, ns) per unit of the file.
    """

    law: Mapping[str, Any] = field(hash=False)
    min: float | None = None
    max: float | None = None
    file: Path | None = None
    unit: float = 1.0


def parse_quantity(unit: Unit, given: Any) -> int | RandomQuantity:
    """Return a quantity in base units, or its distribution.

    Raises
    ------
    QuantityError
        If the value is neither; a `DistributionKeyError` names the key of the table.
    """
    if not isinstance(given, dict):
        return int(_PARSE[unit](given))
    known = (*_LAWS, *_workloads())
    if "distribution" not in given:
        example = f'{{ distribution = "exponential", mean = "{_EXAMPLES[unit]}" }}'
        raise QuantityError(f"no distribution is named — write for example {example}")
    name = given["distribution"]
    if name not in known:
        shown = f'"{name}"' if isinstance(name, str) else "this"
        hint = did_you_mean(str(name), known)
        raise DistributionKeyError("distribution", f"there is no distribution {shown} — {hint}")
    values = {key: value for key, value in given.items() if key != "distribution"}
    bounds = {key: _value(unit, key, values.pop(key)) for key in ("min", "max") if key in values}
    if len(bounds) == 2 and bounds["min"] >= bounds["max"]:
        raise DistributionKeyError(
            "max", f'"{given["max"]}" is not above the min of "{given["min"]}"'
        )
    if name in _LAWS:
        drawn = _LAWS[name](unit, values)
    else:
        _reject_unknown_keys(values, ("min", "max"))
        drawn = RandomQuantity({"kind": "empirical"}, file=_WORKLOADS / f"{name}.cdf")
    if isinstance(drawn, int):
        if bounds:
            raise DistributionKeyError(next(iter(bounds)), "what is constant has no bounds")
        return drawn
    return RandomQuantity(drawn.law, bounds.get("min"), bounds.get("max"), drawn.file, drawn.unit)


def quantity_spec(quantity: int | RandomQuantity, folder: Path) -> Quantity:
    """Return a quantity in the form of the run specification.

    Parameters
    ----------
    quantity
        The quantity.
    folder
        Folder of the scenario, to which file names are relative.

    Raises
    ------
    DistributionKeyError
        If a file cannot be read or does not contain a distribution function.
    """
    if isinstance(quantity, int):
        return quantity
    law = dict(quantity.law)
    if quantity.file is not None:
        law["points"] = _points(folder / quantity.file, quantity.unit)
    # The keys of each law are checked where it is parsed.
    return {"law": cast("DistributionKind", law), "min": quantity.min, "max": quantity.max}


def _workloads() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _WORKLOADS.glob("*.cdf")))


def _value(unit: Unit, key: str, given: Any) -> float:
    try:
        return float(_PARSE[unit](given))
    except QuantityError as error:
        raise DistributionKeyError(key, str(error)) from None


def _positive(unit: Unit, key: str, given: Any) -> float:
    value = _value(unit, key, given)
    if value == 0:
        message = f'"{given}" must be more than 0 — write for example "{_EXAMPLES[unit]}"'
        raise DistributionKeyError(key, message)
    return value


def _number(key: str, given: Any) -> float:
    try:
        value = parse_number(given)
    except QuantityError as error:
        raise DistributionKeyError(key, str(error)) from None
    if value <= 0:
        raise DistributionKeyError(key, f"{given} must be more than 0")
    return value


def _reject_unknown_keys(values: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in values:
        if key not in known:
            accepted = ", ".join(known)
            raise DistributionKeyError(key, f"unknown key — accepted with distribution: {accepted}")


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _constant(unit: Unit, values: Mapping[str, Any]) -> int:
    _reject_unknown_keys(values, ("value",))
    if "value" not in values:
        raise QuantityError(f'value is missing — write for example value = "{_EXAMPLES[unit]}"')
    return int(_value(unit, "value", values["value"]))


def _exponential(unit: Unit, values: Mapping[str, Any]) -> RandomQuantity:
    _reject_unknown_keys(values, ("mean", "min", "max"))
    if "mean" not in values:
        raise QuantityError(f'the mean is missing — write for example mean = "{_EXAMPLES[unit]}"')
    return RandomQuantity({"kind": "exponential", "mean": _positive(unit, "mean", values["mean"])})


def _with_shape(
    unit: Unit,
    values: Mapping[str, Any],
    *,
    kind: str,
    size: str,
    shape: str,
    of_mean: Callable[[float], float],
) -> RandomQuantity:
    """Return a distribution with two parameters.

    Parameters
    ----------
    unit, values
        Unit of the quantity, and the keys of the table.
    kind, size, shape
        Name of the distribution, of its parameter with a unit, and of its dimensionless parameter.
    of_mean
        Factor that converts the mean to the parameter with a unit, as a function of the
        dimensionless parameter; 0 if the distribution has no finite mean.
    """
    _reject_unknown_keys(values, (size, "mean", shape, "min", "max"))
    if shape not in values:
        raise QuantityError(f"{shape} is missing — write for example {shape} = 1.5")
    number = _number(shape, values[shape])
    if ("mean" in values) == (size in values):
        both = "mean" in values
        problem = f"{size} and mean say the same" if both else f"{size} or mean is missing"
        raise QuantityError(f'{problem} — write one of them, as in {size} = "{_EXAMPLES[unit]}"')
    if size in values:
        value = _positive(unit, size, values[size])
    else:
        mean = _positive(unit, "mean", values["mean"])
        share = of_mean(number)
        if share == 0:
            hint = f'write a shape above 1, or {size} = "{_EXAMPLES[unit]}" in place of the mean'
            raise DistributionKeyError(
                shape, f"with a shape of {number:g} there is no finite mean — {hint}"
            )
        value = _rounded(mean * share)
    return RandomQuantity({"kind": kind, size: value, shape: number})


def _weibull_scale(shape: float) -> float:
    try:
        return 1 / math.gamma(1 + 1 / shape)
    except OverflowError:
        return 0.0


def _empirical(unit: Unit, values: Mapping[str, Any]) -> RandomQuantity:
    _reject_unknown_keys(values, ("file", "unit", "quantiles", "min", "max"))
    if ("file" in values) == ("quantiles" in values):
        raise QuantityError(
            'an empirical distribution is a file or quantiles — write for example file = "a.cdf"'
        )
    if "quantiles" in values:
        return RandomQuantity(
            {"kind": "empirical", "points": _quantiles(unit, values["quantiles"])}
        )
    if not isinstance(values["file"], str):
        raise DistributionKeyError("file", 'this is no path — write for example "sizes.cdf"')
    one = values.get("unit", _FILE_UNITS[unit])
    return RandomQuantity(
        {"kind": "empirical"},
        file=Path(values["file"]),
        unit=_value(unit, "unit", f"1 {one}"),
    )


def _quantiles(unit: Unit, given: Any) -> list[dict[str, float]]:
    if not isinstance(given, dict) or len(given) < 2:
        example = f'{{ "0 %" = "{_EXAMPLES[unit]}", …, "100 %" = … }}'
        raise DistributionKeyError(
            "quantiles", f"a table of two quantiles at least — as in {example}"
        )
    points = []
    for written, value in given.items():
        try:
            probability = parse_probability(written)
        except QuantityError as error:
            raise DistributionKeyError("quantiles", str(error)) from None
        points.append((_value(unit, "quantiles", value), probability))
    return _ordered(points, lambda message: DistributionKeyError("quantiles", message))


def _points(path: Path, unit: float) -> list[dict[str, float]]:
    """Read a distribution function: one line per point with value and probability or percentage."""

    def wrong(message: str) -> DistributionKeyError:
        return DistributionKeyError("file", f'"{path.name}"{message}')

    try:
        text = read_text(path, TABLE_BYTES)
    except OSError as error:
        raise wrong(f": {(error.strerror or 'it cannot be read').lower()}") from None
    except ValueError:
        raise wrong(": not a text file") from None
    points = []
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.partition("#")[0].split()
        if not written:
            continue
        try:
            value, probability = (parse_number(one) for one in written)
        except ValueError:
            shown = quoted(line.strip())
            message = f", line {number}: {shown} is not a value and its probability"
            raise wrong(message) from None
        points.append((value * unit, probability))
    if points and points[-1][1] == 100:
        points = [(value, percent / 100) for value, percent in points]
    return _ordered(points, lambda message: wrong(f": {message}"))


def _ordered(
    points: list[tuple[float, float]], wrong: Callable[[str], DistributionKeyError]
) -> list[dict[str, float]]:
    if len(points) < 2:
        raise wrong("a distribution has two points at least")
    for (left, low), (right, high) in pairwise(points):
        if right < left or high < low:
            raise wrong(f"{right:g} with {high:g} comes after {left:g} with {low:g} — both rise")
    if (points[0][1], points[-1][1]) != (0, 1):
        raise wrong("probabilities have to reach from 0 to 1 (or 100 %)")
    return [{"value": value, "probability": probability} for value, probability in points]


_LAWS: Final[Mapping[str, Callable[[Unit, Mapping[str, Any]], int | RandomQuantity]]] = {
    "constant": _constant,
    "exponential": _exponential,
    "lognormal": partial(
        _with_shape,
        kind="lognormal",
        size="median",
        shape="sigma",
        of_mean=lambda sigma: math.exp(-sigma * sigma / 2),
    ),
    "pareto": partial(
        _with_shape,
        kind="pareto",
        size="scale",
        shape="shape",
        of_mean=lambda shape: max(0.0, (shape - 1) / shape),
    ),
    "weibull": partial(
        _with_shape, kind="weibull", size="scale", shape="shape", of_mean=_weibull_scale
    ),
    "empirical": _empirical,
}
