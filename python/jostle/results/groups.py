"""Flows that are shown together: what they do, and which of them `count` made of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.run_spec import FlowSpec

Kind = Literal["bulk", "transfers", "requests", "media", "pings", "datagrams", "videos", "pages"]
"""What flows do, by which they are shown together: they send without an end, end, answer, …"""

KINDS: Final[Mapping[str, Kind]] = {
    "bulk": "bulk",
    "on_off": "bulk",
    "fixed": "transfers",
    "request_response": "requests",
    "ping": "pings",
    "video": "videos",
    "web": "pages",
    # Beside the flow whose data it passes on.
    "relay": "bulk",
    "cbr": "datagrams",
    "media": "media",
    "trace": "media",
}
"""By the kind of a flow's source."""

_ALIKE: Final = ("transport", "controller", "source", "path", "reverse_path", "access_delay_ns")
"""Keys of a flow's specification that the flows of a group have in common."""


@dataclass(frozen=True)
class Group:
    """A flow, or the flows that `count` made of one.

    Attributes
    ----------
    name
        The scenario's name of it.
    members
        Names of its flows.
    controller
        Its controller.
    kind
        What it does.
    transport
        What it goes over; see `transport_of`.
    """

    name: str
    members: tuple[str, ...]
    controller: str
    kind: Kind
    transport: str

    @property
    def label(self) -> str:
        """Name, and of how many flows."""
        return self.name if len(self.members) == 1 else f"{self.name} ×{len(self.members)}"


def groups(spec: Spec, *, each: bool = False) -> list[Group]:
    """Flows of a run in the order of the scenario, those that `count` made together.

    Parameters
    ----------
    spec
        The run.
    each
        Whether every flow stands for itself.
    """
    found: list[Group] = []
    alike: tuple[object, ...] = ()
    for flow in spec["flows"]:
        name, controller = flow["name"], flow["controller"]["name"]
        kind = KINDS[flow["source"]["kind"]]
        base, number = _numbered(name)
        facts = (base, *(flow[key] for key in _ALIKE))
        last = found[-1] if found else None
        # Flows that follow each other have an order, and are shown in it.
        another = number > 1 and flow.get("after") is None and facts == alike
        if last is not None and another and number == len(last.members) + 1 and not each:
            found[-1] = Group(base, (*last.members, name), controller, kind, last.transport)
            continue
        alike = facts if number == 1 else ()
        found.append(Group(name, (name,), controller, kind, transport_of(flow)))
    return found


def transport_of(flow: FlowSpec) -> str:
    """Name the transport of a flow, of QUIC of other people with its implementation."""
    quic = flow.get("quic")
    other = None if quic is None else quic.get("implementation")
    name = flow["transport"].upper()
    return name if other is None else f"{name} ({other['name']})"


def _numbered(name: str) -> tuple[str, int]:
    """Split a name of a copy as `count` gives it: `web-3` is the third of `web`."""
    match = re.fullmatch(r"(.+)-([1-9]\d*)", name)
    return (match[1], int(match[2])) if match else (name, 0)


def groups_of_members(spec: Spec) -> dict[str, str]:
    """By the name of a flow, the name of the group that it is shown in."""
    return {name: group.name for group in groups(spec) for name in group.members}
