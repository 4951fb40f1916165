"""What applications draw: the same as in a simulation of the same seed, for the engine draws it.

What depends on how long the network takes cannot be equal, but a flow that is on for 1.7 s and off
for 0.4 s in the simulator is that on the kernel, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jostle.run_spec import FlowSpec

LEAST_NS = 1_000
"""A source that acts again at the same instant would never let time pass."""

MOST = 1 << 20
"""Beyond that the same come again: a source with a thousand turns per second for 20 minutes."""

_AT_ONCE = 1 << 12
# Parts of which a factor is a whole number.
_UNIT = 1e12


def spans_ns(seed: int, flow: FlowSpec, duration_ns: int) -> list[int]:
    """List the lengths that a flow's source uses one after the other, and then again.

    On and off times of a source that takes turns, think times of one that answers; none of others.
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
    """List by which factors segments of a flow's video are larger than their mean.

    As many as a run can have that lasts so long; none of other sources.
    """
    source: Any = flow["source"]
    if source["kind"] != "video":
        return []
    variation = source["variation"]
    if not variation:
        return [1.0]
    segments = (duration_ns + source["buffer_ns"]) // source["segment_ns"] + 2
    # Uniform, in whole parts of `_UNIT`.
    points = [
        {"value": (1.0 + sign * variation) * _UNIT, "probability": probability}
        for sign, probability in ((-1, 0.0), (1, 1.0))
    ]
    uniform = {"law": {"kind": "empirical", "points": points}, "min": None, "max": None}
    name = f"flow/{flow['name']}/source"
    return [one / _UNIT for one in draw([uniform], seed, name, min(segments, MOST))]


def sizes_bytes(seed: int, flow: FlowSpec) -> list[int]:
    """List the sizes that a flow's source writes one after the other, and then again."""
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
    """List what a flow writes by the clock in a run: ns since its start, and bytes.

    As `SourceSpec::write` of `crates/record/src/spec/media.rs` has it; nothing of other sources.
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
    """Draw so many values of quantities in turn from a named stream of the run's."""
    from jostle import _core

    return _core.draw_quantities([json.dumps(one) for one in quantities], seed, name, count)
