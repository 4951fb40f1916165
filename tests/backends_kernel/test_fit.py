"""A network that the kernel's packets show: recovered from one capture of Cubic and one of BBR."""

from __future__ import annotations

import jostle
import pytest
from downloads import document
from jostle.backends import SimBackend, load_engine
from jostle.inference.fit import Experiment, fit
from jostle.inference.free_keys import free_keys
from jostle.runner.executors import local
from jostle.runner.session import Session

KEYS = "bottleneck.rate,bottleneck.queue.limit,flows.download.rtt,bottleneck.loss=0.005..3 %"
RUN = {"duration": "20 s", "seed": 5}


@pytest.mark.slow
def test_known_keys_are_recovered_from_captures_of_linux(backend):
    truth = document("10 Mbit/s", "40 ms", "80 kB", "0.1 %", **RUN, capture=True)
    plan = jostle.Scenario.from_dict(truth).plan(1)
    experiments = []
    for condition, planned in enumerate(plan.runs):
        # A record takes its captures with it.
        record = backend.run(planned.spec)
        (seen,) = jostle.analyze(record.captures["download.sender"]).results
        experiments.append(Experiment(condition, seen.run))
    guess = document("18 Mbit/s", "60 ms", "200 kB", "0.4 %", **RUN)
    scenario = jostle.Scenario.from_dict(guess)
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        keys = free_keys(scenario.document, [KEYS])
        found = fit(scenario, experiments, keys, session, budget=40)
    finally:
        executor.shutdown()
    values = {one.key.key: one.value for one in found.parameters}
    assert values["bottleneck.rate"] == pytest.approx(10.0, rel=0.02)
    assert values["bottleneck.queue.limit"] == pytest.approx(80.0, rel=0.1)
    assert values["flows.download.rtt"] == pytest.approx(40.0, rel=0.01)
    assert 0.1 / 1.5 < values["bottleneck.loss"] < 0.1 * 1.5
