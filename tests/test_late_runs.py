"""A run in real time on a busy machine says in every output that it is invalid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jostle
import numpy as np
import pytest
from jostle import _core
from jostle.backends import RunRecord, SimBackend, Spec
from jostle.backends.base import Cancelled
from jostle.backends.lateness import BOUND_S, KEY, exceeds_bound, lateness
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.results import ResultSet

SCENARIO = """
duration = "2 s"
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "a"
controller = "cubic"
rtt = "20 ms"
"""


class RealTime(SimBackend):
    """The simulator, whose runs claim to be in real time, as those of a kernel can be."""

    name = "kernel"

    def __init__(self, p99_s: float) -> None:
        super().__init__(_core)
        self.p99_s = p99_s

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        record = super().run(spec, cancelled)
        late = {"p50_s": 0.0, "p99_s": self.p99_s, "max_s": self.p99_s, "bound_s": BOUND_S}
        return replace(record, summary={**record.summary, KEY: late})


def results_of(p99_s: float) -> ResultSet:
    scenario = jostle.Scenario.from_toml(SCENARIO)
    return jostle.run(scenario, RealTime(p99_s), store=False, repeats=2)


def test_one_sample_in_a_hundred_decides() -> None:
    due_ns = list(range(0, 1_000_000_000, 1_000_000))
    time_ns = np.array(due_ns)
    time_ns[:5] += 300_000_000
    few = lateness(time_ns, due_ns)
    assert (few["p50_s"], few["p99_s"], few["max_s"]) == (0.0, 0.0, 0.3)
    assert not exceeds_bound({KEY: few})
    time_ns[:20] = np.array(due_ns[:20]) + 300_000_000
    many = lateness(time_ns, due_ns)
    assert many["p99_s"] == 0.3
    assert exceeds_bound({KEY: many})
    assert not exceeds_bound({})


def test_a_run_that_ended_early_has_fewer_samples() -> None:
    assert lateness(np.array([1_000_000, 3_000_000]), [0, 2_000_000, 4_000_000])["max_s"] == 0.001


def test_every_output_says_it() -> None:
    late = results_of(0.163)
    (note,) = late.failure_notes
    assert note.startswith("INVALID: late. In 2 of 2 runs in real time")
    assert "163 ms" in note
    assert note in late.notes
    assert note in late._repr_html_()
    assert late.to_dict()["conditions"][0]["runs"][0][KEY]["p99_s"] == 0.163
    assert results_of(0.001).failure_notes == ()


def test_the_command_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(SCENARIO)
    monkeypatch.setattr(Environment, "backend", lambda _self, *_a, **_k: RealTime(0.163))
    assert status(["run", "a.toml", "--store", "none"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("INVALID: late; ")
    assert "one sample in a hundred came more than 5 ms" in " ".join(out.split())
