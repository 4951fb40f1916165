"""Links that a flow of a run specification crosses, on all its routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "crossed_links",
    "forward_links",
    "opposites",
    "paths",
    "reverse_links",
    "reverse_paths",
]


def paths(flow: Mapping[str, Any]) -> list[list[int]]:
    """Return the path of a flow's data on each of its routes, the first one first."""
    return [flow["path"], *(route["path"] for route in flow.get("routes", ()))]


def reverse_paths(flow: Mapping[str, Any]) -> list[list[int]]:
    """Return the path of a flow's ACKs on each of its routes."""
    return [flow["reverse_path"], *(route["reverse_path"] for route in flow.get("routes", ()))]


def forward_links(flow: Mapping[str, Any]) -> list[int]:
    """Return the links that the data of a flow cross."""
    return list(dict.fromkeys(link for path in paths(flow) for link in path))


def reverse_links(flow: Mapping[str, Any]) -> list[int]:
    """Return the links that the ACKs of a flow cross."""
    return list(dict.fromkeys(link for path in reverse_paths(flow) for link in path))


def crossed_links(flow: Mapping[str, Any]) -> list[int]:
    """Return the links that a flow crosses in either direction."""
    return list(dict.fromkeys((*forward_links(flow), *reverse_links(flow))))


def opposites(flows: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return, for flows that share a connection, the flow in the opposite direction."""
    found: dict[int, int] = {}
    for position, flow in enumerate(flows):
        of = flow.get("connection_of")
        if of is not None:
            found |= {of: position, position: of}
    return found
