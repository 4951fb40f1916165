"""Texts and names of the runs of a plan, which are made from a part that all of them share."""

from __future__ import annotations

import hashlib
import pickle

import jostle
import pytest
from fake_plan import make_plan
from jostle.backends import canonical_json, run_id
from jostle.runner.spec_texts import PlanTexts
from jostle.scenario import RunPlan

FLOWS = """
duration = "5 s"
repeats = 3
[bottleneck]
rate = "4 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "two"
controller = "bbr"
rtt = "40 ms"
start = "100 ms"
"""
JITTER = 'start_jitter = "20 ms"\n'
SLOTS = FLOWS.replace('rate = "4 Mbit/s"', 'profile = "starlink"').replace("40 ms", "80 ms")
GRID = '[grid]\n"flows.two.count" = [0, 1]\n"bottleneck.rate" = ["4 Mbit/s", "5 Mbit/s"]\n'
SCENARIOS = {
    "constant": FLOWS,
    "jitter": FLOWS + JITTER,
    "capture": "capture = true\n" + FLOWS + JITTER,
    "title": 'title = "É \ue000 \\" ÷"\ncapture = true\n' + FLOWS + JITTER,
    "mark": 'title = "\ue000"\ncapture = true\n' + FLOWS + JITTER,
    "slots": SLOTS + JITTER,
    "grid": FLOWS + JITTER + GRID,
}


@pytest.mark.parametrize("text", SCENARIOS.values(), ids=SCENARIOS)
def test_texts_and_names_are_those_of_specifications(text: str) -> None:
    plan = jostle.Scenario.from_toml(text).plan()
    check(plan)


def test_starts_follow_from_seed_and_name() -> None:
    plan = jostle.Scenario.from_toml(FLOWS + JITTER).plan(seed=2**63 - 3)
    for run in plan.runs:
        one, two = run.spec["flows"]
        assert one["start_ns"] == 0
        digest = hashlib.sha256(f"start_jitter/{run.seed}/two".encode()).digest()
        drawn_ns = int.from_bytes(digest[:8], "big") * 20_000_001 >> 64
        assert two["start_ns"] == 100_000_000 + drawn_ns


def test_plans_without_templates_have_texts() -> None:
    check(make_plan(2))


def check(plan: RunPlan) -> None:
    texts = PlanTexts(plan)
    for position, run in enumerate(plan.runs):
        specs, seed = pickle.loads(pickle.dumps(texts.at(position)))
        assert seed == run.seed
        assert specs.spec(seed) == run.spec
        assert specs.text(seed) == canonical_json(run.spec)
    found = [
        (condition, seed, name)
        for condition, specs, seeds in texts.conditions()
        for seed, name in zip(seeds, specs.names(seeds, "sim", "1"), strict=True)
    ]
    assert found == [(run.condition, run.seed, run_id(run.spec, "sim", "1")) for run in plan.runs]
