"""Runs that leave the process: what a job is made of pickles, and comes back the same."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jostle
import pytest
from fake_plan import make_plan
from jostle.backends import BACKENDS, SimBackend, create
from jostle.backends.kernel import KernelBackend
from jostle.backends.registry import Option
from jostle.errors import InputError, InterruptedRunError
from jostle.kernel_images import Image
from jostle.runner.job import Batch, CancelFlag, Job
from jostle.runner.session import Session
from jostle.runner.spec_texts import SingleSpec
from jostle.store.store import Store

SCENARIO = """
duration = "2 s"
sampling_interval = "100 ms"
repeats = 2
[bottleneck]
rate = "10 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "one"
controller = "{controller}"
rtt = "20 ms"
start_jitter = "20 ms"
"""

MINE = """
class Mine:
    cwnd = 12.0
    ssthresh = None
    def on_ack(self, ack): ...
    def on_congestion_event(self, event): ...
"""


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    # Polars and the engine have threads, which a fork does not survive.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


def scenario(folder: Path, controller: str = "cubic", more: str = "") -> Path:
    path = folder / "scenario.toml"
    path.write_text(more + SCENARIO.format(controller=controller), "utf-8")
    return path


def test_processes_give_what_threads_give(tmp_path, processes):
    path = scenario(tmp_path)
    there = jostle.run(path, executor=processes)
    here = jostle.run(path)
    assert len(there) == 2
    assert there.to_json() == here.to_json()
    for one, other in zip(there.results, here.results, strict=True):
        assert one.run.flows.equals(other.run.flows)


def test_processes_write_into_the_store(tmp_path, processes):
    path = scenario(tmp_path)
    there = jostle.run(path, executor=processes, store=tmp_path / "store")
    assert len(there) == 2
    assert all(run.run.run_id in Store(tmp_path / "store") for run in there.results)
    assert jostle.run(path, store=tmp_path / "store").to_json() == there.to_json()


def test_captures_come_along(tmp_path, processes):
    path = scenario(tmp_path, more="capture = true\n")
    results = jostle.run(path, executor=processes, store=False)
    files = [Path(file) for file in results.captures["path"]]
    assert len(files) == 4
    assert all(file.stat().st_size > 1000 for file in files)
    folder = files[0].parent
    del results
    assert not folder.exists()


def test_controllers_written_in_python_come_along(tmp_path, processes):
    (tmp_path / "mine.py").write_text(MINE, "utf-8")
    path = scenario(tmp_path, "mine:Mine")
    there = jostle.run(path, executor=processes, allow_code=True)
    assert there.failures == ()
    assert there.to_json() == jostle.run(path, allow_code=True).to_json()


def test_a_failure_says_why(tmp_path, processes):
    (tmp_path / "mine.py").write_text(MINE.replace("ack): ...", "ack): 1 / 0"), "utf-8")
    path = scenario(tmp_path, "mine:Mine")
    with pytest.warns(RuntimeWarning, match="2 runs failed"):
        results = jostle.run(path, executor=processes, allow_code=True)
    assert "ZeroDivisionError" in results.failures[0].error


def test_an_executor_knows_how_many_runs_it_takes(tmp_path, processes):
    with pytest.raises(InputError, match="either jobs or an executor"):
        jostle.run(scenario(tmp_path), executor=processes, jobs=2)


def test_a_stop_is_heard_elsewhere():
    stop = CancelFlag()
    elsewhere = pickle.loads(pickle.dumps(stop))
    assert not stop()
    assert not elsewhere()
    stop.set()
    assert stop()
    assert elsewhere()
    stop.close()


def test_the_stop_of_a_killed_process_goes_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (
        "import os, pickle, signal; from jostle.runner.job import CancelFlag; stop = CancelFlag(); "
        "pickle.dumps(stop); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", text], env=environment, check=False)
    (left,) = tmp_path.iterdir()
    stop = CancelFlag()
    pickle.dumps(stop)
    assert not left.exists()
    stop.close()
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_reaches_other_processes(tmp_path, processes, monkeypatch):
    # An hour of 1 Gbit/s takes minutes; the pool has to be free again at once.
    text = SCENARIO.format(controller="cubic").replace("2 s", "1 h").replace("10 M", "1000 M")
    path = tmp_path / "long.toml"
    path.write_text(text, "utf-8")
    processes.submit(abs, 1).result()
    # Ctrl-C comes while the session waits for the runs.
    from jostle.runner import session

    class Interrupted(queue.SimpleQueue):
        def get(self, block=True, timeout=None):
            time.sleep(1.0)
            raise KeyboardInterrupt

    monkeypatch.setattr(session.queue, "SimpleQueue", Interrupted)
    began_s = time.monotonic()
    with pytest.raises(InterruptedRunError, match="none of the 2 runs"):
        jostle.run(path, executor=processes, store=False)
    assert time.monotonic() - began_s < 20.0
    assert processes.submit(abs, -3).result(timeout=20) == 3


def test_a_job_is_not_run_by_another_engine():
    backend = SimBackend()
    spec = make_plan(1).runs[0].spec
    batch = Batch(SingleSpec(spec), "sim-of-yesterday", [spec["seed"]])
    job = Job(backend, None, [batch], CancelFlag(), [])
    (done,) = job().done
    assert done.record is None
    assert done.error.endswith("sim-of-yesterday where the run was planned")


def test_backends_pickle_as_what_they_were_made_of():
    assert pickle.loads(pickle.dumps(SimBackend())).version == SimBackend().version
    image = Image("virtual", Path(__file__), "6.1.192")
    backend = KernelBackend(image=image)
    assert backend.version  # Cached, as all that was loaded is.
    assert backend._loaded
    again = pickle.loads(pickle.dumps(backend))
    assert again.image == image
    assert again.version == backend.version


def test_a_store_pickles_without_whom_it_warns(tmp_path):
    lock = threading.Lock()
    store = pickle.loads(pickle.dumps(Store(tmp_path, lambda _: lock.acquire())))
    assert store.root == tmp_path


def test_rows_of_backends():
    names = [option.name for row in BACKENDS.values() for option in row.options]
    assert len(names) == len(set(names))
    assert Option("kernel_version") in BACKENDS["kernel"].options
    with pytest.raises(InputError, match="has no `kernel` to choose: use the backend `kernel`"):
        create("sim", kernel="virtual")
    with pytest.raises(InputError, match="no kernel `magic`: choose one of virtual, realtime"):
        create("kernel", kernel="magic")
    with pytest.raises(InputError, match="has no `colour` to choose"):
        create("sim", colour="red")


def test_plans_lose_conditions():
    plan = make_plan(2)
    less = plan.without({0, 2})
    assert [str(condition) for condition in less.conditions] == [
        "flows.newcomer.controller = bbr",
        "flows.newcomer.controller = hybla",
    ]
    assert [(run.condition, run.seed) for run in less.runs] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert plan.without(()) is plan


def test_the_session_refuses_before_it_runs(engine):
    from fake_backend import FakeBackend
    from jostle.runner.executors import local

    backend = FakeBackend("sim", refuses="bottleneck.rate: too fast")
    with pytest.raises(InputError, match=r"controller = cubic: bottleneck\.rate: too fast"):
        Session(backend, local(1), None).carry_out(make_plan(1))
    assert backend.specs == []
