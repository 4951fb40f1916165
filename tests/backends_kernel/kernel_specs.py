"""Scenarios for the kernel backend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from jostle import _core
from jostle.backends.kernel.engine_samples import REASONS
from jostle.scenario import load_text

SCENARIO = """
title = "for the kernel"
duration = "10 s"
[phases]
late = ["5 s", "10 s"]
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
"""

PARKING_LOT = """
duration = "6 s"
[[links]]
name = "first"
rate = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[links]]
name = "second hop"
rate = "10 Mbit/s"
loss = "0.1 %"
queue = { kind = "drop_tail", limit = "60 packets" }
[[links]]
name = "back"
rate = "1 Mbit/s"
queue = { kind = "drop_tail", limit = "50 packets" }
[[flows]]
name = "long"
controller = "reno"
path = ["first", "second hop"]
reverse_path = ["back"]
rtt = "40 ms"
[[flows]]
name = "short"
controller = "cubic"
path = ["second hop"]
rtt = "20 ms"
"""


def spec_of(text: str = SCENARIO, overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The RunSpec of a scenario, as a copy that may be changed."""
    planned = load_text(text, overrides=overrides, allow_code=True).plan(repeats=1)
    spec: dict[str, Any] = json.loads(json.dumps(planned.runs[0].spec))
    return spec


_FLOW = (
    "sent_bytes", "received_bytes", "delivered_bytes", "sent_packets", "retransmitted_packets",
    "rtt_s", "srtt_s", "rtt_min_s", "cwnd_bytes", "ssthresh_bytes", "in_flight_bytes",
    "pacing_rate_bps",
)  # fmt: skip
_LINK = (
    "sent_bytes", "sent_packets", "queue_bytes", "duplicated",
    *(f"{outcome}_{reason}" for outcome in ("dropped", "marked") for reason in REASONS),
)  # fmt: skip


def record_of_logs(spec: dict[str, Any], logs: list[dict[str, Any]]) -> _core.RunRecord:
    """The record of a run of which only the logs of the applications are known, one per flow."""
    still = np.zeros(2)
    flow = dict.fromkeys(_FLOW, still) | {
        "mode": ["unknown"] * 2,
        "internals": {},
        "start_ns": 0,
        "completed_ns": None,
        "initial_cwnd_bytes": 0,
    }
    time_ns = np.array([0, spec["duration_ns"]])
    links = [dict.fromkeys(_LINK, still) for _ in spec["links"]]
    return _core.record_of_samples(json.dumps(spec), time_ns, [flow | log for log in logs], links)
