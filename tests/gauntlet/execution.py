"""Runs cases in parallel and judges them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from jostle import Scenario
from jostle.backends import SimBackend
from jostle.errors import JostleError
from jostle.scenario import ScenarioError

from gauntlet.cases import FOLDER, Case
from gauntlet.invariants import RUN_ENDS, violations

__all__ = ["Verdict", "judge", "judge_all"]


@dataclass(frozen=True)
class Verdict:
    """Violations of a case by invariant, and the CPU time that it took."""

    case: Case
    violations: dict[str, str]
    cpu_s: float


def judge(case: Case) -> Verdict:
    """Run a case and look for violations."""
    start = time.thread_time()
    try:
        name = str(FOLDER / "case.toml")
        (planned,) = Scenario.from_dict(case.document, name=name).plan().runs
        found = violations(SimBackend().run(planned.spec), case.recovered)
    except (ScenarioError, JostleError, ValueError) as error:
        found = {RUN_ENDS: str(error).replace(f"{FOLDER}/", "")}
    return Verdict(case, found, time.thread_time() - start)


def judge_all(cases: Sequence[Case], pool: Executor, *, progress: bool = False) -> list[Verdict]:
    """Judge all cases in the processes of `pool`, in the order of `cases`."""
    found: list[Verdict] = []
    verdicts: Iterable[Verdict] = pool.map(judge, cases, chunksize=16)
    for verdict in verdicts:
        found.append(verdict)
        if progress and len(found) % 200 == 0:
            wrong = sum(bool(one.violations) for one in found)
            print(f"{len(found)} of {len(cases)} runs, {wrong} with violations", file=sys.stderr)
    return found
