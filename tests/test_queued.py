"""Workers from a batch queue: a stand-in for SLURM starts at once whatever is submitted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dask
import jostle
import pytest
from jostle.errors import InputError
from jostle.running.executors import make
from jostle.running.executors.cluster import DaskExecutor

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
        [sys.executable, "-c", "from jostle.cli import main; main()", "run", "sweep.toml", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_jobs_of_slurm_carry_out_what_threads_do(slurm: dict[str, str], tmp_path: Path) -> None:
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
            assert "`squeue` lists their jobs" in str(executor.lack())
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
