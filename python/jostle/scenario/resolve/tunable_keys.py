"""Keys that a search varies, with explicit ranges or ranges of the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import QuantityError, format_amount
from jostle.scenario.registry import Parameter, Registry, Row
from jostle.scenario.resolve.grid import dimension_of
from jostle.scenario.resolve.key_paths import WORD_KEYS, find, value_at
from jostle.scenario.resolve.sample import Variable
from jostle.scenario.resolve.sample_ranges import KEYS, parse_range

__all__ = ["variable"]

_LOG_FROM: Final = 100.0
"""Ratio of the ends of a registry range from which the search uses a logarithmic scale."""
_UNITS: Final[Mapping[str, Any]] = {"span": "time", "rate": "rate", "size": "size"}


def variable(
    document: Mapping[str, Any], registry: Registry, key: str, given: Any = None
) -> Variable:
    """Return a key of a document with its possible values.

    Parameters
    ----------
    document
        Document of the scenario.
    registry
        Registry with the ranges of parameters.
    key
        Key as in a grid.
    given
        A range (`{ from = …, to = …, scale = … }`), or a list or table of values; if None, the
        range of the parameter in the registry.

    Raises
    ------
    QuantityError
        If the key or the parameter does not exist, or has no range.
    """
    targets = find(document, key)
    written = given if given is not None else _registered(document, registry, key, targets[0])
    drawn = None
    values = written
    if isinstance(written, dict) and set(written) & set(KEYS):
        drawn = parse_range(written)
        values = list(drawn.written)
    report = Report()
    # The path does not matter, because problems are reported without a line.
    dimension = dimension_of(document, ("sample", key), values, report)
    if dimension is None:
        raise QuantityError("; ".join(message for _, message in report.found))
    return Variable(key, dimension.targets, drawn, () if drawn else dimension.levels)


def _registered(document: Mapping[str, Any], registry: Registry, key: str, target: KeyPath) -> Any:
    parameter = _parameter(document, registry, key, target)
    if parameter.kind == "bool":
        return [False, True]
    if parameter.kind == "choice":
        return list(parameter.choices)
    low, high = parameter.minimum, parameter.maximum
    if low is None or high is None or parameter.kind in ("file", "limit"):
        raise QuantityError(f'"{key}" has no default range — {_EXAMPLE}')
    scale = "log" if low > 0 and high / low >= _LOG_FROM else "linear"
    unit = _UNITS.get(parameter.kind)
    ends: list[Any] = [low, high]
    if unit is not None:
        ends = [format_amount(int(end), unit) for end in ends]
    elif parameter.kind == "packets":
        ends = [f"{end:.0f} packets" for end in ends]
    elif parameter.kind == "integer":
        ends = [int(end) for end in ends]
    else:
        ends = [float(end) for end in ends]
    return {"from": ends[0], "to": ends[1], "scale": scale}


_EXAMPLE: Final = 'write for example KEY={ from = "1 ms", to = "20 ms" } or KEY=["a", "b"]'


def _parameter(
    document: Mapping[str, Any], registry: Registry, key: str, target: KeyPath
) -> Parameter:
    kinds: Mapping[str, Mapping[str, Row]] = {
        "controller": {**registry.controllers, **registry.quic_controllers},
        "slow_start": registry.slow_starts,
        "peer_cache": registry.peer_caches,
        "queue": registry.queues,
        "loss": registry.losses,
    }
    room = str(target[-2]) if len(target) > 1 else ""
    if room not in kinds:
        raise QuantityError(f'"{key}" is no parameter with a range — {_EXAMPLE}')
    exists, table = value_at(document, target[:-1])
    name = table.get(WORD_KEYS.get(room, "name")) if isinstance(table, dict) else table
    if isinstance(table, dict) and name is None:
        name = table.get("kind")
    row = kinds[room].get(str(name)) if exists else None
    if row is None:
        raise QuantityError(f'"{key}": the file names no {room} there whose parameters are known')
    parameter = row.parameters.get(str(target[-1]))
    if parameter is None:
        hint = did_you_mean(str(target[-1]), list(row.parameters), listed="parameters")
        raise QuantityError(f'{row.name} has no parameter "{target[-1]}" — {hint}')
    return parameter
