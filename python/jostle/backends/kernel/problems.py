"""What a run asks that the kernel backend cannot do, and the names of keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jostle.run_spec import FlowSpec, LinkSpec


@dataclass(frozen=True)
class Problem:
    """One thing that cannot be done.

    Attributes
    ----------
    key
        The scenario's key that asks for it.
    text
        Why not, and what could be written instead.
    """

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def link_key(link: LinkSpec, key: str) -> str:
    """Name of a link's key in a scenario."""
    name = link["name"]
    return f"bottleneck.{key}" if name == "bottleneck" else f"links.{_quoted(name)}.{key}"


def flow_key(flow: FlowSpec, key: str) -> str:
    """Name of a flow's key in a scenario."""
    return f"flows.{_quoted(flow['name'])}.{key}"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
