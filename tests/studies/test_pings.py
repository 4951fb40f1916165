"""Pings as a study sees them."""

from __future__ import annotations

import pytest
from jostle import _core
from jostle.backends.sim import SimBackend
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.studies import Runs
from jostle.studies.load import load
from jostle.studies.models import Value
from jostle.studies.run_study import run_study, work_of

SCENARIO = """
title = "Pings over a link that is out for a second now and then"
duration = "300 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
outage = { every = "30 s", durations = "1 s" }
[[flows]]
name = "pings"
controller = "none"
rtt = "40 ms"
source = { kind = "ping", size = "20 B", period = "200 ms" }
"""
STUDY = """
title = "Pings"
paper = "Nobody: Nothing, never"
[experiments.pings]
scenario = "pings.toml"
"""


def test_measures_of_pings(tmp_path):
    folder = tmp_path / "studies" / "pings"
    folder.mkdir(parents=True)
    (folder / "pings.toml").write_text(SCENARIO)
    (folder / "study.toml").write_text(STUDY)
    (folder / "setup.md").write_text("Pings alone.\n")
    study = load("pings", tmp_path / "studies")
    backend = SimBackend(_core)
    session = Session(backend, local(1), None)
    done = run_study(work_of(study, backend, None), lambda one: session.carry_out(one.plan))
    runs = Runs(study, done["pings", "described"])

    def of(measure: str, **keys: object) -> float:
        (found,) = runs.per_run(Value(flow="pings", measure=measure, **keys))
        return found

    assert of("echo_rtt", percentile=100) == pytest.approx(40.05, abs=0.01)
    assert of("rtt_sd") == pytest.approx(0, abs=1e-6)
    assert of("echo_share", above=40, below=41) == 100
    lost = of("pings_lost")
    assert lost == of("loss_events") * 5
    assert (of("single_losses"), of("longest_loss")) == (0, 5)
    assert of("rtt") == pytest.approx(40.05, abs=0.01)
