"""Plans that need no scenario file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import fake_core
from jostle.scenario import Condition, PlannedRun, RunPlan


def plan_of(
    title: str, conditions: Sequence[Mapping[str, str]], runs: Sequence[PlannedRun]
) -> RunPlan:
    """A plan of runs that were made by hand."""
    made = (Condition(index, labels) for index, labels in enumerate(conditions))
    return RunPlan(title, tuple(made), tuple(runs))


RIVALS = ("cubic", "bbr", "vivace", "hybla")


def make_plan(repeats: int = 3, rivals: Sequence[str] = RIVALS, duration_s: int = 10) -> RunPlan:
    """Cubic beside each of `rivals`."""
    runs = [
        PlannedRun(index, seed, fake_core.spec(seed, ("cubic", rival), duration_s))
        for index, rival in enumerate(rivals)
        for seed in range(1, repeats + 1)
    ]
    key = "flows.newcomer.controller"
    return plan_of("Cubic and a rival", [{key: rival} for rival in rivals], runs)
