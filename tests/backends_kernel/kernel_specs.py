"""Scenarios for the kernel backend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
