"""Dask's workers, in processes of their own: what they die of, and what is left then."""

from __future__ import annotations

import _thread
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jostle
import pytest
from jostle.backends import SimBackend
from jostle.errors import InputError, InterruptedRunError
from jostle.runner.executors import make
from jostle.runner.executors.dask_cluster import DaskExecutor, check_versions, engine_version

pytestmark = pytest.mark.cluster

SCENARIO = {
    "duration": "1 s",
    "repeats": 12,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "one", "controller": "cubic", "rtt": "30 ms", "start_jitter": "9 ms"}],
    "grid": {"flows.one.controller": ["cubic", "reno"]},
}


class Slow(SimBackend):
    """Takes its time, so that it can be killed."""

    def run(self, spec, cancelled=None):
        time.sleep(0.2)
        return super().run(spec, cancelled)

    def __reduce__(self):
        return Slow, ()


class Deadly(SimBackend):
    """Kills the process that carries out seed 5."""

    def run(self, spec, cancelled=None):
        if spec["seed"] == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(spec, cancelled)

    def __reduce__(self):
        return Deadly, ()


class Where:
    """Becomes the number of the process that makes an object of it."""

    def __reduce__(self):
        return os.getpid, ()


@pytest.fixture(scope="module")
def dask() -> Iterator[DaskExecutor]:
    executor = DaskExecutor(jobs=2)
    yield executor
    executor.shutdown()


def test_the_scheduler_makes_no_objects_of_jobs(dask: DaskExecutor) -> None:
    made_by = dask.submit(int, Where()).result(timeout=60)  # type: ignore[call-overload]
    assert made_by in dask.client.run(os.getpid).values()


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(dask: DaskExecutor, tmp_path: Path) -> None:
    scenario = jostle.Scenario.from_dict(SCENARIO)
    pids = list(dask.client.run(os.getpid).values())
    assert len(pids) == 2
    assert os.getpid() not in pids
    killer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    there = jostle.run(scenario, Slow(), executor=dask, store=tmp_path / "there")
    killer.join()
    assert pids[0] not in dask.client.run(os.getpid).values()
    assert there.failures == ()
    here = jostle.run(scenario, store=tmp_path / "here")
    assert there.to_json() == here.to_json()


def test_a_deadly_run_is_set_aside(dask: DaskExecutor, tmp_path: Path) -> None:
    scenario = jostle.Scenario.from_dict(
        {key: value for key, value in SCENARIO.items() if key != "grid"}
    )
    with pytest.warns(RuntimeWarning, match="1 runs failed"):
        results = jostle.run(scenario, Deadly(), executor=dask, store=tmp_path)
    assert [failure.seed for failure in results.failures] == [5]
    assert len(results) == 11
    (file,) = (tmp_path / ".quarantine").iterdir()
    assert str(file) in results.failures[0].error
    assert json.loads(file.read_text("utf-8"))["seed"] == 5


def test_an_interruption_ends_at_once(dask: DaskExecutor, tmp_path: Path) -> None:
    scenario = jostle.Scenario.from_dict({**SCENARIO, "repeats": 100})
    threading.Timer(2.0, _thread.interrupt_main).start()
    began_s = time.monotonic()
    with pytest.raises(InterruptedRunError, match="of 200 runs are in the store"):
        jostle.run(scenario, Slow(), executor=dask, store=tmp_path)
    assert time.monotonic() - began_s < 12.0


def test_workers_of_another_engine_are_refused() -> None:
    check_versions({"tcp://a:1": engine_version()})
    with pytest.raises(InputError, match="the worker tcp://b:1 has the engine sim-0; here it is"):
        check_versions({"tcp://a:1": engine_version(), "tcp://b:1": "sim-0"})
    with pytest.raises(InputError, match="has none: No module named"):
        check_versions({"tcp://a:1": ImportError("No module named 'jostle'")})


def test_what_is_no_executor_is_refused() -> None:
    for text in ("slurn", "dask=", "local=1", ""):
        with pytest.raises(InputError, match=r"choose local, .*, slurm, pbs or dask=ADDRESS"):
            make(text)
    with pytest.raises(InputError, match="for its workers to say"):
        make("dask=tcp://127.0.0.1:1", 3)
