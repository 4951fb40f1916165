"""Fixtures that stand in for the engine, and plans that need no scenario file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_core
import pytest
from jostle.backends import SimBackend
from jostle.executors import local
from jostle.results import ResultSet
from jostle.session import Session
from jostle.store import Store


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


@pytest.fixture
def engine() -> fake_core.FakeEngine:
    return fake_core.FakeEngine()


Carry = Callable[..., ResultSet]


@pytest.fixture
def carry_out(engine: fake_core.FakeEngine) -> Carry:
    """Carry a plan out with the fake engine, in memory unless a store is given."""

    def carry(plan: FakePlan, store: Path | None = None, jobs: int = 2) -> ResultSet:
        executor = local(jobs)
        try:
            kept = None if store is None else Store(store)
            return Session(SimBackend(engine), executor, kept).carry_out(plan)
        finally:
            executor.shutdown()

    return carry
