"""Scenarios: descriptions of a network and its flows, validated and resolved into runs.

>>> from jostle import scenario
>>> plan = scenario.load("scenarios/first.toml").plan()
>>> plan.runs[0].spec["duration_ns"]
20000000000

Names are imported when they are first used: `jostle --help` needs only the templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.scenario.parsing.problems import Problem, ScenarioError
    from jostle.scenario.plan import Condition, PlannedRun, RunPlan
    from jostle.scenario.registry import Registry
    from jostle.scenario.scenario import Scenario, load, load_text

__all__ = [
    "Condition",
    "PlannedRun",
    "Problem",
    "Registry",
    "RunPlan",
    "Scenario",
    "ScenarioError",
    "load",
    "load_text",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Condition": "plan",
        "PlannedRun": "plan",
        "Problem": "parsing.problems",
        "Registry": "registry",
        "RunPlan": "plan",
        "Scenario": "scenario",
        "ScenarioError": "parsing.problems",
        "load": "scenario",
        "load_text": "scenario",
    },
)
