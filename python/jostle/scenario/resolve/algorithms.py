"""Registry entries in a scenario: converts names and parameters to their form in a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jostle.run_spec import Algorithm as AlgorithmSpec
from jostle.run_spec import LinkPart, ParameterValue, QueueLimit
from jostle.scenario.models import Algorithm, Flow, RegistryChoice
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import PACKET_BYTES, Amount, QuantityError
from jostle.scenario.registry import Registry, Row
from jostle.scenario.resolve.sources import NO_CONTROLLER
from jostle.scenario.resolve.transports import is_quic

__all__ = ["controller_and_slow_start", "memory_spec", "queue_limit_bytes", "registry_choice_spec"]

_STANDARD: Final = "standard"
"""Slow start of a controller whose default slow start is disabled."""

_CAKE_MEMORY_BYTES: Final = 10_240 * PACKET_BYTES
"""Largest default of CAKE's memory limit (`sch->limit` in Linux's `sch_cake.c`)."""

_EXAMPLES: Final = {
    **dict.fromkeys(("size", "limit", "packets"), '"36 MB", "1000 packets" or "1 BDP"'),
    "probability": '"0.1 %"',
}
"""Example values in error messages, by the kind of a parameter without a default."""


def controller_and_slow_start(
    flow: Flow, path: KeyPath, registry: Registry, report: Report, folder: Path
) -> tuple[AlgorithmSpec | None, AlgorithmSpec | None]:
    """Return the controller and the slow start of a flow with values for all parameters.

    Besides its parameters, a controller's table may contain: `slow_start = …`; a bool named like
    the default slow start (``hystart = false``), which selects the standard slow start; and
    parameters that the slow start has too. The slow start uses the controller's value of such a
    parameter unless it sets its own. File names are relative to `folder`.

    Returns
    -------
    controller, slow_start
        Form of the run specification; None if there is none, or a problem was reported.
    """
    where: KeyPath = (*path, "controller")
    if flow.controller.name == NO_CONTROLLER:
        message = 'only datagrams have none — write a controller, or source = { kind = "cbr", … }'
        report.add(where, message, (*path, "source"))
        return None, None
    row = _controller(flow, where, registry, report)
    given = flow.controller.parameters
    if flow.linux_version is not None and row is not None and "linux" in row.parameters:
        given.setdefault("linux", flow.linux_version)
    method, method_at = _method(flow, path, row, given, report)
    start = None
    if method is not None and (row is None or row.slow_start is not None):
        start = _row(method.name, registry.slow_starts, method_at, "slow start", report)
    if row is None:
        return None, None
    controller: AlgorithmSpec = {
        "name": row.name,
        "parameters": _parameters(row, given, where, report, folder),
    }
    if row.slow_start is None and method is not None:
        report.add(method_at, f'"{row.name}" has its own slow start — remove this key')
    if start is None or method is None:
        return controller, None
    switch = row.slow_start
    if switch is not None and isinstance(controller["parameters"].get(switch), bool):
        # Normalise the switch, so that equivalent scenarios give the same run specification.
        controller["parameters"][switch] = start.name != _STANDARD
    # Problems in a shared value have been reported for the controller.
    shared = {
        name: value
        for name, value in given.items()
        if name in row.parameters and name in start.parameters and _fits(start, name, value, folder)
    }
    if flow.linux_version is not None and "linux" in start.parameters:
        # HyStart has this parameter, also under controllers that do not have it.
        shared.setdefault("linux", flow.linux_version)
    own = {**shared, **method.parameters}
    parameters = _parameters(start, own, method_at, report, folder)
    return controller, {"name": start.name, "parameters": parameters}


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
) -> AlgorithmSpec | None:
    """Return the peer cache of a flow; None if there is none, or a problem was reported."""
    if flow.peer_cache is None:
        return None
    where: KeyPath = (*path, "peer_cache")
    row = _row(flow.peer_cache.name, registry.peer_caches, where, "peer_cache", report)
    if row is None:
        return None
    return {
        "name": row.name,
        "parameters": _parameters(row, flow.peer_cache.parameters, where, report, folder),
    }


def registry_choice_spec(
    part: RegistryChoice,
    rows: Mapping[str, Row],
    noun: str,
    path: KeyPath,
    report: Report,
    *also: KeyPath,
    bdp_bytes: int | None = None,
) -> LinkPart | None:
    """Return a queue discipline or loss model in the form of the run specification.

    Parameters
    ----------
    part, path
        Name with parameters in the scenario, and its key path.
    rows, noun
        Registry entries by kind, and the noun for error messages.
    report
        Collects problems.
    also
        Paths of the values on which the BDP depends.
    bdp_bytes
        BDP of the link; None if it is unknown (a limit in BDPs is then reported).

    Returns
    -------
    dict or None
        None if a problem was reported.
    """
    row = _row(part.kind, rows, path, noun, report, listed_as="kinds")
    if row is None:
        return None
    read = _read(row, part.parameters, path, report)
    if read is None:
        return None
    values: dict[str, ParameterValue] = {}
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


def queue_limit_bytes(queue: LinkPart) -> int:
    """Return the capacity of a queue in bytes, with packets counted as full-sized.

    If the limit counts socket buffers, each counts as the largest possible buffer. A limit of
    memory is the most that the packets can have.
    """
    parameters = queue["parameters"]
    if "memory_limit" in parameters:
        return whole_number(parameters["memory_limit"]) or _CAKE_MEMORY_BYTES
    limit = parameters.get("limit", 0)
    if isinstance(limit, dict):
        return _limit_bytes(limit)
    return whole_number(limit) * whole_number(parameters.get("gro_max_size", PACKET_BYTES))


def _limit_bytes(limit: QueueLimit) -> int:
    match limit:
        case {"packets": int(packets)}:
            return packets * PACKET_BYTES
        case {"bytes": int(size_bytes)}:
            return size_bytes
    raise AssertionError(limit)


def whole_number(value: ParameterValue) -> int:
    """Return the value of a parameter that is a whole number."""
    assert isinstance(value, int)
    return value


def _method(
    flow: Flow, path: KeyPath, row: Row | None, given: dict[str, Any], report: Report
) -> tuple[Algorithm | None, KeyPath]:
    """Return the slow start of a flow, set or by default, and its key path.

    Keys of the controller's table that select the slow start are removed from `given`.
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
) -> dict[str, ParameterValue]:
    values: dict[str, ParameterValue] = {}
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
) -> dict[str, ParameterValue | Amount] | None:
    """Return a value for each parameter of `row`; None if a problem was reported."""
    before = report.count
    unknown = [name for name in given if name not in row.parameters]
    for name in unknown:
        more = (row.slow_start, "slow_start") if row.slow_start else ()
        hint = did_you_mean(name, list(dict.fromkeys([*row.parameters, *more])))
        report.add((*path, name), f'"{row.name}" has no parameter "{name}" — {hint}')
    values: dict[str, ParameterValue | Amount] = {}
    for name, parameter in row.parameters.items():
        if name in given:
            try:
                values[name] = parameter.parse(given[name], folder)
            except QuantityError as error:
                report.add((*path, name), str(error))
        elif parameter.default is not None:
            values[name] = parameter.default
        elif not unknown:
            # An unknown key is likely a misspelling of this one, so report only one of them.
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
