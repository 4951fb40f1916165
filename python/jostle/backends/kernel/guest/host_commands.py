"""Runs the commands of `jostle exec` on the hosts of a network, and writes their outcomes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import link_qdiscs, network, qdisc_check, sampling
from .capture import Capture
from .clock import fine_timers, sleep_until
from .entry import guarded, many_files
from .failure import reason_of
from .namespaces import Host
from .program import ISOLATED_PYTHON, HostProcess, bound_ports
from .sample_format import QUEUE

# Time between the end of the setup and time 0, so that the setup does not shift the kernel's ticks.
_LEAD_NS = 1_000_000_000
# The first poll interval, and the factor by which it grows: reading the ports takes wall time.
_READY_POLL_S, _READY_POLL_GROWTH = 0.001, 1.1
_HEARTBEAT_S = 0.2
_END_SIGNALS = (signal.SIGTERM, signal.SIGKILL)
_END_TIMEOUT_S = 2.0
_SANDBOX = (*ISOLATED_PYTHON, str(Path(__file__).with_name("host_sandbox.py")))

# The guest's own tmpfs. The paths are the same in every run; the folder of the run has a random
# name, which programs could send over the network.
_HOSTS = Path("/run/jostle")
_MOST_LINKS = 2_000
"""Maximum number of entries of the current folder that are linked into the working folders."""

_LIST_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_ALLOWED_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


class Command(HostProcess):
    """A command on a host.

    Parameters
    ----------
    job
        The command's part of the job.
    hosts
        All hosts by name.
    folder
        Folder of the run.
    """

    def __init__(self, job: Mapping[str, Any], hosts: Mapping[str, Host], folder: Path) -> None:
        self.job = job
        self.ended_ns: int | None = None
        self.started_ns: int | None = None
        self.stopped = False
        self._host = hosts[job["host"]]
        self._run = folder

    def start(self) -> None:
        """Start the command in the working folder of its host."""
        own = _HOSTS / self.job["host_name"]
        output = self._run / "output" / self.job["host_name"]
        arguments = [self._run, own, self._run / "settings", self.job["file_bytes"]]
        environment = {**self.job["environment"], "TMPDIR": str(own / "tmp")}
        environment |= {"PWD": str(own / "files")}
        with (
            self._host.entered(),
            (output / f"{self.job['label']}stdout.txt").open("xb") as stdout,
            (output / f"{self.job['label']}stderr.txt").open("xb") as stderr,
        ):
            self.started_ns = time.monotonic_ns()
            self.process = subprocess.Popen(
                [*_SANDBOX, *map(str, arguments), self.job["command"]],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=own / "files",
                env=environment,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait for the end of the command."""
        self.process.wait()
        self.ended_ns = time.monotonic_ns()

    def ports(self) -> set[int]:
        """Return the ports at which the command's host listens."""
        with self._host.entered():
            return bound_ports("tcp", "udp")

    def stop(self) -> None:
        """End the command if it still runs, and the processes that it has left."""
        if self.started_ns is None:
            return
        self.stopped = self.status is None
        self.end(_END_SIGNALS, _END_TIMEOUT_S)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def outcome(self, start_ns: int) -> dict[str, Any]:
        """Return times in ns of the run, and the exit status."""

        def since_start(moment_ns: int | None) -> int | None:
            return None if moment_ns is None else max(moment_ns - start_ns, 0)

        return {
            "started_ns": since_start(self.started_ns),
            "ended_ns": since_start(self.ended_ns),
            "status": None if self.started_ns is None else self.status,
            "stopped": self.stopped,
        }


def main(folder: Path) -> None:
    """Run the job in `folder`."""
    job: dict[str, Any] = json.loads((folder / "job.json").read_bytes())
    fine_timers()
    many_files()
    network.check_controllers(job["controllers"])
    _ALLOWED_CONGESTION_CONTROLS.write_text(_LIST_CONGESTION_CONTROLS.read_text())
    qdisc_check.check(job["hosts"])
    hosts = network.build(job, folder)
    notes = _make_folders(job, folder)
    queues = [sampling.QueueProbe(queue, hosts) for queue in job["queues"]]
    capture = Capture(job["captures"], hosts, folder, keep_all=True)
    commands = [Command(command, hosts, folder) for command in job["commands"]]
    servers = [command for command in commands if command.job["is_server"]]
    clients = [command for command in commands if not command.job["is_server"]]
    failures: dict[int, str] = {}
    _beat(folder, None)
    for server in servers:
        before = server.ports()
        server.start()
        threading.Thread(target=server.wait, daemon=True).start()
        failure = _await_port(server, before, job["ready_ns"])
        if failure is not None:
            failures[server.job["number"]] = failure
    start_ns = (time.monotonic_ns() // _LEAD_NS + 2) * _LEAD_NS
    link_qdiscs.begin(job, hosts, start_ns)
    reached_limit = False
    if not failures:
        sleep_until(start_ns)
        _beat(folder, start_ns)
        reached_limit = not _run(clients, start_ns, job["limit_ns"])
    early = {server.job["number"] for server in servers if server.status is not None}
    end_ns = time.monotonic_ns()
    if not reached_limit and not failures:
        # Connections are closed in the background after their program has ended.
        sleep_until(end_ns + job["drain_ns"])
    for command in (*clients, *servers):
        command.stop()
    counters = [QUEUE.unpack(queue.sample()) for queue in queues]
    captured = capture.finish(start_ns)
    notes += _keep(job, folder)
    events = {
        "captures": captured,
        "commands": {c.job["number"]: c.outcome(start_ns) for c in commands},
        "early": sorted(early),
        "failures": failures,
        "end_ns": max(end_ns - start_ns, 0),
        "captured_ns": max(time.monotonic_ns() - start_ns, 1),
        "reached_limit": reached_limit,
        "queues": [{"packets": c[1], "drops": c[4], "lost": c[7] + c[8]} for c in counters],
        "notes": notes,
    }
    partial = folder / "events.partial"
    partial.write_text(json.dumps(events))
    # The file appears under its name only when it is complete.
    partial.rename(folder / "events.json")


def _run(clients: Sequence[Command], start_ns: int, limit_ns: int) -> bool:
    """Run all commands that are not servers; return whether they ended within the limit."""
    ended = threading.Semaphore(0)

    def follow(command: Command) -> None:
        try:
            sleep_until(start_ns + command.job["start_ns"])
            command.start()
            command.wait()
        finally:
            ended.release()

    for client in clients:
        threading.Thread(target=follow, args=(client,), daemon=True).start()
    for _ in clients:
        left_s = (start_ns + limit_ns - time.monotonic_ns()) / 1e9
        if not ended.acquire(timeout=max(left_s, 0.0)):
            return False
    return True


def _await_port(server: Command, before: set[int], within_ns: int) -> str | None:
    """Wait until a server listens at another port than before; return what went wrong."""
    until_ns, poll_s = time.monotonic_ns() + within_ns, _READY_POLL_S
    while server.ports() <= before:
        if server.status is not None:
            return f"{server.how_it_ended()} before it listened at a port"
        if time.monotonic_ns() > until_ns:
            return f"did not listen at a port within {within_ns / 1e9:g} s"
        time.sleep(poll_s)
        poll_s *= _READY_POLL_GROWTH
    return None


def _beat(folder: Path, start_ns: int | None) -> None:
    """Write the virtual time regularly: once if `start_ns` is None."""

    def write(virtual_ns: int) -> None:
        (folder / "progress").write_text(str(virtual_ns))

    def follow(begin_ns: int) -> None:
        while True:
            time.sleep(_HEARTBEAT_S)
            write(time.monotonic_ns() - begin_ns)

    write(0)
    if start_ns is not None:
        threading.Thread(target=follow, args=(start_ns,), daemon=True).start()


def _make_folders(job: Mapping[str, Any], folder: Path) -> list[str]:
    """Create a working folder per host, which shows the current folder as links."""
    owner = folder.stat()
    shown = job["shown_folder"]
    entries = sorted(os.listdir(shown)) if shown is not None else []
    notes = []
    if len(entries) > _MOST_LINKS:
        notes.append(
            f"{shown} has {len(entries)} entries, more than {_MOST_LINKS}: the working folders "
            "show none of them"
        )
        entries = []
    _HOSTS.mkdir()
    for name in job["host_names"]:
        (folder / "output" / name).mkdir(parents=True)
        for part in ("files", "tmp"):
            place = _HOSTS / name / part
            place.mkdir(parents=True)
            os.chown(place, owner.st_uid, owner.st_gid)
        for entry in entries:
            (_HOSTS / name / "files" / entry).symlink_to(os.path.join(shown, entry))
    return notes


def _keep(job: Mapping[str, Any], folder: Path) -> list[str]:
    """Copy what the commands have written to the folder of the run, which outlives the guest."""
    shown = job["shown_folder"]

    def skipped(at: str, names: list[str]) -> list[str]:
        return [name for name in names if _is_skipped(os.path.join(at, name), shown)]

    notes = []
    for name in job["host_names"]:
        try:
            to = folder / "output" / name / "files"
            shutil.copytree(_HOSTS / name / "files", to, symlinks=True, ignore=skipped)
        except (OSError, shutil.Error, RecursionError) as error:
            notes.append(f"{name}: not all files could be kept: {reason_of(error)}"[:300])
    return notes


def _is_skipped(path: str, shown: str | None) -> bool:
    """Return whether a path is a link into the current folder, a device, a pipe or a socket."""
    if os.path.islink(path):
        return shown is not None and os.path.dirname(os.readlink(path)) == shown
    return not (os.path.isfile(path) or os.path.isdir(path))


if __name__ == "__main__":
    status = guarded(main, Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads are blocked in the kernel and could not be joined.
    os._exit(status)
