"""Hosts at the ends of flows: from what a scenario says to a run's specification."""

from __future__ import annotations

from typing import Any, Final

from jostle.scenario.models import Flow

__all__ = ["hosts_spec"]

_FIRST_PEER: Final = 10 << 24 | 1
"""10.0.0.1, the address of the first flow's receiver."""


def hosts_spec(flow: Flow, index: int) -> dict[str, Any]:
    """Return the hosts that a flow names, and the address by which its sender knows the receiver.

    Hosts that it does not name are its own, and so is an address, by the place of its entry.
    """
    given = {"sender_host": flow.sender_host, "receiver_host": flow.receiver_host}
    named = {key: name for key, name in given.items() if name is not None}
    return {"peer": _FIRST_PEER + index if flow.peer is None else flow.peer, **named}
