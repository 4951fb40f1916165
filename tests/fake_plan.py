"""Plans that need no scenario file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import fake_core


@dataclass(frozen=True)
class FakePlannedRun:
    condition: int
    seed: int
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class FakePlan:
    title: str
    conditions: Sequence[Mapping[str, str]]
    runs: Sequence[FakePlannedRun]


RIVALS = ("cubic", "bbr", "vivace", "hybla")


def make_plan(repeats: int = 3, rivals: Sequence[str] = RIVALS, duration_s: int = 10) -> FakePlan:
    """Cubic beside each of `rivals`."""
    runs = [
        FakePlannedRun(index, seed, fake_core.spec(seed, ("cubic", rival), duration_s))
        for index, rival in enumerate(rivals)
        for seed in range(1, repeats + 1)
    ]
    key = "flows.newcomer.controller"
    return FakePlan("Cubic and a rival", [{key: rival} for rival in rivals], runs)
