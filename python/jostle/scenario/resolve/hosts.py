"""Hosts at the ends of flows, in the form of the run specification."""

from __future__ import annotations

from typing import Any, Final

from jostle.scenario.models import Flow

__all__ = ["hosts_spec"]

_FIRST_PEER: Final = 10 << 24 | 1
"""10.0.0.1, the address of the first flow's receiver."""


def hosts_spec(flow: Flow, index: int) -> dict[str, Any]:
    """Return the hosts of a flow, and the address of its receiver in the peer cache.

    By default a flow has its own hosts, and an address that follows from its index.
    """
    given = {"sender_host": flow.sender_host, "receiver_host": flow.receiver_host}
    named = {key: name for key, name in given.items() if name is not None}
    return {"peer": _FIRST_PEER + index if flow.peer is None else flow.peer, **named}
