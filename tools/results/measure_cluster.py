"""Measures the costs of a cluster: per task, result and segment, and the scheduler's memory.

Run `python tools/results/measure_cluster.py WHAT`:

    measure_cluster.py tasks [TASKS]     # empty tasks: the scheduler alone
    measure_cluster.py sizes             # bytes of a job and of its result
    measure_cluster.py segments [PUTS]   # segments of one run each, synced
    measure_cluster.py memory [RUNS]     # memory and CPU of all processes in a sweep
    measure_cluster.py workers [RUNS]    # CPU of 1, 2 and 4 workers, and of threads

Scheduler and workers are processes of this machine. CPU seconds depend on the load of the machine
only through its caches.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import jostle
from jostle.backends import SimBackend
from jostle.runner.executors.dask_cluster import DaskExecutor
from jostle.runner.job import CancelFlag, Job
from jostle.store.store import Store
from jostle.store.writer import Writer

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))
from dask_cluster import Cluster  # noqa: E402

SCENARIO = {
    "duration": "2 s",
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [{"name": "one", "controller": "cubic", "rtt": "40 ms", "start_jitter": "20 ms"}],
}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid: int) -> float:
    """Return the memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3


def nothing() -> None:
    """Do nothing."""


@contextmanager
def connected(folder: Path, workers: int) -> Iterator[tuple[Cluster, DaskExecutor]]:
    """Start a cluster, and wait for its workers."""
    cluster = Cluster(folder)
    cluster.start_scheduler()
    cluster.start_workers(workers)
    try:
        executor = DaskExecutor(cluster.address)
        executor.client.wait_for_workers(workers, timeout=300)
        yield cluster, executor
        executor.shutdown()
    finally:
        cluster.close()


def tasks(folder: Path, count: int) -> None:
    """Submit empty tasks to the scheduler, as many at a time as a sweep does."""
    with connected(folder, 2) as (cluster, executor):
        assert cluster.scheduler is not None
        ahead = threading.Semaphore(1024)
        before_s, began_s = cpu_s(cluster.scheduler.pid), time.perf_counter()
        mine_s = time.process_time()
        futures = []
        for _ in range(count):
            ahead.acquire()
            future = executor.submit(nothing)
            future.add_done_callback(lambda _: ahead.release())
            futures.append(future)
        for future in futures:
            future.result()
        took_s = time.perf_counter() - began_s
        used_s = cpu_s(cluster.scheduler.pid) - before_s
        mine_s = time.process_time() - mine_s
        each = f"{1e3 * used_s / count:.2f} ms of CPU of the scheduler"
        print(f"{count} tasks in {took_s:.1f} s; {each}, {1e3 * mine_s / count:.2f} of the client")


def sizes(folder: Path) -> None:
    """Print the sizes of a job and of its result."""
    store = Store(folder / "store")
    plan = jostle.Scenario.from_dict(SCENARIO).plan(repeats=500)
    specs = [planned.spec for planned in plan.runs]
    stop = CancelFlag()
    try:
        for count in (1, 100, 500):
            job = Job.of(SimBackend(), Writer(store), specs[:count], stop)
            sent = cloudpickle.dumps(job)
            ended = pickle.loads(sent)()
            print(f"a job of {count} runs: {len(sent)} bytes; what comes back: "
                  f"{len(pickle.dumps(ended))} bytes")  # fmt: skip
    finally:
        stop.close()


def segments(folder: Path, puts: int) -> None:
    """Write segments of one run each."""
    writer = Writer(Store(folder / "store"))
    plan = jostle.Scenario.from_dict(SCENARIO).plan(repeats=puts)
    backend = SimBackend()
    records = [backend.run(planned.spec) for planned in plan.runs]
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    for record in records:
        writer.put(record)
        writer.flush()
    took_s, took_cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    print(
        f"{puts} segments: {1e3 * took_s / puts:.1f} ms each, {1e3 * took_cpu_s / puts:.1f} of CPU"
    )


def memory(folder: Path, runs: int) -> None:
    """Sample the memory of scheduler and command during a sweep, in tenths of its duration."""
    scenario = jostle.Scenario.from_dict(SCENARIO)
    with connected(folder, 2) as (cluster, executor):
        assert cluster.scheduler is not None
        at_work = [cluster.scheduler.pid, *executor.client.run(os.getpid).values()]
        over = threading.Event()
        seen: list[tuple[float, float]] = []

        def look() -> None:
            while not over.wait(0.5):
                seen.append((memory_mb(at_work[0]), memory_mb(os.getpid())))

        looking = threading.Thread(target=look)
        looking.start()
        before_mb, before_s = memory_mb(at_work[0]), [cpu_s(pid) for pid in at_work]
        began_s, mine_s = time.perf_counter(), time.process_time()
        done = jostle.run(
            scenario, executor=executor, store=folder / "store", repeats=runs, keep="summary"
        )
        took_s, mine_s = time.perf_counter() - began_s, time.process_time() - mine_s
        over.set()
        looking.join()
        used_s = [cpu_s(pid) - before for pid, before in zip(at_work, before_s, strict=True)]
    print(f"{len(done)} runs of {runs} in {took_s:.0f} s; CPU: {used_s[0]:.1f} s of the scheduler, "
          f"{sum(used_s[1:]):.1f} s of the workers, {mine_s:.1f} s of the command")  # fmt: skip
    for who, megabytes in zip(("scheduler", "command"), zip(*seen, strict=True), strict=True):
        tenths = [max(megabytes[len(seen) * at // 10 : len(seen) * (at + 1) // 10 + 1])
                  for at in range(10)]  # fmt: skip
        shown = ", ".join(f"{one:.0f}" for one in tenths)
        print(f"memory of the {who}, at most in each tenth of the time: {shown} MB")
    print(f"of the scheduler before: {before_mb:.0f} MB")
    size = sum(file.stat().st_size for file in (folder / "store").rglob("*") if file.is_file())
    print(f"the store: {size / 1e6:.0f} MB")


def workers(folder: Path, runs: int) -> None:
    """Compare the CPU time of workers with the CPU time of threads, for the same runs."""
    scenario = jostle.Scenario.from_dict({**SCENARIO, "duration": "100 s"})
    before_s = time.process_time()
    jostle.run(scenario, store=folder / "threads", repeats=runs, jobs=2, keep="summary")
    print(f"threads: {time.process_time() - before_s:.1f} s of CPU")
    for count in (1, 2, 4):
        with connected(folder, count) as (_, executor):
            pids = list(executor.client.run(os.getpid).values())
            used_s = [cpu_s(pid) for pid in pids]
            mine_s, began_s = time.process_time(), time.perf_counter()
            jostle.run(scenario, executor=executor, store=folder / f"{count}", repeats=runs,
                       keep="summary")  # fmt: skip
            took_s = time.perf_counter() - began_s
            each = [cpu_s(pid) - before for pid, before in zip(pids, used_s, strict=True)]
            mine_s = time.process_time() - mine_s
            print(f"{count} workers: {sum(each):.1f} s of CPU ({min(each):.1f} to {max(each):.1f} "
                  f"each), {mine_s:.1f} s of the command, in {took_s:.1f} s")  # fmt: skip


def main() -> None:
    """Run the requested measurement."""
    asked, *number = sys.argv[1:] or [""]
    count = int(number[0]) if number else 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if asked == "tasks":
            tasks(folder, count or 5_000)
        elif asked == "sizes":
            sizes(folder)
        elif asked == "segments":
            segments(folder, count or 200)
        elif asked == "memory":
            memory(folder, count or 100_000)
        elif asked == "workers":
            workers(folder, count or 400)
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
