"""Writes mobile-3g.toml and its like: mobile links whose rates vary as a documented random process.

    python studies/slow-start/make_mobile.py

The paper's 3G, 4G and 5G traces are not public. Their means follow from the published BDPs (84
packets at 50 ms, 305 at 20 ms; for 3G a tenth of 4G is taken). A rate holds for 100 ms; its
logarithm is a first-order autoregression with correlation 0.9 from step to step and a standard
deviation of 0.4, as scheduling and fading give.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

STEPS = 300
LINKS = {
    "3G": (1.95, "50 ms", "1280 kB"),
    "4G": (19.5, "50 ms", "5 MB"),
    "5G": (176.7, "20 ms", "10 MB"),
}
"""Mean rate in Mbit/s, round trip, buffer."""

SCENARIO = """# Three visits of 1 MB over a {name} link; the second and third can remember.
# Written by make_mobile.py.
title             = "Visits over a {name} link"
duration          = "30 s"
sampling_interval = "50 ms"
repeats           = 50

[bottleneck]
rate  = [{steps}]
queue = {{ kind = "drop_tail", limit = "{buffer}" }}

[[flows]]
name          = "visit"
controller    = "cubic"
rtt           = "{rtt}"
size          = "1 MB"
count         = 3
one_at_a_time = "500 ms"
start_jitter  = "1 s"

[grid]
"flows.visit.peer_cache" = ["none", "stateful"]
"bottleneck.loss"        = ["0 %", "0.1 %"]
"""


def rates(mean_mbps: float, seed: str) -> list[str]:
    """Rates of all steps, with the mean that is asked for."""
    draw = random.Random(seed)
    level, found = 0.0, []
    for _ in range(STEPS):
        level = 0.9 * level + math.sqrt(1 - 0.81) * draw.gauss(0, 0.4)
        found.append(math.exp(level))
    scale = mean_mbps * len(found) / sum(found)
    return [f'["{step / 10:g} s", "{scale * rate:.3f} Mbit/s"]' for step, rate in enumerate(found)]


def main() -> None:
    """Write a scenario for each link."""
    for name, (mean_mbps, rtt, buffer) in LINKS.items():
        steps = ", ".join(rates(mean_mbps, name))
        text = SCENARIO.format(name=name, steps=steps, rtt=rtt, buffer=buffer)
        (Path(__file__).parent / f"mobile-{name.lower()}.toml").write_text(text)


if __name__ == "__main__":
    main()
