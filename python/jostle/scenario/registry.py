"""Python view of the engine's registries: algorithms and queues with their parameters.

All entries come from the engine; this module contains no names of entries.
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

from jostle.run_spec import ParameterValue
from jostle.safe_io.untrusted_files import TABLE_BYTES, read_bytes
from jostle.scenario.parsing.quantities import (
    Amount,
    QuantityError,
    format_amount,
    parse_amount,
    parse_probability,
    parse_rate,
    parse_span,
)

__all__ = ["Parameter", "Registry", "Row", "Rows", "engine_rows", "row_of"]

Rows = Mapping[str, list[dict[str, Any]]]
"""Rows of the registries by kind, such as `controllers`."""
Check = Callable[[str, str, str, bytes], None]
"""Raises `ValueError` if a file does not fit. Arguments: registry, entry, parameter and content."""

Problem = tuple[str | None, str, tuple[int, int, int] | None]
"""Location, message, and a number out of range with its bounds (`jostle._core.find_problem`)."""

_AMOUNTS: Final = ("size", "limit", "packets")
"""Kinds that are amounts of data. An amount in BDPs depends on the link."""

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
    """A parameter of a registry entry.

    Parameters
    ----------
    name, summary
        Name and summary in the registry.
    kind
        ``bool``, ``integer``, ``number``, ``probability``, ``span``, ``rate``, ``size``, ``limit``,
        ``packets``, ``choice`` or ``file``.
    default
        Default value in base units; None if a scenario must set the parameter.
    minimum, maximum
        Inclusive range; None for kinds without a range. The range of a ``limit`` is in bytes.
    choices
        Accepted words of a ``choice``.
    content
        Description of the content of a ``file``.
    check
        Raises `ValueError` if the content of a ``file`` is invalid.
    """

    name: str
    summary: str
    kind: str
    default: ParameterValue | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    content: str = ""
    check: Callable[[bytes], None] | None = None

    def expected(self) -> str:
        """Return a description of the accepted values."""
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

    def parse(self, given: object, folder: Path | None = None) -> ParameterValue | Amount:
        """Return the value that a scenario gives, after a check of its kind and range.

        Parameters
        ----------
        given
            Value as written in the scenario.
        folder
            Folder to which file paths are relative; the working directory if None.

        Returns
        -------
        bool, int, float, str or Amount
            Value in base units. Amounts of data are an `Amount`, because a BDP depends on the link.

        Raises
        ------
        QuantityError
            If the value is invalid.
        """
        if self.kind in _AMOUNTS:
            amount = parse_amount(given)
            if self.kind == "size" and amount.unit == "bytes":
                self._check(given, int(amount.value))
            return amount
        if self.kind == "file":
            return self._read_file(given, folder or Path())
        return self._check(given, self._read(given))

    def in_base_units(self, amount: Amount, bdp_bytes: int) -> ParameterValue:
        """Return an amount in the form of the run specification.

        Parameters
        ----------
        amount
            Amount given in the scenario.
        bdp_bytes
            Bandwidth-delay product of the link.

        Raises
        ------
        QuantityError
            If the amount is out of range.
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
        """Return the content of a file. The run specification contains it instead of the name."""
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
            # Raised by the check, or for a path with a null character.
            problem = str(error)
        else:
            return base64.b64encode(content).decode("ascii")
        raise QuantityError(f'file "{path}": {problem} — accepted: {self.expected()}')

    def _read(self, given: object) -> ParameterValue:
        if self.kind in _PARSERS:
            return _PARSERS[self.kind](given)
        fits: bool
        match self.kind:
            case "bool":
                fits = isinstance(given, bool)
            case "integer":
                fits = isinstance(given, int) and not isinstance(given, bool)
            case "number":
                # A probability may be written as a percentage.
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
        # A whole number that exceeds the range of floats exceeds every parameter's range.
        try:
            return float(given)
        except OverflowError:
            return float("inf")

    def _check(self, given: object, value: ParameterValue) -> ParameterValue:
        if self.minimum is None or self.maximum is None:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
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
    """A registry entry: a controller, slow start, peer cache, queue discipline or loss model.

    Parameters
    ----------
    name, summary, group, source
        As in the registry; `group` is its class.
    parameters
        Parameters by name, in the registry's order.
    slow_start
        Name of a controller's default slow start; None if the controller has a built-in slow start.
    needs_ecn
        Whether a controller requires connections with ECN.
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
        """Whether the entry is a queue discipline that supports classes."""
        return self.group == "classful"


@dataclass(frozen=True)
class Registry:
    """All names that a scenario can use.

    Parameters
    ----------
    controllers, slow_starts, peer_caches, queues, losses
        Entries by name.
    quic_controllers
        Controllers of a QUIC implementation, which only QUIC flows can use.
    find_problem
        Returns the problem that the engine finds in a run specification in JSON form. None skips
        this check.
    measures
        Names of the measures; empty if they are not known.
    """

    controllers: Mapping[str, Row]
    slow_starts: Mapping[str, Row]
    peer_caches: Mapping[str, Row]
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
        """Create a registry from the JSON text that `jostle._core.registry` returns.

        `check` (`jostle._core.check_file`) validates files. `find_problem` validates complete run
        specifications.
        """
        return cls.from_rows(json.loads(registry), check, find_problem)

    @classmethod
    def from_rows(
        cls,
        rows: Rows,
        check: Check | None = None,
        find_problem: Callable[[str], Problem | None] | None = None,
    ) -> Registry:
        """Create a registry from its rows by kind; see `from_json`."""
        return cls(
            controllers=_rows(rows, "controllers", check),
            slow_starts=_rows(rows, "slow_starts", check),
            peer_caches=_rows(rows, "peer_caches", check),
            queues=_rows(rows, "queues", check),
            losses=_rows(rows, "losses", check),
            quic_controllers=_rows(rows, "quic_controllers", check),
            find_problem=find_problem,
            measures=tuple(row["name"] for row in rows.get("measures", ())),
        )

    @classmethod
    def of_engine(cls) -> Registry:
        """Return the registry of the installed engine."""
        return _of_engine()


@functools.cache
def engine_rows() -> Rows:
    """Return the rows of the installed engine's registry by kind."""
    rows: Rows = json.loads(importlib.import_module("jostle._core").registry())
    return rows


@functools.cache
def _of_engine() -> Registry:
    core = importlib.import_module("jostle._core")
    return Registry.from_rows(engine_rows(), core.check_file, core.find_problem)


def _rows(registries: Rows, kind: str, check: Check | None) -> dict[str, Row]:
    return {
        row["name"]: row_of(row, check and functools.partial(check, kind, row["name"]))
        for row in registries[kind]
    }


def row_of(row: Mapping[str, Any], check: Callable[[str, bytes], None] | None = None) -> Row:
    """Return an entry of a registry from its JSON form.

    Parameters
    ----------
    check
        Raises `ValueError` if the content of a file does not fit a parameter.
    """
    return Row(
        name=row["name"],
        summary=row["summary"],
        group=row["class"],
        source=row["source"],
        parameters={p["name"]: _parameter(p, check) for p in row["parameters"]},
        slow_start=row.get("slow_start"),
        needs_ecn=row.get("needs_ecn", False),
    )


def _parameter(entry: dict[str, Any], check: Callable[[str, bytes], None] | None) -> Parameter:
    suffix = f"_{_BASE_UNITS[entry['kind']]}" if entry["kind"] in _BASE_UNITS else ""
    return Parameter(
        name=entry["name"],
        summary=entry["summary"],
        kind=entry["kind"],
        # The default of a limit includes its unit.
        default=entry.get("default" if entry["kind"] == "limit" else f"default{suffix}"),
        minimum=entry.get(f"min{suffix}"),
        maximum=entry.get(f"max{suffix}"),
        choices=tuple(entry.get("choices", ())),
        content=entry.get("content", ""),
        check=check and functools.partial(check, entry["name"]),
    )


def _written(given: object) -> str:
    """Format a value like TOML, on one line."""
    if isinstance(given, str):
        return f'"{given}"'
    if isinstance(given, bool):
        return str(given).lower()
    return str(given)
