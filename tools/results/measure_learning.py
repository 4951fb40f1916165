"""Measure steps per second of processor time: `python tools/results/measure_learning.py`."""

from __future__ import annotations

import time

import jostle
import numpy as np
from jostle.gym import ORCA, FlowEnv, FlowVectorEnv

SCENARIO = jostle.Scenario.from_toml("""
duration = "60 s"
bottleneck = { rate = "10 Mbit/s", queue = { kind = "drop_tail", limit = "1 BDP" } }
flows = [{ name = "learner", controller = "cubic", rtt = "40 ms" }]
""")
MANY = 16
STEPS = 1500


def flow_env_rate(scenario: jostle.Scenario) -> float:
    """Return the steps per second of an environment, over a complete episode."""
    environment = FlowEnv(scenario, "learner", design=ORCA)
    environment.reset(seed=1)
    action, steps, over = np.zeros(1), 0, False
    start = time.process_time()
    while not over:
        _, _, _, over, _ = environment.step(action)
        steps += 1
    return steps / (time.process_time() - start)


def vector_env_rate(scenario: jostle.Scenario) -> float:
    """Return the steps per second of several episodes at once, on all cores."""
    environment = FlowVectorEnv(scenario, "learner", design=ORCA, num_envs=MANY)
    environment.reset(seed=1)
    actions = np.zeros((MANY, 1))
    start = time.process_time()
    for _ in range(STEPS):
        environment.step(actions)
    return MANY * STEPS / (time.process_time() - start)


def main() -> None:
    """Print a row for each rate."""
    for rate in ("10 Mbit/s", "50 Mbit/s"):
        scenario = SCENARIO.set({"bottleneck.rate": rate})
        single, vector = flow_env_rate(scenario), vector_env_rate(scenario)
        print(f"{rate}: FlowEnv {single:,.0f}, FlowVectorEnv {vector:,.0f} steps/s")


if __name__ == "__main__":
    main()
