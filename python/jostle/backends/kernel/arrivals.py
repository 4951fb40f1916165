"""Connections of multi-connection flows: when each opens."""

from __future__ import annotations

from jostle.backends.base import Spec, canonical_json
from jostle.run_spec import FlowSpec


def is_many(flow: FlowSpec) -> bool:
    """Return whether a flow consists of several connections."""
    return flow.get("arrivals") is not None or flow["source"]["kind"] == "web"


def arrivals_ns(spec: Spec, number: int) -> list[int] | None:
    """Return the times at which a flow's connections open; None if the arrivals are not drawn."""
    if spec["flows"][number].get("arrivals") is None:
        return None
    from jostle import _core

    return _core.Traffic(canonical_json(spec)).arrivals_ns(number)
