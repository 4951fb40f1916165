"""Connections of flows that are many: when each opens, and what it transfers.

The engine draws both, and has no other words for them than the transfers of a run. When connections
come depends on nothing but the flow and the seed, so that a simulation of the flow alone tells it.
"""

from __future__ import annotations

from typing import Any

from jostle.backends.base import Spec, canonical_json
from jostle.backends.kernel.spans import LEAST_NS, MOST, draw
from jostle.run_spec import FlowSpec


def is_many(flow: FlowSpec) -> bool:
    """Tell whether a flow is many connections, which come and go."""
    return flow.get("arrivals") is not None or flow["source"]["kind"] == "web"


def connections(spec: Spec, flow: FlowSpec) -> list[dict[str, Any]] | None:
    """List the connections of a flow in their order; None if it is a single one.

    Of each what differs from the flow's part of a job: `start_ns` from the run's beginning, sizes
    in bytes of its transfers, how long it thinks between them, and its source.
    """
    if flow.get("arrivals") is None:
        return None
    from jostle import _core

    alone = {**spec, "flows": [flow], "trace": "none"}
    table = _core.run(canonical_json(alone)).transfers
    assert table is not None, "a flow with arrivals has transfers"
    opens: dict[int, tuple[int, int]] = {}
    for number, at_s, size_bytes in zip(
        table["connection"].tolist(), table["time_s"].tolist(), table["bytes"].tolist(), strict=True
    ):
        opens.setdefault(number, (round(at_s * 1e9), size_bytes))
    return [
        {"start_ns": at_ns, **_transfers(spec, flow, number, size_bytes)}
        for number, (at_ns, size_bytes) in sorted(opens.items())
    ]


def _transfers(spec: Spec, flow: FlowSpec, number: int, size_bytes: int) -> dict[str, Any]:
    source: Any = flow["source"]
    if source["kind"] != "request_response":
        return {
            "sizes_bytes": [size_bytes],
            "spans_ns": [],
            "source": {"kind": "fixed"},
        }
    # As `rename` and `responses` of crates/record name its streams.
    seed, name = spec["seed"], f"{flow['name']}/{number}"
    (count,) = _drawn(source["count"], seed, f"flow/{name}/count", 1)
    several = min(count, MOST)
    thinks_ns = _drawn(source["think_ns"], seed, f"flow/{name}/source", several)
    return {
        "sizes_bytes": _drawn(source["bytes"], seed, f"flow/{name}/sizes", several),
        "spans_ns": [max(LEAST_NS, ns) for ns in thinks_ns],
        "source": {"kind": "request_response", "count": count},
    }


def _drawn(quantity: Any, seed: int, stream: str, count: int) -> list[int]:
    """Draw so many values, each at least one."""
    if isinstance(quantity, int):
        return [quantity] * count
    return [max(1, drawn) for drawn in draw([quantity], seed, stream, count)]
