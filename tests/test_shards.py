"""Parts of a plan, carried out by commands that share a store."""

from __future__ import annotations

import _thread
import threading

import fake_core
import jostle
import pytest
from fake_plan import make_plan, plan_of
from jostle.backends import SimBackend
from jostle.errors import InputError, InterruptedRunError
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.runner.shards import Shard
from jostle.scenario import PlannedRun
from jostle.store.store import Store

SCENARIO = {
    "duration": "1 s",
    "repeats": 3,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "one", "controller": "cubic", "rtt": "30 ms", "start_jitter": "9 ms"}],
    "grid": {"flows.one.controller": ["cubic", "reno"]},
}


def session(engine, root, shard=None):
    part = None if shard is None else Shard.parse(shard)
    return Session(SimBackend(engine), local(2), Store(root), shard=part)


@pytest.mark.parametrize("of", [1, 2, 5, 12, 40])
def test_shards_are_disjoint_and_complete(engine, carry_out, tmp_path, of):
    plan = make_plan()
    whole = [(r.condition, r.seed) for r in carry_out(plan).results]
    engine.calls = 0
    found = []
    for number in range(of, 0, -1):
        part = session(engine, tmp_path, f"{number}/{of}").carry_out(plan)
        assert len(part) in (12 // of, -(-12 // of))
        found += [(r.condition, r.seed) for r in part.results]
    assert engine.calls == 12
    assert sorted(found) == whole
    assert len(list((tmp_path / ".plans").iterdir())) == 1, "all note the plan of all runs"
    alone = session(engine, tmp_path / "alone").carry_out(plan)
    assert session(engine, tmp_path).carry_out(plan).to_json() == alone.to_json()
    assert engine.calls == 24, "those of the comparison alone"


def test_what_is_stored_already_moves_no_run_to_another_shard(engine, tmp_path):
    plan = make_plan()
    session(engine, tmp_path).carry_out(make_plan(1))
    engine.calls = 0
    for number in (1, 2, 3):
        session(engine, tmp_path, f"{number}/3").carry_out(plan)
    assert engine.calls == 8


def test_equal_runs_are_of_one_shard(engine, tmp_path):
    spec = fake_core.spec()
    plan = plan_of("", [{"k": "1"}, {"k": "2"}], [PlannedRun(c, 1, spec) for c in (0, 1)])
    made = [len(session(engine, tmp_path, f"{i}/2").carry_out(plan)) for i in (1, 2)]
    assert made == [2, 0]
    assert engine.calls == 1


def test_an_interruption_names_the_shard(engine, tmp_path):
    engine.lasts_s = 60.0
    threading.Thread(target=lambda: engine.started.wait() and _thread.interrupt_main()).start()
    with pytest.raises(InterruptedRunError, match="0 of 4 runs of shard 2/3 are in the store"):
        session(engine, tmp_path, "2/3").carry_out(make_plan())


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1 /4", "1/9999999", "²/4"]
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(InputError, match="write it as I/N, from 1/N to N/N"):
        Shard.parse(text)


def test_in_python(tmp_path):
    scenario = jostle.Scenario.from_dict(SCENARIO)
    parts = [jostle.run(scenario, store=tmp_path, shard=f"{i}/4") for i in (1, 2, 3, 4)]
    assert [len(part) for part in parts] == [2, 2, 1, 1]
    segments = set((tmp_path / "segments").iterdir())
    whole = jostle.run(scenario, store=tmp_path)
    assert set((tmp_path / "segments").iterdir()) == segments
    assert whole.to_json() == jostle.run(scenario).to_json()
    with pytest.raises(InputError, match="shard 5/4: write it as"):
        jostle.run(scenario, store=tmp_path, shard="5/4")
