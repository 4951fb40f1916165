"""Scenarios: what a person writes about a network and its flows, checked and resolved into runs.

>>> from jostle import scenario
>>> plan = scenario.load("scenarios/first.toml").plan()
>>> plan.runs[0].spec["duration_ns"]
20000000000
"""

from jostle.scenario.plan import Condition, Plan, PlannedRun
from jostle.scenario.registry import Registry
from jostle.scenario.scenario import Scenario, load, loads
from jostle.scenario.text.problems import Problem, ScenarioError

__all__ = [
    "Condition",
    "Plan",
    "PlannedRun",
    "Problem",
    "Registry",
    "Scenario",
    "ScenarioError",
    "load",
    "loads",
]
