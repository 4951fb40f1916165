"""A cluster of Dask out of processes of this machine, each of which can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path


class Cluster:
    """A scheduler and its workers.

    Parameters
    ----------
    folder
        What they write goes here.
    environment
        What they have in theirs beside what is here.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self.scheduler: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    def start_scheduler(self) -> None:
        """Start the scheduler; it has the same address each time."""
        place = ["--host", "127.0.0.1", "--port", str(self._port)]
        self.scheduler = self._started("scheduler", *place, "--no-show")

    def start_workers(self, count: int) -> None:
        """Start workers, each with a nanny that starts it again."""
        self._workers.append(
            self._started("worker", self.address, "--nworkers", str(count), "--nthreads", "1")
        )

    def worker_pids(self) -> list[int]:
        """Find the processes that carry runs out, which are children of nannies."""
        found = []
        for process in self._workers:
            children = Path(f"/proc/{process.pid}/task").glob("*/children")
            found += [int(pid) for path in children for pid in path.read_text().split()]
        return found

    def kill_scheduler(self) -> None:
        """Kill the scheduler, at which workers end."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()

    def close(self) -> None:
        """End everything."""
        for process in self._workers:
            # Nannies and their workers.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self.scheduler is not None:
            self.kill_scheduler()

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
        with (self._folder / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *words, "--no-dashboard"],
                cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
                # All of them look at what they are given, and tests have classes of their own.
                env={**self._environment, "PYTHONPATH": os.pathsep.join(filter(None, path))},
            )  # fmt: skip
