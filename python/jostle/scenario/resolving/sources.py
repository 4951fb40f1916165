"""What applications send: from a scenario's flow to the source of a run's specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jostle.scenario.distributions import Drawn, KeyedError, quantity_spec
from jostle.scenario.models import Fixed, Flow, OnOff, Ping, RequestResponse
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report

__all__ = ["DATAGRAM_HEADER_BYTES", "NO_CONTROLLER", "no_controller", "owner", "source_spec"]

NO_CONTROLLER: Final = "none"
"""What a scenario writes for the controller of pings."""

DATAGRAM_HEADER_BYTES: Final = 20 + 8
"""Headers of a datagram that an MTU counts: IPv4 and UDP."""


def source_spec(flow: Flow, path: KeyPath, folder: Path, report: Report) -> dict[str, Any]:
    """Return what an application sends; bulk if nothing is said.

    Parameters
    ----------
    flow, path
        The flow, and where it stands in the scenario.
    folder
        The scenario's, in which files are looked for.
    report
        Takes problems.
    """

    def drawn(quantity: int | Drawn, *keys: str) -> int | dict[str, Any]:
        try:
            return quantity_spec(quantity, folder)
        except KeyedError as error:
            report.add((*path, *keys, error.key), str(error))
            return 1

    def lasting(name: str, quantity: int | Drawn, *, exponential: bool) -> int | dict[str, Any]:
        if not exponential:
            return drawn(quantity, "source", name)
        if isinstance(quantity, Drawn):
            message = f'"{name}" has a distribution already — remove this key'
            report.add((*path, "source", "exponential"), message, (*path, "source", name))
            return 1
        if quantity == 0:
            return 0
        return {"law": {"kind": "exponential", "mean": float(quantity)}, "min": None, "max": None}

    if flow.bytes is not None:
        if flow.source is not None:
            message = f'the source is "{flow.source.kind}" — write its size there, or keep one'
            report.add((*path, "bytes"), message, (*path, "source"))
        return {"kind": "fixed", "bytes": drawn(flow.bytes, "bytes")}
    match flow.source:
        case Fixed(bytes=size):
            return {"kind": "fixed", "bytes": drawn(size, "source", "bytes")}
        case OnOff() as source:
            return {
                "kind": "on_off",
                "on_ns": lasting("on", source.on, exponential=source.exponential),
                "off_ns": lasting("off", source.off, exponential=source.exponential),
            }
        case RequestResponse() as source:
            return {
                "kind": "request_response",
                "bytes": drawn(source.bytes, "source", "bytes"),
                "think_ns": lasting("think", source.think, exponential=source.exponential),
                "count": source.count,
            }
        case Ping() as source:
            largest = flow.mtu - DATAGRAM_HEADER_BYTES
            if source.bytes > largest:
                message = f"a datagram has at most {largest} bytes, or fragments would carry it"
                report.add((*path, "source", "bytes"), message, (*path, "mtu"))
            return {
                "kind": "ping",
                "bytes": source.bytes,
                "every_ns": source.every,
                "timeout_ns": source.timeout,
            }
        case _:
            return {"kind": "bulk"}


def no_controller(flow: Flow, path: KeyPath, report: Report) -> dict[str, Any]:
    """Return what stands for the controller of pings, which have none, nor what goes with one."""
    source = ((*path, "source"),)
    if flow.controller.name != NO_CONTROLLER or flow.controller.parameters:
        message = f'pings have no controller — write controller = "{NO_CONTROLLER}"'
        report.add((*path, "controller"), message, *source)
    for key in ("slow_start", "memory"):
        if getattr(flow, key) is not None:
            report.add((*path, key), "pings have no controller — remove this key", *source)
    return {"name": NO_CONTROLLER, "parameters": {}}


def owner(flows: Sequence[Mapping[str, Any]], position: int) -> int:
    """Return the position of the flow that a run's connection at `position` is a part of."""
    while flows[position]["source"]["kind"] == "relay":
        position = flows[position]["source"]["from"]
    return position
