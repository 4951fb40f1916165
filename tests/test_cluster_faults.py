"""What goes wrong in a cluster: runs that never end, a scheduler that is gone, other engines."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jostle
import polars as pl
import pytest
from dask_cluster import Cluster
from jostle.backends import SimBackend
from jostle.errors import InputError, LostExecutorError
from jostle.runner.executors.dask_cluster import DaskExecutor
from jostle.runner.hang_watchdog import HangWatchdog

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[1]
SCENARIO = {
    "duration": "1 s",
    "repeats": 40,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "one", "controller": "cubic", "rtt": "30 ms", "start_jitter": "9 ms"}],
}


class Slow(SimBackend):
    """Takes its time."""

    def run(self, spec, cancelled=None):
        time.sleep(0.1)
        return super().run(spec, cancelled)

    def __reduce__(self):
        return Slow, ()


class Stuck(SimBackend):
    """Never ends with seed 2, and does not hear that it should."""

    def patience_s(self, spec):
        return 1.0

    def run(self, spec, cancelled=None):
        if spec["seed"] == 2:
            threading.Event().wait()
        return super().run(spec, cancelled)

    def __reduce__(self):
        return Stuck, ()


class Other(SimBackend):
    """Another version, in every process but the one that made it."""

    def __init__(self, here: bool = False) -> None:
        super().__init__()
        self._here = here

    @property
    def version(self) -> str:
        return super().version if self._here else "sim-other"

    def __reduce__(self):
        return Other, ()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.start_scheduler()
    made.start_workers(2)
    yield made
    made.close()


def connected(cluster: Cluster) -> DaskExecutor:
    executor = DaskExecutor(cluster.address)
    executor.client.wait_for_workers(2, timeout=120)
    return executor


@pytest.mark.slow
def test_a_run_that_never_ends_is_set_aside(tmp_path: Path) -> None:
    scenario = jostle.Scenario.from_dict({**SCENARIO, "repeats": 4})
    executor = DaskExecutor(jobs=2)
    try:
        with pytest.warns(RuntimeWarning, match="1 runs failed"):
            results = jostle.run(scenario, Stuck(), executor=executor, store=tmp_path)
    finally:
        executor.shutdown()
    (failure,) = results.failures
    assert failure.seed == 2
    assert "the run did not end within 1 s" in failure.error
    (file,) = (tmp_path / ".quarantine").iterdir()
    assert json.loads(file.read_text("utf-8"))["seed"] == 2
    assert len(results) == 3


@pytest.mark.slow
def test_a_scheduler_that_is_started_again_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    scenario = jostle.Scenario.from_dict(SCENARIO)
    executor = connected(cluster)
    threading.Timer(1.5, cluster.kill_scheduler).start()
    began_s = time.monotonic()
    try:
        with pytest.raises(LostExecutorError, match="of 40 runs are in the store") as lost:
            jostle.run(scenario, Slow(), executor=executor, store=tmp_path / "there")
    finally:
        executor.shutdown()
    assert time.monotonic() - began_s < 30.0
    assert lost.value.exit_status == 1
    cluster.start_scheduler()
    cluster.start_workers(2)
    executor = connected(cluster)
    try:
        there = jostle.run(scenario, Slow(), executor=executor, store=tmp_path / "there")
    finally:
        executor.shutdown()
    here = jostle.run(scenario, store=tmp_path / "here")
    assert there.to_json() == here.to_json()
    stored = pl.read_parquet(tmp_path / "there" / "segments" / "*" / "runs.parquet")["run"]
    # What workers were at when the scheduler went away, they may have stored after it was told.
    assert 40 <= len(stored) <= 44
    assert stored.n_unique() == 40


@pytest.mark.slow
def test_workers_with_another_engine_are_refused(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = connected(cluster)
    try:
        # Where it was not seen beforehand each run is refused.
        scenario = jostle.Scenario.from_dict({**SCENARIO, "repeats": 2})
        with pytest.warns(RuntimeWarning, match="2 runs failed"):
            results = jostle.run(scenario, Other(here=True), executor=executor, store=tmp_path)
        assert "is sim-other here, and" in results.failures[0].error
    finally:
        executor.shutdown()
    with monkeypatch.context() as patch:
        patch.setattr(SimBackend, "version", "sim-newer")
        with pytest.raises(InputError, match=r"the worker tcp://.* here it is sim-newer"):
            DaskExecutor(cluster.address)


def test_no_example_is_taken_for_stuck_too_early() -> None:
    backend = SimBackend()
    for path in sorted(ROOT.glob("scenarios/*.toml")):
        for planned in (
            jostle.load(path, allow_code=True).plan(repeats=1).first_run_of_each_condition()
        ):
            patience_s = backend.patience_s(planned.spec)
            assert 300.0 <= patience_s < math.inf, path


def test_nothing_ends_that_ends_in_time() -> None:
    with HangWatchdog() as watch:
        for _ in range(3):
            watch.allow(60.0)
        watch.allow(math.inf)
