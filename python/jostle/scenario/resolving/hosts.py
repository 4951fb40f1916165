"""Hosts where the ends of flows are: from what a scenario says to a run's specification."""

from __future__ import annotations

from jostle.scenario.models import Flow

__all__ = ["hosts_spec"]


def hosts_spec(flow: Flow) -> dict[str, str]:
    """Return the hosts that a flow names; what it does not name are hosts of its own."""
    given = {"sender_host": flow.sender_host, "receiver_host": flow.receiver_host}
    return {key: name for key, name in given.items() if name is not None}
