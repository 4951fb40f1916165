"""The engine's registries as Python sees them: algorithms and queues, and their parameters.

Nothing here knows the name of a row; all of them come from the engine.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from jostle.foreign_files import TABLE_BYTES, read_bytes
from jostle.scenario.text.units import (
    Amount,
    QuantityError,
    format_amount,
    parse_amount,
    parse_probability,
    parse_rate,
    parse_span,
)

__all__ = ["Parameter", "Registry", "Row", "Value"]

Value = bool | int | float | str | dict[str, int]
"""A resolved parameter: times in ns, rates in bit/s, sizes in bytes, files in Base64; a queue's
limit as ``{"bytes": n}`` or ``{"packets": n}``."""

Check = Callable[[str, str, str, bytes], None]
"""Given a kind of row, a row, a parameter and a content, raises `ValueError` if it does not fit."""

Problem = tuple[str | None, str, tuple[int, int, int] | None]
"""Place, message, and a number out of range with its bounds: see `jostle._core.find_problem`."""

_AMOUNTS: Final = ("size", "limit", "packets")
"""Kinds that are amounts of data: what a BDP is depends on the link."""

_BASE_UNITS: Final[dict[str, str]] = {
    "span": "ns",
    "rate": "bps",
    "size": "bytes",
    "limit": "bytes",
}
_PARSERS: Final[Mapping[str, Callable[[object], int | float]]] = {
    "span": parse_span,
    "rate": parse_rate,
    "probability": parse_probability,
}
_EXPECTED: Final = {
    "bool": "true or false",
    "probability": "a probability from 0 to 1 (0 % to 100 %)",
}
_NOUNS: Final = {"integer": "whole number", "packets": "number of packets"}
_QUANTITIES: Final[dict[str, Literal["time", "rate", "size"]]] = {
    "span": "time",
    "rate": "rate",
    "size": "size",
    "limit": "size",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a row.

    Parameters
    ----------
    name, summary
        As the registry has them.
    kind
        ``bool``, ``integer``, ``number``, ``probability``, ``span``, ``rate``, ``size``, ``limit``,
        ``packets``, ``choice`` or ``file``.
    default
        Value when a scenario is silent, in base units; None if a scenario has to give one.
    minimum, maximum
        Range, both ends included; None for kinds without one. That of a ``limit`` is in bytes.
    choices
        The words of a ``choice``.
    content
        What a ``file`` holds, in words.
    check
        Raises `ValueError` for a content that a ``file`` must not have.
    """

    name: str
    summary: str
    kind: str
    default: Value | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    content: str = ""
    check: Callable[[bytes], None] | None = None

    def expected(self) -> str:
        """Return what values are accepted, in words."""
        if self.kind in _EXPECTED:
            return _EXPECTED[self.kind]
        if self.kind == "choice":
            return "one of " + ", ".join(f'"{c}"' for c in self.choices)
        if self.kind == "file":
            return f"the path of a file with {self.content}"
        if self.kind in _QUANTITIES and self.minimum is not None and self.maximum is not None:
            quantity = _QUANTITIES[self.kind]
            low = format_amount(int(self.minimum), quantity)
            high = format_amount(int(self.maximum), quantity)
            return f'a value from "{low}" to "{high}"'
        noun = _NOUNS.get(self.kind, "number")
        return f"a {noun} from {self.minimum} to {self.maximum}"

    def parse(self, given: object, folder: Path | None = None) -> Value | Amount:
        """Return the value that a scenario gives, checked against kind and range.

        Parameters
        ----------
        given
            The value, as it stands in the scenario.
        folder
            What paths of files are relative to; here if None.

        Returns
        -------
        bool, int, float, str or Amount
            In base units. Amounts of data stay an `Amount`: what a BDP is depends on the link.

        Raises
        ------
        QuantityError
            If the value does not fit.
        """
        if self.kind in _AMOUNTS:
            amount = parse_amount(given)
            if self.kind == "size" and amount.unit == "bytes":
                self._check(given, int(amount.value))
            return amount
        if self.kind == "file":
            return self._read_file(given, folder or Path())
        return self._check(given, self._read(given))

    def in_base_units(self, amount: Amount, bdp_bytes: int) -> Value:
        """Return an amount as a run's specification has it.

        Parameters
        ----------
        amount
            What a scenario gives.
        bdp_bytes
            What one bandwidth-delay product is.

        Raises
        ------
        QuantityError
            If it is out of range.
        """
        if self.kind == "packets":
            packets = amount.to_packets(bdp_bytes)
            self._check_amount(packets, f"{packets} packets")
            return packets
        size = amount.to_bytes(bdp_bytes)
        if self.kind == "size":
            self._check_amount(size, f"{size} B")
            return size
        if self.minimum is not None and size < self.minimum:
            least = f"{int(self.minimum)} B or 1 packet"
            raise QuantityError(f"the queue cannot hold one packet — write at least {least}")
        self._check_amount(size, f"{size} B")
        in_packets = amount.unit == "packets"
        return {"packets": amount.to_packets(bdp_bytes)} if in_packets else {"bytes": size}

    def _check_amount(self, value: int, shown: str) -> None:
        if self.maximum is not None and value > self.maximum:
            raise QuantityError(f"too much — accepted: {self.expected()}")
        if self.minimum is not None and value < self.minimum:
            raise QuantityError(f"{shown} is too little — accepted: {self.expected()}")

    def _read_file(self, given: object, folder: Path) -> str:
        """Return the content of a file, which is what a run depends on, whatever its name."""
        if not isinstance(given, str):
            raise QuantityError(f"cannot be {_written(given)} — accepted: {self.expected()}")
        path = folder / given
        try:
            content = read_bytes(path, TABLE_BYTES)
            if self.check is not None:
                self.check(content)
        except OSError as error:
            reason = error.strerror or "it cannot be read"
            problem = f"{reason[0].lower()}{reason[1:]}"
        except ValueError as error:
            # Of the check, or of a path with a null character.
            problem = str(error)
        else:
            return base64.b64encode(content).decode("ascii")
        raise QuantityError(f'file "{path}": {problem} — accepted: {self.expected()}')

    def _read(self, given: object) -> Value:
        if self.kind in _PARSERS:
            return _PARSERS[self.kind](given)
        fits: bool
        match self.kind:
            case "bool":
                fits = isinstance(given, bool)
            case "integer":
                fits = isinstance(given, int) and not isinstance(given, bool)
            case "number":
                # A probability may be written as a percentage, like everywhere in a scenario.
                if isinstance(given, str) and self.maximum == 1:
                    return parse_probability(given)
                fits = isinstance(given, int | float) and not isinstance(given, bool)
            case _:
                fits = isinstance(given, str) and given in self.choices
        if not fits:
            raise QuantityError(f"cannot be {_written(given)} — accepted: {self.expected()}")
        assert isinstance(given, bool | int | float | str)
        if self.kind != "number":
            return given
        # A whole number beyond the range of floats is beyond every parameter's range too.
        try:
            return float(given)
        except OverflowError:
            return float("inf")

    def _check(self, given: object, value: Value) -> Value:
        if self.minimum is None or self.maximum is None or isinstance(value, str | bool | dict):
            return value
        quantity = _QUANTITIES.get(self.kind)
        if quantity is not None and value < self.minimum:
            low = format_amount(int(self.minimum), quantity)
            raise QuantityError(f'cannot be {_written(given)} — at least "{low}"')
        if quantity is not None and value > self.maximum:
            high = format_amount(int(self.maximum), quantity)
            raise QuantityError(f'cannot be {_written(given)} — at most "{high}"')
        if not self.minimum <= value <= self.maximum:
            raise QuantityError(f"cannot be {_written(given)} — accepted: {self.expected()}")
        return value


@dataclass(frozen=True)
class Row:
    """A controller, slow start, memory, queue or kind of loss.

    Parameters
    ----------
    name, summary, group, source
        As the registry has them; `group` is its class.
    parameters
        By name, in the registry's order.
    slow_start
        Name of a controller's default slow start; None if it has its own.
    needs_ecn
        Whether a controller is for connections with ECN.
    """

    name: str
    summary: str
    group: str
    source: str
    parameters: Mapping[str, Parameter]
    slow_start: str | None
    needs_ecn: bool = False

    @property
    def classful(self) -> bool:
        """Whether it is a queue that may have classes."""
        return self.group == "classful"


@dataclass(frozen=True)
class Registry:
    """Everything that a scenario can name.

    Parameters
    ----------
    controllers, slow_starts, memories, queues, losses
        Rows by name.
    quic_controllers
        Controllers that a QUIC implementation brings along, which only QUIC flows can have.
    find_problem
        Finds what the engine refuses of a run's specification, given as JSON; None if nobody asks
        the engine.
    measures
        Names of what is measured; none if that is not known.
    """

    controllers: Mapping[str, Row]
    slow_starts: Mapping[str, Row]
    memories: Mapping[str, Row]
    queues: Mapping[str, Row]
    losses: Mapping[str, Row]
    quic_controllers: Mapping[str, Row] = field(default_factory=dict)
    find_problem: Callable[[str], Problem | None] | None = None
    measures: tuple[str, ...] = ()

    @classmethod
    def from_json(
        cls,
        registry: str,
        check: Check | None = None,
        find_problem: Callable[[str], Problem | None] | None = None,
    ) -> Registry:
        """Read what `jostle._core.registry` returns.

        Files are checked by `check`, which is `jostle._core.check_file`, and whole runs by
        `find_problem`.
        """
        rows = json.loads(registry)
        return cls(
            controllers=_rows(rows, "controllers", check),
            slow_starts=_rows(rows, "slow_starts", check),
            memories=_rows(rows, "memories", check),
            queues=_rows(rows, "queues", check),
            losses=_rows(rows, "losses", check),
            quic_controllers=_rows(rows, "quic_controllers", check),
            find_problem=find_problem,
            measures=tuple(row["name"] for row in rows.get("measures", ())),
        )

    @classmethod
    def of_engine(cls) -> Registry:
        """Return the registries of the installed engine."""
        return _of_engine()


@functools.cache
def _of_engine() -> Registry:
    core = importlib.import_module("jostle._core")
    return Registry.from_json(core.registry(), core.check_file, core.find_problem)


def _rows(
    registries: Mapping[str, list[dict[str, Any]]], kind: str, check: Check | None
) -> dict[str, Row]:
    return {
        row["name"]: Row(
            name=row["name"],
            summary=row["summary"],
            group=row["class"],
            source=row["source"],
            parameters={
                p["name"]: _parameter(p, check and functools.partial(check, kind, row["name"]))
                for p in row["parameters"]
            },
            slow_start=row.get("slow_start"),
            needs_ecn=row.get("needs_ecn", False),
        )
        for row in registries[kind]
    }


def _parameter(entry: dict[str, Any], check: Callable[[str, bytes], None] | None) -> Parameter:
    suffix = f"_{_BASE_UNITS[entry['kind']]}" if entry["kind"] in _BASE_UNITS else ""
    return Parameter(
        name=entry["name"],
        summary=entry["summary"],
        kind=entry["kind"],
        # That of a limit says its unit itself.
        default=entry.get("default" if entry["kind"] == "limit" else f"default{suffix}"),
        minimum=entry.get(f"min{suffix}"),
        maximum=entry.get(f"max{suffix}"),
        choices=tuple(entry.get("choices", ())),
        content=entry.get("content", ""),
        check=check and functools.partial(check, entry["name"]),
    )


def _written(given: object) -> str:
    """`given` as it stands in a TOML file, as far as one line can show it."""
    if isinstance(given, str):
        return f'"{given}"'
    if isinstance(given, bool):
        return str(given).lower()
    return str(given)
