"""Groups of flows for tables and figures.

A scenario entry with `count = 10` creates the flows `web-1` to `web-10`. Tables show them as one
row. This module finds these groups in a run specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.run_spec import FlowSpec

TrafficKind = Literal[
    "bulk",
    "transfers",
    "requests",
    "media",
    "pings",
    "datagrams",
    "videos",
    "pages",
    "tunnels",
    "relays",
]
"""Kind of traffic. Each kind has its own table, because its measures differ."""

_TRAFFIC_KINDS: Final[Mapping[str, TrafficKind]] = {
    "fixed": "transfers",
    "request_response": "requests",
    "ping": "pings",
    "video": "videos",
    "web": "pages",
    "cbr": "datagrams",
    "media": "media",
    "trace": "media",
    "tunnel": "tunnels",
}
"""Traffic kind by the `kind` of a flow's source. Other sources have the measures of bulk data."""

_SHARED_KEYS: Final = (
    "transport",
    "controller",
    "source",
    "path",
    "reverse_path",
    "base_delay_ns",
)
"""Keys of a flow's specification that are equal for all flows of a group."""


@dataclass(frozen=True)
class FlowGroup:
    """A single flow, or all flows that one scenario entry with `count` created.

    Attributes
    ----------
    name
        Name of the scenario entry.
    members
        Names of the flows.
    controller
        Name of the congestion controller.
    kind
        Kind of traffic.
    transport
        Transport protocol; see `transport_name`.
    """

    name: str
    members: tuple[str, ...]
    controller: str
    kind: TrafficKind
    transport: str

    @property
    def label(self) -> str:
        """Name, with the number of flows if there is more than one."""
        return self.name if len(self.members) == 1 else f"{self.name} ×{len(self.members)}"


def flow_groups(spec: Spec, *, each: bool = False) -> list[FlowGroup]:
    """Return the groups of a run in scenario order.

    Parameters
    ----------
    spec
        Specification of the run.
    each
        Return one group per flow instead.
    """
    members: list[list[FlowSpec]] = []
    alike: tuple[object, ...] = ()
    for flow in spec["flows"]:
        base, number = _split_number(flow["name"])
        facts = (base, *(flow[key] for key in _SHARED_KEYS))
        # Flows with `after` run one after another, so each keeps its own row.
        another = number > 1 and flow.get("after") is None and facts == alike and not each
        if members and another and number == len(members[-1]) + 1:
            members[-1].append(flow)
            continue
        alike = facts if number == 1 else ()
        members.append([flow])
    return [_group(flows, spec["flows"]) for flows in members]


def kind_of_traffic(flow: FlowSpec, every: Sequence[FlowSpec]) -> TrafficKind:
    """Return the kind of traffic of a flow, among all flows of its run.

    A connection of a proxy that relays a bulk flow has the measures of bulk data. One that relays
    another flow is not bulk data: it waits for the flow, and is idle after its end.
    """
    source: Mapping[str, Any] = {**flow["source"]}
    relayed = source["kind"] == "relay"
    while source["kind"] == "relay":
        source = {**every[source["from"]]["source"]}
    kind = _TRAFFIC_KINDS.get(source["kind"], "bulk")
    return "relays" if relayed and kind != "bulk" else kind


def _group(flows: Sequence[FlowSpec], every: Sequence[FlowSpec]) -> FlowGroup:
    first = flows[0]
    names = tuple(flow["name"] for flow in flows)
    return FlowGroup(
        names[0] if len(names) == 1 else _split_number(names[0])[0],
        names,
        first["controller"]["name"],
        kind_of_traffic(first, every),
        transport_name(first),
    )


def transport_name(flow: FlowSpec) -> str:
    """Return the transport protocol, with the implementation if it is not jostle's own QUIC."""
    quic = flow.get("quic")
    other = None if quic is None else quic.get("implementation")
    name = flow["transport"].upper()
    return name if other is None else f"{name} ({other['name']})"


def _split_number(name: str) -> tuple[str, int]:
    """Split the name of a copy: `web-3` becomes `("web", 3)`; other names get number 0."""
    base, _, digits = name.rpartition("-")
    is_number = digits.isascii() and digits.isdigit() and digits[0] != "0"
    return (base, int(digits)) if base and is_number else (name, 0)


def group_name_by_flow(spec: Spec) -> dict[str, str]:
    """Return the name of the group of each flow."""
    return {name: group.name for group in flow_groups(spec) for name in group.members}
