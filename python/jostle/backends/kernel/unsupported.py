"""Unsupported settings of a run, and names of scenario keys."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jostle.run_spec import FlowSpec, LinkSpec


@dataclass(frozen=True)
class Problem:
    """A setting that the kernel backend does not support.

    Attributes
    ----------
    key
        Scenario key of the setting.
    text
        Reason, and possible alternatives.
    """

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def link_key(link: LinkSpec, key: str) -> str:
    """Return the scenario key of a link's setting."""
    name = link["name"]
    return f"bottleneck.{key}" if name == "bottleneck" else f"links.{_quoted(name)}.{key}"


def flow_key(flow: FlowSpec, key: str) -> str:
    """Return the scenario key of a flow's setting."""
    return f"flows.{_quoted(flow['name'])}.{key}"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
