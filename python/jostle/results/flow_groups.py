"""Groups of flows for tables and figures.

A scenario entry with `count = 10` creates the flows `web-1` to `web-10`. Tables show them as one
row. This module finds these groups in a run specification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.run_spec import FlowSpec

TrafficKind = Literal[
    "bulk", "transfers", "requests", "media", "pings", "datagrams", "videos", "pages"
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
    found: list[FlowGroup] = []
    alike: tuple[object, ...] = ()
    for flow in spec["flows"]:
        name, controller = flow["name"], flow["controller"]["name"]
        kind: TrafficKind = _TRAFFIC_KINDS.get(flow["source"]["kind"], "bulk")
        base, number = _split_number(name)
        facts = (base, *(flow[key] for key in _SHARED_KEYS))
        last = found[-1] if found else None
        # Flows with `after` run one after another, so each keeps its own row.
        another = number > 1 and flow.get("after") is None and facts == alike
        if last is not None and another and number == len(last.members) + 1 and not each:
            found[-1] = FlowGroup(base, (*last.members, name), controller, kind, last.transport)
            continue
        alike = facts if number == 1 else ()
        found.append(FlowGroup(name, (name,), controller, kind, transport_name(flow)))
    return found


def transport_name(flow: FlowSpec) -> str:
    """Return the transport protocol, with the implementation if it is not jostle's own QUIC."""
    quic = flow.get("quic")
    other = None if quic is None else quic.get("implementation")
    name = flow["transport"].upper()
    return name if other is None else f"{name} ({other['name']})"


def _split_number(name: str) -> tuple[str, int]:
    """Split the name of a copy: `web-3` becomes `("web", 3)`; other names get number 0."""
    match = re.fullmatch(r"(.+)-([1-9]\d*)", name)
    return (match[1], int(match[2])) if match else (name, 0)


def group_name_by_flow(spec: Spec) -> dict[str, str]:
    """Return the name of the group of each flow."""
    return {name: group.name for group in flow_groups(spec) for name in group.members}
