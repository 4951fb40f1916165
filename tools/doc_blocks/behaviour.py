"""A hash of what the engine does: equal as long as results need not be measured again.

A refactoring changes the engine's version, which is a hash of its sources, and not this one. The
scenarios of `behaviour/` cover TCP and QUIC, a controller of each family, queues, shapers, losses,
varying links and sources, in some thirty runs of seconds.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import jostle
from jostle import _core

SCENARIOS: Final = Path(__file__).with_name("behaviour")
_DIGITS: Final = 9
"""Significant digits; libraries of mathematics differ in the last ones."""
_FLOW: Final = (
    "sending_rate_bps", "throughput_bps", "goodput_bps", "rtt_mean_s", "rtt_p95_s",
    "cwnd_mean_bytes", "sent_packets", "retransmitted_packets", "one_way_delay_p95_s",
)  # fmt: skip
_LINK: Final = (
    "utilisation", "queue_length_mean_bytes", "queueing_delay_p95_s", "dropped_packets",
    "marked_packets",
)  # fmt: skip


def specifications() -> list[str]:
    """Return the run specifications."""
    return [
        json.dumps(run.spec)
        for path in sorted(SCENARIOS.glob("*.toml"))
        for run in jostle.load(path).plan().runs
    ]


def behaviour_hash() -> str:
    """Run the scenarios and return the hash of their summaries."""
    with ThreadPoolExecutor() as pool:
        summaries = [json.loads(record.summary) for record in pool.map(_core.run, specifications())]
    return hash_of(summaries)


def hash_of(summaries: list[dict[str, Any]]) -> str:
    """Return the hash of summaries, with any measures in addition to the basic ones."""
    basic = [
        {
            **{
                kind: [_values(one, keys) for one in summary[kind]] for kind, keys in _KINDS.items()
            },
            "completion": [flow["completion_time_s"] for flow in summary["flows"]],
        }
        for summary in summaries
    ]
    text = json.dumps(_rounded(basic), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


_KINDS: Final = {"flows": _FLOW, "links": _LINK}


def _values(one: dict[str, Any], keys: tuple[str, ...]) -> list[Any]:
    phase = one["phases"]["overall"]
    return [one["name"], *(phase[key] for key in keys)]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return value
