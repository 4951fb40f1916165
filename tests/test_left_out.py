"""Conditions that a backend cannot run, in the progress of studies and suites."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jostle.backends.sim import SimBackend
from jostle.cli.runners import runners
from jostle.runner.session import RejectedRun
from jostle.scenario import load_text
from jostle.studies.load import load
from jostle.studies.run_study import unsupported

SCENARIO = """
duration = "1 s"
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "20 ms"
"""


class Experiment(SimpleNamespace):
    def __str__(self) -> str:
        return "small: one"


def test_conditions_left_out_for_the_same_reason_are_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    why = "the kernel backend cannot run this scenario:\n  flows.one.controller: no `vivace`"
    refused = [RejectedRun(f"rtt = {rtt} ms", why) for rtt in (10, 20, 30)]
    experiment: Any = Experiment(plan=load_text(SCENARIO).plan(), left_out=refused)
    with runners({"sim": SimBackend()}, 1, 1, None) as made:
        results = made["sim"](experiment)
    assert len(results.results) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert lines == [
        "  left out: 3 conditions: the kernel backend cannot run this scenario: "
        "flows.one.controller: no `vivace`"
    ]


def test_experiments_that_a_backend_does_not_run_are_named() -> None:
    study = load(Path(__file__).parent / "studies" / "small")
    assert unsupported(study, "kernel") == ["transfer"]
    assert unsupported(study, "sim") == []
