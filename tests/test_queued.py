"""Workers from a batch queue: a stand-in for SLURM starts at once whatever is submitted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import jostle
import pytest
from dask_cluster import Cluster, check_strangers_are_refused, listening, serves_http
from jostle.errors import InputError
from jostle.runner.executors import make
from jostle.runner.executors.dask_cluster import DaskExecutor

pytestmark = pytest.mark.cluster

SCENARIO = """
duration = "1 s"
repeats = 20
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "30 ms"
start_jitter = "9 ms"
"""
SBATCH = """#!/bin/sh
# Like SLURM it keeps the script, which is deleted as soon as this ends.
cp "$1" "$QUEUE/$$.sh"
setsid sh "$QUEUE/$$.sh" >"$QUEUE/$$.log" 2>&1 &
echo "$!" >>"$QUEUE/submitted"
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job; do
    echo "$job" >>"$QUEUE/cancelled"
    grep -qx "$job" "$QUEUE/submitted" && kill -- "-$job" 2>/dev/null
done
exit 0
"""
JOB = {"CORES": "1", "MEMORY": "2GB", "WALLTIME": "00:10:00"}


@pytest.fixture(scope="module", autouse=True)
def _defaults() -> None:
    """Load the defaults of queues, before any test sets a part of them and takes that back."""
    on_interruption = signal.getsignal(signal.SIGINT)
    import_module("dask_jobqueue")
    signal.signal(signal.SIGINT, on_interruption)


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """An environment in which there is one, and its jobs are described."""
    queue = tmp_path / "queue"
    queue.mkdir()
    for name, script in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (queue / name).write_text(script)
        (queue / name).chmod(0o755)
    path = os.pathsep.join((str(queue), os.environ["PATH"]))
    described = {f"DASK_JOBQUEUE__SLURM__{key}": value for key, value in JOB.items()}
    return {**os.environ, **described, "QUEUE": str(queue), "PATH": path}


def carry_out(folder: Path, environment: dict[str, str], *words: str):
    (folder / "sweep.toml").write_text(SCENARIO)
    return subprocess.run(
        [sys.executable, "-P", "-c", "from jostle.cli import main; main()", "run", "sweep.toml",
         *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_jobs_of_slurm_carry_out_what_threads_do(slurm: dict[str, str], tmp_path: Path) -> None:
    # Jobs begin in the current folder, and import nothing from it.
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the current folder')")
    there = carry_out(
        tmp_path, slurm, "--executor", "slurm", "--jobs", "2", "--store", "there", "--json"
    )
    assert (there.returncode, "of Dask at" in there.stderr) == (0, True), there.stderr
    here = jostle.run(jostle.load(tmp_path / "sweep.toml"), store=tmp_path / "here")
    assert there.stdout.strip() == here.to_json().strip()
    queue = Path(slurm["QUEUE"])
    submitted = (queue / "submitted").read_text().split()
    assert len(submitted) == 2
    assert set(submitted) <= set((queue / "cancelled").read_text().split())
    scripts = [script.read_text() for script in queue.glob("*.sh")]
    words = " -P -m jostle.runner.executors.queue_worker "
    assert [words in script for script in scripts] == [True, True]


def test_while_a_queue_has_no_room_its_jobs_are_named(
    slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Path(slurm["QUEUE"])
    (queue / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 1\n")
    (queue / "scancel").write_text("#!/bin/sh\n")
    for key in ("PATH", "QUEUE"):
        monkeypatch.setenv(key, slurm[key])
    described = {"cores": 1, "memory": "2GB", "walltime": "00:10:00"}
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in described.items()}):
        executor = DaskExecutor(jobs=1, queue="slurm")
        try:
            assert "`squeue` lists their jobs" in str(executor.missing_workers())
        finally:
            executor.shutdown()


def test_what_a_queue_lacks_is_said(slurm: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="executor slurm: say by --jobs how many workers"):
        make("slurm")
    undescribed = {key: value for key, value in slurm.items() if not key.startswith("DASK_")}
    ended = carry_out(tmp_path, undescribed, "--executor", "slurm", "--jobs", "2")
    assert ended.returncode == 2
    assert "Set cores, memory and walltime under jobqueue: slurm:" in ended.stderr
    ended = carry_out(tmp_path, slurm, "--executor", "pbs", "--jobs", "2")
    assert (ended.returncode, "executor pbs: there is no qsub here" in ended.stderr) == (2, True)


@contextmanager
def started(
    slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch, **configuration: Any
) -> Iterator[DaskExecutor]:
    """Start two workers by jobs of this configuration, and wait for them."""
    for key in ("PATH", "QUEUE"):
        monkeypatch.setenv(key, slurm[key])
    home = Path(slurm["QUEUE"]).with_name("home")
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    # Jobs have the environment of the command.
    monkeypatch.setenv("TMPDIR", str(home.parent))
    monkeypatch.setattr(tempfile, "tempdir", str(home.parent))
    described = {"cores": 1, "memory": "2GB", "walltime": "00:10:00", **configuration}
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in described.items()}):
        executor = DaskExecutor(jobs=2, queue="slurm")
        try:
            executor.client.wait_for_workers(2, timeout=120)
            yield executor
        finally:
            executor.shutdown()


def pids_of_jobs(slurm: dict[str, str]) -> list[int]:
    jobs = Path(slurm["QUEUE"], "submitted").read_text().split()
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/stat")
        if path.read_text().rpartition(") ")[2].split()[2] in jobs
    ]


def test_strangers_get_nothing_from_workers_of_a_queue(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(slurm, monkeypatch) as executor:
        here, there = listening([os.getpid()]), listening(pids_of_jobs(slurm))
        # The scheduler, which workers on other machines reach; a nanny and a worker of each job.
        assert {host for host, _ in here} == {"0.0.0.0", "::"}
        assert [len({port for _, port in ports}) for ports in (here, there)] == [1, 4]
        check_strangers_are_refused([*here, *there], executor.client.security)
        (folder,) = (tmp_path / "home").glob(".jostle-credentials-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
        assert set(modes.values()) == {0o600}
        assert len(modes) == 3
        private = {
            path for path in tmp_path.glob("jostle-dask-*") if path.stat().st_mode & 0o77 == 0
        }
        for place in executor.client.run(lambda dask_worker: dask_worker.local_directory).values():
            assert private & set(Path(place).parents)
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.slow
def test_what_the_configuration_says_of_a_queue_is_done(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "local").mkdir()
    monkeypatch.setenv("SHARED", str(tmp_path / "shared"))
    configuration = {
        "shared-temp-directory": "$SHARED",
        "local-directory": str(tmp_path / "local"),
        "scheduler-options": {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"},
    }
    with started(slurm, monkeypatch, **configuration) as executor:
        assert len(list((tmp_path / "shared").glob(".jostle-credentials-*/*"))) == 3
        here = listening([os.getpid()])
        assert [serves_http(host, port, "/health") for host, port in here].count(True) == 1
        places = executor.client.run(lambda dask_worker: dask_worker.local_directory).values()
        assert all(Path(place).is_relative_to(tmp_path / "local") for place in places)
    assert list((tmp_path / "shared").iterdir()) == []
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.slow
def test_certificates_of_the_configuration_are_used(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Cluster(tmp_path, tls=True).settings
    roles = ("client", "scheduler", "worker")
    settings = {key.replace("client", role): own[key] for role in roles for key in own}
    with dask.config.set(settings), started(slurm, monkeypatch) as executor:
        assert list((tmp_path / "home").iterdir()) == []
        assert executor.client.security.tls_client_cert == str(tmp_path / "certificate.pem")


def test_certificates_that_cannot_be_written_are_said(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(InputError, match="Set shared-temp-directory under jobqueue: slurm:"),
        started(slurm, monkeypatch, **{"shared-temp-directory": str(tmp_path / "none")}),
    ):
        raise AssertionError
    (tmp_path / "a space").mkdir()
    with (
        pytest.raises(InputError, match="has characters that a shell interprets"),
        started(slurm, monkeypatch, **{"shared-temp-directory": str(tmp_path / "a space")}),
    ):
        raise AssertionError
    assert list((tmp_path / "a space").iterdir()) == []
    with (
        pytest.raises(InputError, match="protocol is tcp://; leave it out"),
        started(slurm, monkeypatch, **{"scheduler-options": {"protocol": "tcp://"}}),
    ):
        raise AssertionError
