"""Carrying a plan out: caching, failures, interruption."""

from __future__ import annotations

import _thread
import json
import threading

import fake_core
import polars as pl
import pytest
from fake_plan import make_plan, plan_of
from jostle.backends import SimBackend
from jostle.errors import InterruptedRunError, RunCancelledError, StoreError, StoreFullError
from jostle.runner.executors import available_cores, local
from jostle.runner.progress import Progress
from jostle.runner.session import Session
from jostle.scenario import PlannedRun
from jostle.store.store import Store


class Heard(Progress):
    def __init__(self):
        self.said = []

    def begin(self, total, stored):
        self.said.append(("begin", total, stored))

    def advance(self):
        self.said.append(("advance",))

    def failed(self, failure):
        self.said.append(("failed", failure.seed))

    def end(self):
        self.said.append(("end",))


def session(engine, store=None, jobs=2):
    return Session(SimBackend(engine), local(jobs), store)


def test_a_stored_run_is_not_run_again(engine, carry_out, tmp_path):
    plan = make_plan()
    first = carry_out(plan, tmp_path)
    assert engine.calls == 12
    second = carry_out(plan, tmp_path)
    assert engine.calls == 12
    assert first.to_json() == second.to_json()


def test_another_engine_runs_everything_again(engine, carry_out, tmp_path):
    carry_out(make_plan(), tmp_path)
    engine.ENGINE_VERSION = "fake-2"
    carry_out(make_plan(), tmp_path)
    assert engine.calls == 24


def test_jobs_change_nothing(carry_out, tmp_path):
    documents = []
    stored = []
    for jobs in (1, 2, 1, 2):
        root = tmp_path / str(len(stored))
        documents.append(carry_out(make_plan(), root, jobs).to_json())
        stored.append(
            {
                name: pl.read_parquet(root / "segments" / "*" / f"{name}.parquet")
                .sort("run", maintain_order=True)
                .write_ndjson()
                for name in ("runs", "measures", "flows", "links", "internals")
            }
        )
    assert len(set(documents)) == 1
    assert all(tables == stored[0] for tables in stored)
    assert stored[0]["runs"].count("\n") == 12
    plans = {path.read_bytes() for path in tmp_path.glob("*/.plans/*")}
    assert len(plans) == 1


def test_results_are_in_the_order_of_the_plan(carry_out):
    results = carry_out(make_plan())
    assert [(r.condition, r.seed) for r in results.results] == [
        (condition, seed) for condition in range(4) for seed in (1, 2, 3)
    ]


def test_equal_runs_of_two_conditions_are_run_once(engine, carry_out):
    spec = fake_core.spec()
    plan = plan_of("", [{"k": "1"}, {"k": "2"}], [PlannedRun(c, 1, spec) for c in (0, 1)])
    results = carry_out(plan)
    assert engine.calls == 1
    assert len(results) == 2


def test_a_failure_does_not_stop_the_others(engine, carry_out, tmp_path):
    engine.broken_seeds = (2,)
    results = carry_out(make_plan(), tmp_path)
    assert len(results) == 8
    assert [(f.condition, f.seed) for f in results.failures] == [(c, 2) for c in range(4)]
    assert results.failures[0].error == "link `bottleneck`: the queue is upside down"
    engine.broken_seeds = ()
    assert len(carry_out(make_plan(), tmp_path)) == 12
    assert engine.calls == 16


def test_progress_hears_everything_in_order(engine, tmp_path):
    store = Store(tmp_path)
    session(engine, store).carry_out(make_plan(1))
    engine.broken_seeds = (2,)
    heard = Heard()
    session(engine, store, 1).carry_out(make_plan(3), heard)
    assert heard.said[0] == ("begin", 12, 4)
    assert heard.said.count(("failed", 2)) == 4
    assert heard.said.count(("advance",)) == 4
    assert heard.said[-1] == ("end",)


def test_an_interruption_keeps_what_was_finished(engine, tmp_path):
    store = Store(tmp_path)
    plan = make_plan()
    session(engine, store).carry_out(make_plan(1))
    engine.lasts_s = 60.0
    engine.started.clear()
    heard = Heard()
    threading.Thread(target=lambda: engine.started.wait() and _thread.interrupt_main()).start()
    with pytest.raises(InterruptedRunError, match="4 of 12 runs are in the store") as raised:
        session(engine, store).carry_out(plan, heard)
    assert raised.value.exit_status == 130
    assert heard.said[-1] == ("end",)
    assert list((tmp_path / ".partial").iterdir()) == []
    engine.lasts_s = 0.0
    before = engine.calls
    assert len(session(engine, store).carry_out(plan)) == 12
    assert engine.calls - before == 8


def test_an_interruption_without_a_store_keeps_nothing(engine):
    engine.lasts_s = 60.0
    threading.Thread(target=lambda: engine.started.wait() and _thread.interrupt_main()).start()
    with pytest.raises(InterruptedRunError, match="none of the 12 runs is kept"):
        session(engine).carry_out(make_plan())


def test_a_cancelled_run_says_so():
    engine = fake_core.FakeEngine(lasts_s=60.0)
    with pytest.raises(RunCancelledError):
        SimBackend(engine).run(fake_core.spec(), lambda: True)


class FullStore(Store):
    def put_all(self, runs):
        raise StoreFullError("no room")


def test_a_full_store_stops_the_plan(engine, tmp_path):
    with pytest.raises(StoreError, match="no room"):
        session(engine, FullStore(tmp_path)).carry_out(make_plan())


def test_a_truncated_run_is_run_again(engine, tmp_path):
    warnings = []
    session(engine, Store(tmp_path)).carry_out(make_plan(1))
    victims = list(tmp_path.glob("segments/*/flows.parquet"))
    for victim in victims:
        victim.write_bytes(victim.read_bytes()[:-20])
    results = session(engine, Store(tmp_path, warnings.append)).carry_out(make_plan(1))
    assert engine.calls == 8
    assert len(results) == 4
    assert len(warnings) == len(victims)


def test_spec_is_handed_to_the_engine_as_it_is_named(engine):
    seen = []
    engine.run = lambda text, cancelled=None: (
        seen.append(text),
        fake_core.FakeEngine().run(text, cancelled),
    )[1]
    record = SimBackend(engine).run(fake_core.spec())
    assert json.loads(seen[0]) == record.spec


def test_at_least_one_core_is_available():
    assert available_cores() >= 1
