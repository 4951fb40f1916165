"""Translation of the engine's validation errors to problems of the scenario.

The engine checks the bounds of a run. This module translates locations in the run specification to
keys of the scenario, and numbers in base units to quantities.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic_core import to_json

from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import format_amount, format_bound
from jostle.scenario.parsing.renamed_keys import with_new_names
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.links import topology
from jostle.scenario.resolve.sampling import MOST_ROWS
from jostle.scenario.resolve.sources import BACK, owner
from jostle.scenario.sources import Tunnel

__all__ = ["translate_engine_error"]

_Quantity = Literal["time", "rate", "size"]
_QUANTITIES: Final[Mapping[str, _Quantity]] = {"ns": "time", "bps": "rate", "bytes": "size"}
_RANDOM_RATE: Final = (
    "mean_bps",
    "deviation_bps",
    "correlation_ns",
    "step_ns",
    "min_bps",
    "max_bps",
)
_SPEC_NAME: Final = re.compile(r"`(\w+?)_(?:ns|bps|bytes|packets|ms)`")
_UNIT: Final = re.compile(r"(?:_|\.)(ns|bps|bytes|packets|ms)\Z")
# Scenario keys whose name differs from the run specification; None if there is no key.
_NAMES: Final[Mapping[str, str | None]] = {
    "base_delay": "rtt",
    "mean_interval": "every",
    "opportunities": "trace",
    "opportunity": "trace",
    "outages": "outage",
    "quic": "transport",
    "tcp": "transport",
    "link": "load_link",
    "rate_per_s": "rate",
    "frames_per_1000_s": "fps",
    "segments": "length",
    "playout": "playout_delay",
    "writes": "file",
    "read": "size",
    "loss_steps": "loss",
    "by": "late",
    "limit_includes_queue": "limit_covers",
    "request_interval": "request_every",
    "backoff_superframes": "backoff",
    "over_per_mille": "over_estimation",
    "gain_per_mille": "gain",
    "spread": "slots",
    "cells": "atm",
    "capacity": None,
    "parameters": None,
    "steps": None,
    "law": None,
    "occurrence": None,
    "voice": None,
}
_POSITIONS: Final[Mapping[str, str]] = {
    "link": "links",
    "from": "flows",
    "flow": "flows",
    "after": "flows",
    "connection_of": "flows",
}
"""Values of a run specification that are the position of a link or flow."""


def translate_engine_error(
    spec: Mapping[str, Any], file: ScenarioFile, registry: Registry
) -> tuple[KeyPath, str] | None:
    """Return the first problem that the engine finds in a run specification.

    Parameters
    ----------
    spec
        Run specification.
    file
        Scenario from which the specification was resolved.
    registry
        Registry that calls the engine.

    Returns
    -------
    path, message
        Key path in the scenario, and message; None if there is no problem.
    """
    problem = None
    if registry.find_problem is not None:
        problem = registry.find_problem(to_json(spec).decode())
    rows = _row_mistake(spec)
    if rows is not None and (problem is None or problem[0] == "interval_ns"):
        return ("sampling_interval",), rows
    if problem is None:
        return None
    # Only errors need this module.
    from jostle.scenario.resolve.nearest_key import nearest_key

    place, message, numbers = problem
    message = _with_names(place or "", _SPEC_NAME.sub(r"`\1`", message), spec)
    # A specification calls many keys as earlier scenarios did.
    path = nearest_key(with_new_names(_key(place or "", file, spec["flows"])))
    quantity = _quantity(place or "")
    if numbers is None:
        return path, re.sub(r"(?<=^cannot be )\d+", lambda n: _shown(int(n[0]), quantity), message)
    given, low, high = numbers
    if given > high:
        return path, f"{_shown(given, quantity)} is too much — at most {_bound(high, quantity)}"
    return path, f"{_shown(given, quantity)} is too little — at least {_shown(low, quantity)}"


def _with_names(place: str, message: str, spec: Mapping[str, Any]) -> str:
    """Return a message with the name of a link or flow instead of its position."""
    table = _POSITIONS.get(place.rpartition(".")[2])
    position = re.match(r"cannot be (\d+)", message)
    if table is None or position is None or int(position[1]) >= len(spec[table]):
        return message
    name = spec[table][int(position[1])]["name"]
    return f'cannot be "{name}"{message[position.end() :]}'.replace("the position of ", "")


def _row_mistake(spec: Mapping[str, Any]) -> str | None:
    """Return a message if the time series would need too much memory."""
    parts = len(spec["flows"]) + len(spec["links"])
    if -(-spec["duration_ns"] // spec["interval_ns"]) * parts <= MOST_ROWS:
        return None
    shown = format_amount(spec["interval_ns"], "time")
    return (
        f'cannot be "{shown}" — expected longer bins: at most {MOST_ROWS} rows, one per bin and '
        f"each of {parts} flows and links"
    )


def _key(place: str, file: ScenarioFile, flows: Sequence[Mapping[str, Any]]) -> KeyPath:
    """Return the key path for a location such as ``links[0].delay.steps[1].delay_ns``."""
    # Text in parentheses after a location is an explanation.
    words = re.findall(r"\w+", place.partition(" ")[0])
    steps = [int(word) if word.isdigit() else word for word in words]
    match steps:
        case ["links", int(index), *rest]:
            links = topology(file, Report())
            if index >= len(links):
                return _tunnel_key(file, index - len(links), rest)
            _, above, link = links[index]
            match rest:
                case ["classes", int(number), *within] if (
                    link and link.queue and link.queue.classes
                ):
                    name = list(link.queue.classes)[number]
                    return (*above, "queue", "classes", name, *_below(within))
            return (*above, *_below(rest))
        case ["flows", int(index), *rest]:
            positions = [i for i, flow in enumerate(file.flows) for _ in range(flow.count)]
            below = _below(rest)
            if index >= len(positions) and flows[index]["source"]["kind"] == "tunnel":
                name = flows[index]["name"].removesuffix(BACK)
                index = next(i for i, flow in enumerate(flows) if flow["name"] == name)
            elif index >= len(positions):
                below = ("proxy", *below[1 if below[:1] == ("source",) else 0 :])
                index = owner(flows, index)
            if below[:1] == ("arrivals",) and file.flows[positions[index]].arrivals is None:
                below = ("source", *below[1:])  # Sessions.
            if below[:2] == ("source", "bytes") and file.flows[positions[index]].size is not None:
                below = ("bytes",)
            return ("flows", positions[index], *below)
        case ["phases", int(index), *_]:
            # The first phase is the complete run.
            return ("phases", list(file.phases)[index - 1]) if index else ("duration",)
        case _:
            return _below(steps)


def _tunnel_key(file: ScenarioFile, number: int, steps: Sequence[int | str]) -> KeyPath:
    """Return the key path of a value of a tunnel's link; each tunnel has two links."""
    tunnels = [i for i, flow in enumerate(file.flows) if isinstance(flow.source, Tunnel)]
    return ("flows", tunnels[number // 2], "source", *_below(steps))


def _below(steps: Sequence[int | str]) -> KeyPath:
    if steps == ["capacity"]:
        return ("trace",)
    if list(steps[:2]) == ["delay", "jitter"]:
        steps = steps[1:]
    if len(steps) == 2 and steps[0] == "capacity" and steps[1] in _RANDOM_RATE:
        steps = ["rate", steps[1]]
    found: list[str] = []
    for step in steps:
        if isinstance(step, int):
            # A single step may be written as a value, so leave out the list index.
            continue
        name = _UNIT.sub("", step)
        key = _NAMES.get(name, name)
        if key is not None and (not found or found[-1] != key):
            found.append(key)
    if steps[:1] == ["capacity"] and found == ["at"]:
        return ("rate",)
    return tuple(key for key in found if key not in {"value", "at"})


def _quantity(place: str) -> _Quantity | None:
    unit = _UNIT.search(place)
    return _QUANTITIES.get(unit[1]) if unit else None


def _shown(value: int, quantity: _Quantity | None) -> str:
    return f'"{format_amount(value, quantity)}"' if quantity else str(value)


def _bound(value: int, quantity: _Quantity | None) -> str:
    return f'"{format_bound(value, quantity)}"' if quantity else str(value)
