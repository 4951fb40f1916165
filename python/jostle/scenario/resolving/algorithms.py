"""Rows of the registries: from a scenario's names to what a run is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jostle.scenario.models import Algorithm, Flow, Part
from jostle.scenario.registry import Registry, Row, Value
from jostle.scenario.resolving.sources import NO_CONTROLLER
from jostle.scenario.resolving.transports import is_quic
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report, did_you_mean
from jostle.scenario.text.units import PACKET_BYTES, Amount, QuantityError

__all__ = ["controller_and_slow_start", "memory_spec", "part_spec", "queue_limit_bytes"]

_STANDARD: Final = "standard"
"""The slow start that a controller falls back to when its own default is switched off."""

_EXAMPLES: Final = {
    **dict.fromkeys(("size", "limit", "packets"), '"36 MB", "1000 packets" or "1 BDP"'),
    "probability": '"0.1 %"',
}
"""What is written for a parameter without a default, by its kind."""


def controller_and_slow_start(
    flow: Flow, path: KeyPath, registry: Registry, report: Report, folder: Path
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the controller and the slow start of a flow, each with a value for every parameter.

    Three things are said in a controller's table beside its parameters: `slow_start = …`; a bool
    named like the default slow start (``hystart = false``), short for the standard one; and
    parameters that the slow start shares by name, which it takes over unless it has its own. Files
    are looked for in `folder`.

    Returns
    -------
    controller, slow_start
        As in a run's specification; None where there is none or it was reported.
    """
    where: KeyPath = (*path, "controller")
    if flow.controller.name == NO_CONTROLLER:
        message = 'only datagrams have none — write a controller, or source = { kind = "cbr", … }'
        report.add(where, message, (*path, "source"))
        return None, None
    row = _controller(flow, where, registry, report)
    given = flow.controller.parameters
    if flow.linux is not None and row is not None and "linux" in row.parameters:
        given.setdefault("linux", flow.linux)
    method, method_at = _method(flow, path, row, given, report)
    start = None
    if method is not None and (row is None or row.slow_start is not None):
        start = _row(method.name, registry.slow_starts, method_at, "slow start", report)
    if row is None:
        return None, None
    controller: dict[str, Any] = {
        "name": row.name,
        "parameters": _parameters(row, given, where, report, folder),
    }
    if row.slow_start is None and method is not None:
        report.add(method_at, f'"{row.name}" has its own slow start — remove this key')
    if start is None or method is None:
        return controller, None
    if isinstance(controller["parameters"].get(row.slow_start), bool):
        # One way to say it: a run means the same however its scenario put it.
        controller["parameters"][row.slow_start] = start.name != _STANDARD
    # A mistake in a shared value has been reported for the controller already.
    shared = {
        name: value
        for name, value in given.items()
        if name in row.parameters and name in start.parameters and _fits(start, name, value, folder)
    }
    if flow.linux is not None and "linux" in start.parameters:
        # HyStart knows it under controllers, too, that do not.
        shared.setdefault("linux", flow.linux)
    own = {**shared, **method.parameters}
    return controller, {
        "name": start.name,
        "parameters": _parameters(start, own, method_at, report, folder),
    }


def _controller(flow: Flow, where: KeyPath, registry: Registry, report: Report) -> Row | None:
    name, rows = flow.controller.name, registry.controllers
    if is_quic(flow):
        rows = {**rows, **registry.quic_controllers}
    elif name in registry.quic_controllers:
        message = f'only QUIC flows can have "{name}" — write transport = "quic"'
        report.add(where, message, (*where[:-1], "transport"))
        return None
    return _row(name, rows, where, "controller", report)


def memory_spec(
    flow: Flow, path: KeyPath, registry: Registry, report: Report, folder: Path
) -> dict[str, Any] | None:
    """Return what a flow's host makes of earlier connections; None if nothing, or if reported."""
    if flow.memory is None:
        return None
    where: KeyPath = (*path, "memory")
    row = _row(flow.memory.name, registry.memories, where, "memory", report)
    if row is None:
        return None
    return {
        "name": row.name,
        "parameters": _parameters(row, flow.memory.parameters, where, report, folder),
    }


def part_spec(
    part: Part,
    rows: Mapping[str, Row],
    noun: str,
    path: KeyPath,
    report: Report,
    *also: KeyPath,
    bdp_bytes: int | None = None,
) -> dict[str, Any] | None:
    """Return a part of a link with all its parameters, as a run's specification has them.

    Parameters
    ----------
    part, path
        What the scenario says, and where.
    rows, noun
        The kinds that there are, and what one of them is called.
    report
        Takes problems.
    also
        What the bandwidth-delay product depends on.
    bdp_bytes
        The link's bandwidth-delay product; None if it has none (reported if it is asked for).

    Returns
    -------
    dict or None
        None if anything was reported.
    """
    row = _row(part.kind, rows, path, noun, report, listed_as="kinds")
    if row is None:
        return None
    read = _read(row, part.parameters, path, report)
    if read is None:
        return None
    values: dict[str, Value] = {}
    for name, value in read.items():
        where = (*path, name)
        if not isinstance(value, Amount):
            values[name] = value
        elif value.unit == "bdp" and bdp_bytes is None:
            report.add(where, "there is no BDP here — write the limit in bytes or packets", *also)
            return None
        else:
            try:
                values[name] = row.parameters[name].in_base_units(value, bdp_bytes or 0)
            except QuantityError as error:
                report.add(where, str(error), *also)
                return None
    return {"kind": row.name, "parameters": values}


def queue_limit_bytes(queue: Mapping[str, Any]) -> int:
    """Most bytes that a queue of a run's specification holds, packets counted as full ones.

    Where a limit counts socket buffers, each of them may be as large as they get.
    """
    limit = queue["parameters"].get("limit", 0)
    if isinstance(limit, Mapping):
        return int(limit["bytes"] if "bytes" in limit else limit["packets"] * PACKET_BYTES)
    return int(limit) * int(queue["parameters"].get("gro_max_size", PACKET_BYTES))


def _method(
    flow: Flow, path: KeyPath, row: Row | None, given: dict[str, Any], report: Report
) -> tuple[Algorithm | None, KeyPath]:
    """Return the slow start that a flow asks for or gets by default, and where that is said.

    What the controller's table says about it is taken out of `given`.
    """
    where = (*path, "controller")
    method, method_at = flow.slow_start, (*path, "slow_start")
    if "slow_start" in given:
        if method is not None:
            report.add((*where, "slow_start"), "the flow names a slow start too — keep one")
        method_at = (*where, "slow_start")
        method = _algorithm(given.pop("slow_start"), method_at, report)
    switch = row.slow_start if row is not None else None
    if row is None or switch is None:
        return method, method_at
    if switch in given:
        on = given[switch] if switch in row.parameters else given.pop(switch)
        if method is not None:
            report.add((*where, switch), "a slow start is named as well — keep one", method_at)
        elif on is False:
            method = Algorithm(name=_STANDARD)
        elif on is not True and switch not in row.parameters:
            report.add((*where, switch), "cannot be this — accepted: true or false")
    return method or Algorithm(name=switch), method_at


def _row(
    name: str,
    rows: Mapping[str, Row],
    path: KeyPath,
    noun: str,
    report: Report,
    *,
    listed_as: str = "known",
) -> Row | None:
    row = rows.get(name)
    if row is None:
        hint = did_you_mean(name, tuple(rows), listed=listed_as)
        report.add(path, f'there is no {noun} "{name}" — {hint}')
    return row


def _algorithm(given: Any, path: KeyPath, report: Report) -> Algorithm | None:
    if isinstance(given, str):
        return Algorithm(name=given)
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return Algorithm(**given)
    report.add(path, 'write a name, or a table as in { name = "…" }')
    return None


def _parameters(
    row: Row, given: Mapping[str, Any], path: KeyPath, report: Report, folder: Path
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, value in (_read(row, given, path, report, folder) or {}).items():
        if isinstance(value, Amount):
            if value.unit == "bdp":
                report.add((*path, name), "an algorithm knows no BDP — write bytes or packets")
            values[name] = value.to_bytes(0)
        else:
            values[name] = value
    return values


def _read(
    row: Row,
    given: Mapping[str, Any],
    path: KeyPath,
    report: Report,
    folder: Path | None = None,
) -> dict[str, Value | Amount] | None:
    """Return a value for each parameter of `row`; None if any was reported."""
    before = report.count
    unknown = [name for name in given if name not in row.parameters]
    for name in unknown:
        known = [*row.parameters, *([row.slow_start, "slow_start"] if row.slow_start else [])]
        hint = did_you_mean(name, known)
        report.add((*path, name), f'"{row.name}" has no parameter "{name}" — {hint}')
    values: dict[str, Value | Amount] = {}
    for name, parameter in row.parameters.items():
        if name in given:
            try:
                values[name] = parameter.parse(given[name], folder)
            except QuantityError as error:
                report.add((*path, name), str(error))
        elif parameter.default is not None:
            values[name] = parameter.default
        elif not unknown:
            # Beside an unknown key this one is likely to be what was meant.
            example = _EXAMPLES.get(parameter.kind)
            hint = f"write for example {example}" if example else "it is required"
            report.add((*path, name), f'missing: "{row.name}" needs it — {hint}')
    complete = len(values) == len(row.parameters)
    return values if complete and report.count == before else None


def _fits(row: Row, name: str, given: Any, folder: Path) -> bool:
    try:
        row.parameters[name].parse(given, folder)
    except QuantityError:
        return False
    return True
