"""Kill and interrupt jostle at random times, and check that nothing is lost and nothing is left.

usage: python tools/soak.py [--minutes M] [--only KIND] [--seed S]

Each round starts a command, ends it by SIGKILL or SIGINT after a random time, and checks: every run
in the store is complete, an interrupted command can be resumed, and the final results equal the
results of an undisturbed store. The next start removes the remains of a killed process: temporary
folders, namespaces, guests. On a Dask cluster the command is left alone, while its workers and its
scheduler are killed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from dask_cluster import Cluster  # noqa: E402

JOSTLE = [sys.executable, "-c", "from jostle.cli import main; main()"]
SCENARIO = """
duration = "{duration}"
repeats = {repeats}
[bottleneck]
rate = "20 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "two"
controller = "bbr"
rtt = "40 ms"
"""
LINK = '[bottleneck]\nrate = "10 Mbit/s"\nqueue = "fq_codel"\n'


class SoakError(AssertionError):
    """Results were lost, or remains were not removed."""


class Soak:
    """Folder and random numbers of the test."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.rounds = 0

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*JOSTLE, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def disturb(self, *words: str, longest_s: float) -> bool:
        """Start a command and end it at a random time; return whether it was still running."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [*JOSTLE, *words], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
            try:
                process.wait(self.random.uniform(0.1, longest_s))
            except subprocess.TimeoutExpired:
                process.send_signal(self.random.choice((signal.SIGKILL, signal.SIGINT)))
                process.wait(60)
                return True
        return False

    def simulated(self) -> None:
        """Disturb a sweep in the simulator until it is done."""
        self._sweep("sim", duration="20 s", repeats=40, longest_s=4.0)

    def on_the_kernel(self) -> None:
        """Disturb a sweep on the kernel in virtual time."""
        self._sweep("kernel", duration="5 s", repeats=2, longest_s=8.0)

    def _sweep(self, backend: str, *, duration: str, repeats: int, longest_s: float) -> None:
        disturbed, quiet = self._write_scenario(duration=duration, repeats=repeats)
        command = ("run", "scenario.toml", "--backend", backend, "--json")
        for _ in range(6):
            if not self.disturb(*command, "--store", disturbed.name, longest_s=longest_s):
                break
            self.rounds += 1
            self._check_store(disturbed)
        self._compare(command, disturbed, quiet)

    def _write_scenario(self, **scenario: object) -> tuple[Path, Path]:
        """Write a scenario, and return the paths of its two stores."""
        (self.folder / "scenario.toml").write_text(SCENARIO.format(**scenario), "utf-8")
        stores = self.folder / "disturbed", self.folder / "quiet"
        for store in stores:
            shutil.rmtree(store, ignore_errors=True)
        return stores

    def _compare(self, command: Sequence[str], disturbed: Path, quiet: Path) -> None:
        """Complete a sweep, and compare its results with an undisturbed sweep."""
        ends = [self.call(*command, "--store", store.name) for store in (disturbed, quiet)]
        for end in ends:
            expect(end.returncode == 0, f"status {end.returncode}: {end.stderr[-500:]}")
            expect("damaged" not in end.stderr, end.stderr)
        expect(ends[0].stdout == ends[1].stdout, "an interrupted sweep gave other results")
        expect(tables(disturbed) == tables(quiet), "an interrupted sweep stored other tables")
        self._check_store(disturbed)
        self.expect_clean()

    def _check_store(self, store: Path) -> None:
        """Check that every run in the store is complete."""
        if store.is_dir():
            told = self.call("store", "check", "--store", store.name)
            expect(told.returncode == 0, told.stdout + told.stderr)

    def on_dask(self) -> None:
        """Kill workers and the scheduler during a sweep until it is done."""
        disturbed, quiet = self._write_scenario(duration="20 s", repeats=400)
        command = ("run", "scenario.toml", "--json")
        for _ in range(4):
            cluster = Cluster(self.folder)
            cluster.start_scheduler()
            cluster.start_workers(2)
            try:
                done = self._on_cluster(cluster, *command, "--store", disturbed.name)
            finally:
                cluster.close()
            self._check_store(disturbed)
            if done:
                break
        self._compare(command, disturbed, quiet)

    def _on_cluster(self, cluster: Cluster, *words: str) -> bool:
        """Run a command while processes of its cluster are killed; return whether it succeeded."""
        there = ("--executor", f"dask={cluster.address}")
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [*JOSTLE, *words, *there],
                cwd=self.folder, env=self.environment, stdout=log, stderr=log,
            )  # fmt: skip
            try:
                for _ in range(self.random.randint(0, 3)):
                    time.sleep(self.random.uniform(1.0, 5.0))
                    workers = cluster.worker_pids()
                    if workers:
                        self.rounds += 1
                        with suppress(ProcessLookupError):
                            os.kill(self.random.choice(workers), signal.SIGKILL)
                if self.random.random() < 0.5:
                    time.sleep(self.random.uniform(0.0, 3.0))
                    self.rounds += 1
                    # A command that loses its scheduler must end.
                    cluster.kill_scheduler()
                    return process.wait(600) == 0
                # A command without workers waits for others.
                for _ in range(600):
                    cluster.replace_workers(2)
                    with suppress(subprocess.TimeoutExpired):
                        return process.wait(1) == 0
                raise SoakError("a command on a cluster with workers did not end")
            finally:
                process.kill()
                process.wait()

    def emulated(self) -> None:
        """Disturb a command behind an emulated link."""
        (self.folder / "link.toml").write_text(LINK, "utf-8")
        self.disturb("link", "emulate", "link.toml", "--", "sleep", "2", longest_s=3.0)
        self.rounds += 1
        end = self.call("link", "emulate", "link.toml", "--", "true")
        expect(end.returncode == 0, f"status {end.returncode}: {end.stderr[-500:]}")
        command = ["ip", "netns", "list"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        expect("jostle-" not in listed, f"namespaces are left: {listed}")

    def expect_clean(self) -> None:
        """Check that no temporary folder and no guest outlives the next start."""
        left = [path.name for path in self.temporary.glob("jostle-*")]
        expect(not left, f"temporary folders are left: {left}")
        guests = [pid for pid in processes() if f"{self.temporary}/" in command_line(pid)]
        expect(not guests, f"guests are left: {guests}")


def tables(store: Path) -> dict[str, str]:
    """Return all measures by table; a run that is stored twice counts once."""
    found = {}
    for name in ("runs", "measures", "flows", "links", "internals"):
        parts = []
        seen: set[str] = set()
        for path in sorted(store.glob(f"segments/*/{name}.parquet")):
            part = pl.read_parquet(path)
            parts.append(part.filter(~pl.col("run").is_in(list(seen))))
            seen |= set(part["run"].to_list())
        found[name] = pl.concat(parts).sort("run", maintain_order=True).write_ndjson()
    return found


def processes() -> Iterator[int]:
    """Yield the ids of all processes except this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield int(entry.name)


def command_line(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def expect(holds: bool, why: str) -> None:
    """Raise an error unless a condition holds."""
    if not holds:
        raise SoakError(why)


@contextmanager
def temporary() -> Iterator[Path]:
    """Create a folder, which is kept if there was an error."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    yield folder
    shutil.rmtree(folder)


def kinds(soak: Soak) -> Sequence[str]:
    """Return the kinds of disturbances that this machine supports."""
    found = ["simulated"]
    told = json.loads(soak.call("setup", "status", "--json").stdout)["kernels"]
    if any(one["kind"] == "virtual" and one["available"] for one in told):
        found.append("on_the_kernel")
    if importlib.util.find_spec("distributed"):
        found.append("on_dask")
    if os.geteuid() == 0 and shutil.which("ip"):
        found.append("emulated")
    return found


def main() -> int:
    """Run rounds until the time is over."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--only", help="one kind, such as on_dask")
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    given = options.parse_args()
    print(f"seed {given.seed}", flush=True)
    until_s = time.monotonic() + 60 * given.minutes
    with temporary() as folder:
        soak = Soak(folder, given.seed)
        chosen = [kind for kind in kinds(soak) if given.only in (None, kind)]
        expect(bool(chosen), f"{given.only} cannot be disturbed here")
        while time.monotonic() < until_s:
            kind = soak.random.choice(chosen)
            print(f"{kind} (in {folder})", flush=True)
            getattr(soak, kind)()
        print(f"{soak.rounds} interruptions of {', '.join(chosen)}: nothing lost, nothing left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
