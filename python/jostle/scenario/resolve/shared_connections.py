"""Flows that share the connection of another flow and send data in the opposite direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jostle.scenario.models import Flow, ScenarioFile, Tcp
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.resolve.sources import datagrams
from jostle.scenario.sources import Video, Web

__all__ = ["with_connections"]

_INHERITED: Final = (
    "rtt",
    "path",
    "reverse_path",
    "routes",
    "transport",
    "dscp",
    "ecn",
    "mtu",
    "linux_version",
    "timers",
    "count",
)
"""Properties of the connection that are the same in both directions."""
_SWAPPED: Final = {
    "from_": "to",
    "to": "from_",
    "sender_host": "receiver_host",
    "receiver_host": "sender_host",
}
_OPPOSITE: Final = {"down": "up", "up": "down"}
_ANY_RTT_NS: Final = 1_000_000_000
_ONLY_ONCE: Final = ("direction", "one_at_a_time", "peer")
"""Keys that a flow with `connection_of` does not have, either."""


def with_connections(file: ScenarioFile, report: Report) -> ScenarioFile:
    """Return the scenario with the properties of shared connections in both of their flows.

    Parameters
    ----------
    file
        Scenario.
    report
        Collects problems: flows whose connections cannot be shared, and keys that the connection
        determines.
    """
    if all(flow.connection_of is None for flow in file.flows):
        return file
    flows: list[Flow] = []
    opposites: dict[str, str] = {}
    for index, flow in enumerate(file.flows):
        path = ("flows", index)
        if flow.connection_of is None:
            flows.append(flow)
            continue
        other = _opening_flow(file, index, opposites, report)
        if other is None:
            # Report no missing RTT in addition.
            flows.append(flow.model_copy(update={"rtt": flow.rtt or _ANY_RTT_NS}))
            continue
        opposites[flow.connection_of] = flow.name
        opened = file.flows[other]
        _check_keys(flow, opened, path, report)
        for end, end_path in ((opened, ("flows", other)), (flow, path)):
            _check_end(end, end_path, path, report)
        update = {key: getattr(opened, key) for key in _INHERITED}
        update |= {key: getattr(opened, source) for key, source in _SWAPPED.items()}
        if opened.from_ is None:
            update["direction"] = _OPPOSITE[opened.direction]
        flows.append(flow.model_copy(update=update))
    if file.capture is not None:
        index = next(at for at, flow in enumerate(file.flows) if flow.connection_of is not None)
        message = "packets of a connection with data in both directions are not captured — remove"
        report.add(("capture",), f"{message} one of both", ("flows", index, "connection_of"))
    return file.model_copy(update={"flows": flows})


def _opening_flow(
    file: ScenarioFile, index: int, opposites: Mapping[str, str], report: Report
) -> int | None:
    """Return the position of the flow whose connection another one shares; None with a problem.

    `opposites` are the names of the flows that share the connection of another one, by its name.
    """
    at = ("flows", index, "connection_of")
    name = file.flows[index].connection_of or ""
    before = {flow.name: position for position, flow in enumerate(file.flows[:index])}
    other = before.get(name)
    if other is None:
        known = did_you_mean(name, tuple(before))
        report.add(at, f'there is no flow "{name}" before this one — {known}')
        return None
    of = file.flows[other].connection_of
    if of is not None:
        report.add(at, f'"{name}" has no connection of its own, but that of "{of}"')
        return None
    if name in opposites:
        report.add(at, f'"{opposites[name]}" sends in the opposite direction of "{name}" already')
        return None
    return other


def _check_keys(flow: Flow, opened: Flow, path: KeyPath, report: Report) -> None:
    """Report keys that the connection determines."""
    for key in (*_INHERITED, *_SWAPPED, *_ONLY_ONCE):
        if key in flow.model_fields_set:
            shown = Flow.model_fields[key].alias or key
            message = f'the connection of "{opened.name}" has it — remove this key'
            report.add((*path, shown), message, (*path, "connection_of"))


def _check_end(flow: Flow, path: KeyPath, sharing: KeyPath, report: Report) -> None:
    """Report keys of a flow that exclude data in both directions of its connection."""
    what = datagrams(flow)
    transport = flow.transport
    refusals = [
        (what is not None, f"{what} have no connection", "source"),
        (
            what is None and transport is not None and not isinstance(transport, Tcp),
            "only TCP connections are shared",
            "transport",
        ),
        (bool(flow.proxy), "a proxy forwards the data of one direction", "proxy"),
        (flow.arrivals is not None, "the flow has many connections", "arrivals"),
        (
            isinstance(flow.source, Web | Video),
            "its receiver sends requests over the same connection",
            "source",
        ),
        (flow.receiver is not None, "its receiver sends ACKs with data", "receiver"),
        (flow.receiver_gro, "segments with data and ACKs are not merged", "receiver_gro"),
        (flow.nic_rate is not None, "ACKs do not pass the network card", "nic_rate"),
        (
            flow.peer_cache is not None,
            "a peer cache learns from hosts that open connections",
            "peer_cache",
        ),
    ]
    for applies, why, key in refusals:
        if applies:
            message = (
                f"{why}, so that no data are sent in the opposite direction — remove one of both"
            )
            report.add((*path, key), message, (*sharing, "connection_of"))
