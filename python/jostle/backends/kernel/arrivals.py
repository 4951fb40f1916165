"""Connections of multi-connection flows: when each opens, and the transfers on it.

The engine draws both. They are read from the transfers of a simulation of the flow alone, because
arrivals depend only on the flow and the seed.
"""

from __future__ import annotations

from typing import Any

from jostle.backends.base import Spec, canonical_json
from jostle.backends.kernel.traffic_draws import LEAST_NS, MOST, draw
from jostle.run_spec import FlowSpec


def is_many(flow: FlowSpec) -> bool:
    """Return whether a flow consists of several connections."""
    return flow.get("arrivals") is not None or flow["source"]["kind"] == "web"


def connections(spec: Spec, flow: FlowSpec) -> list[dict[str, Any]] | None:
    """Return the connections of a flow in order; None if the arrivals are not drawn.

    Each entry contains the keys that differ from the flow's part of the job: `start_ns` since the
    start of the run, the sizes of its transfers in bytes, its think times, and its source.
    """
    if flow.get("arrivals") is None:
        return None
    from jostle import _core

    alone = {**spec, "flows": [flow], "record": "none"}
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
    # Stream names as in `rename` and `responses` of crates/metrics.
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
    """Draw `count` values, each at least one."""
    if isinstance(quantity, int):
        return [quantity] * count
    return [max(1, drawn) for drawn in draw([quantity], seed, stream, count)]
