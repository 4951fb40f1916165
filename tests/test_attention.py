"""Who waits for workers that are elsewhere hears when none is there, and when one is again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jostle
import pytest
from dask_cluster import Cluster
from jostle.backends import SimBackend
from jostle.runner.executors import local
from jostle.runner.executors.dask_cluster import DaskExecutor, _serves_dashboard
from jostle.runner.progress import LineProgress, Progress
from jostle.runner.session import Session
from jostle.runner.worker_liveness import ASK_EVERY_S, PATIENCE_S, WorkerLivenessMonitor
from jostle.store.store import Store

SCENARIO = {
    "duration": "1 s",
    "repeats": 6,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "one", "controller": "cubic", "rtt": "30 ms", "start_jitter": "9 ms"}],
}


class Heard(Progress):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_message(self, text: str) -> None:
        self.texts.append(text)


class Workers:
    """An executor whose workers are told to come and go."""

    def __init__(self) -> None:
        self.there = True
        self.asked = 0

    def describe(self) -> str:
        return "there are some"

    def missing_workers(self) -> str | None:
        self.asked += 1
        return None if self.there else "nobody is there"

    def submit(self, *_args) -> None:
        raise AssertionError

    def shutdown(self, *_args, **_options) -> None:
        raise AssertionError


def test_what_is_missing_is_said_once_after_a_while_and_so_is_its_end() -> None:
    now_s, heard, workers = [0.0], Heard(), Workers()
    attention = WorkerLivenessMonitor(workers, heard, lambda: now_s[0])
    attention.begin()

    def wait(seconds: float) -> None:
        for _ in range(int(2 * seconds)):
            now_s[0] += 0.5
            attention.look()

    wait(20)
    assert heard.texts == ["there are some"]
    # It is a question to another machine.
    assert workers.asked <= 20 / ASK_EVERY_S
    workers.there = False
    wait(PATIENCE_S - 1)
    workers.there = True
    wait(3)
    # A nanny has started it again.
    assert len(heard.texts) == 1
    workers.there = False
    wait(60)
    assert heard.texts[1:] == ["nobody is there"]
    workers.there = True
    wait(3)
    assert heard.texts[2:] == ["there are some"]


def test_threads_of_this_process_are_nothing_to_speak_of() -> None:
    heard, executor = Heard(), local(1)
    attention = WorkerLivenessMonitor(executor, heard, iter(range(0, 1000, 10)).__next__)
    attention.begin()
    attention.look()
    executor.shutdown()
    assert heard.texts == []


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    made.start_scheduler()
    yield made
    made.close()


@pytest.mark.cluster
@pytest.mark.slow
def test_a_cluster_without_workers_says_how_to_add_one(
    scheduler: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executor = DaskExecutor(scheduler.address)
    plan = jostle.Scenario.from_dict(SCENARIO).plan()
    session = Session(SimBackend(), executor, Store(tmp_path / "there"))
    said = ""

    def help_out() -> None:
        nonlocal said
        until_s = time.monotonic() + 120
        while "Add one" not in said and time.monotonic() < until_s:
            time.sleep(0.2)
            said += capsys.readouterr().err
        scheduler.start_workers(1)

    helper = threading.Thread(target=help_out)
    helper.start()
    results = session.carry_out(plan, LineProgress([""] * 6))
    helper.join()
    executor.shutdown()
    assert len(results) == 6
    address = scheduler.address
    assert said.splitlines() == [
        # Without bokeh there is a link, and nothing behind it.
        f"0 workers of Dask at {address}",
        f"no worker of Dask is connected to {address}; runs wait for one. Add one: "
        f"`dask worker {address}`, on a machine that has jostle",
    ]


class Served:
    """As much of a scheduler as says whether it has a dashboard."""

    def __init__(self, applications: list[object]) -> None:
        self.http_application = self
        self.applications = applications


def test_a_dashboard_is_one_that_is_served() -> None:
    assert _serves_dashboard(Served([object()]))
    assert not _serves_dashboard(Served([]))
    assert not _serves_dashboard(type("Scheduler", (), {"http_application": object()})())
