"""Random quantities of applications, drawn by the engine as in a simulation with the same seed.

For example, on and off times of a flow are equal in simulator and kernel. Times that depend on the
network can differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jostle.run_spec import FlowSpec

LEAST_NS = 1_000
"""Minimum span, so that a source does not act repeatedly at the same time."""

MOST = 1 << 20
"""Maximum number of drawn values; then they are reused. Enough for 1,000 values per second over 20
minutes."""

_AT_ONCE = 1 << 12
# Resolution of a factor, which is drawn as an integer.
_UNIT = 1e12


def spans_ns(seed: int, flow: FlowSpec, duration_ns: int) -> list[int]:
    """Return the spans that a flow's source uses cyclically.

    On and off times of an on-off source, think times of a request-response source; empty for
    others.
    """
    source: Any = flow["source"]
    match source["kind"]:
        case "on_off":
            spans = [source["on_ns"], source["off_ns"]]
        case "request_response":
            spans = [source["think_ns"]]
        case _:
            return []
    if all(isinstance(span, int) for span in spans):
        return [max(LEAST_NS, span) for span in spans]
    name = f"flow/{flow['name']}/source"
    lasting: list[int] = []
    count = _AT_ONCE
    while sum(lasting) <= duration_ns and len(lasting) < MOST:
        lasting = [max(LEAST_NS, ns) for ns in draw(spans, seed, name, count)]
        count *= 4
    return lasting


def factors(seed: int, flow: FlowSpec, duration_ns: int) -> list[float]:
    """Return the ratios of a flow's video segment sizes to their mean.

    Enough for a run of this duration; empty for other sources.
    """
    source: Any = flow["source"]
    if source["kind"] != "video":
        return []
    variation = source["variation"]
    if not variation:
        return [1.0]
    segments = (duration_ns + source["buffer_ns"]) // source["segment_ns"] + 2
    # Uniform distribution, as integer multiples of 1 / `_UNIT`.
    points = [
        {"value": (1.0 + sign * variation) * _UNIT, "probability": probability}
        for sign, probability in ((-1, 0.0), (1, 1.0))
    ]
    uniform = {"law": {"kind": "empirical", "points": points}, "min": None, "max": None}
    name = f"flow/{flow['name']}/source"
    return [value / _UNIT for value in draw([uniform], seed, name, min(segments, MOST))]


def sizes_bytes(seed: int, flow: FlowSpec) -> list[int]:
    """Return the transfer sizes that a flow's source uses cyclically."""
    source: Any = flow["source"]
    if "bytes" not in source:
        return []
    if isinstance(source["bytes"], int):
        return [source["bytes"]]
    count = source.get("count", 1)
    several = _AT_ONCE if count is None else min(count, MOST)
    name = f"flow/{flow['name']}/sizes"
    return [max(1, size) for size in draw([source["bytes"]], seed, name, several)]


def writes(flow: FlowSpec, duration_ns: int) -> list[tuple[int, int]]:
    """Return the scheduled writes of a flow: ns since its start, and bytes.

    As `SourceSpec::write` in Rust; empty for sources without a schedule.
    """
    source = flow["source"]
    if source["kind"] == "trace":
        return [(write["at_ns"], write["bytes"]) for write in source["writes"]]
    if source["kind"] != "media":
        return []
    rate, sizes = source["frames_per_1000_s"], (source["delta_bytes"], source["key_bytes"])
    frames = duration_ns * rate // 10**12 + 1
    return [
        (number * 10**12 // rate, sizes[number % source["key_every"] == 0])
        for number in range(frames)
    ]


def draw(quantities: Sequence[Any], seed: int, name: str, count: int) -> list[int]:
    """Draw `count` values of quantities, in turn, from a named random stream of the run."""
    from jostle import _core

    return _core.draw_quantities([json.dumps(one) for one in quantities], seed, name, count)
