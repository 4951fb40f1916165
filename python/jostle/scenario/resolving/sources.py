"""What applications send: from a scenario's flow to the source of a run's specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jostle.scenario.models import Fixed, Flow, OnOff, Ping, RequestResponse
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report

__all__ = ["DATAGRAM_HEADER_BYTES", "NO_CONTROLLER", "no_controller", "owner", "source_spec"]

NO_CONTROLLER: Final = "none"
"""What a scenario writes for the controller of pings."""

DATAGRAM_HEADER_BYTES: Final = 20 + 8
"""Headers of a datagram that an MTU counts: IPv4 and UDP."""


def source_spec(flow: Flow, path: KeyPath, report: Report) -> dict[str, Any]:
    """Return what an application sends; bulk if nothing is said."""
    if flow.bytes is not None:
        if flow.source is not None:
            message = f'the source is "{flow.source.kind}" — write its size there, or keep one'
            report.add((*path, "bytes"), message, (*path, "source"))
        return {"kind": "fixed", "bytes": flow.bytes}
    match flow.source:
        case Fixed(bytes=size):
            return {"kind": "fixed", "bytes": size}
        case OnOff() as source:
            return {
                "kind": "on_off",
                "on_ns": source.on,
                "off_ns": source.off,
                "exponential": source.exponential,
            }
        case RequestResponse() as source:
            return {
                "kind": "request_response",
                "bytes": source.bytes,
                "think_ns": source.think,
                "exponential": source.exponential,
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
