"""Network namespaces that are removed after use, or by the next emulation.

The name of a namespace identifies its creator by PID, start time and PID namespace. Namespaces of
killed jostle processes are therefore removed, and namespaces of running ones are kept, even if such
a process is the command of this one. `ip netns exec NAME …` enters a namespace.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jostle.emulate.system_commands import ip
from jostle.errors import EmulationError

__all__ = ["Owner", "clean_stale", "create", "names", "processes", "remove"]

_NAME: Final = re.compile(r"jostle-(\d+)-(\d+)-(\d+)-[0-9a-f]+")
# linux/proc_ns.h, PROC_PID_INIT_INO: the namespace that sees all processes.
_FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC
_GRACE_S: Final = 1.0
# Fields 3 and 22 of /proc/PID/stat, counted after the program's name (proc(5)).
_STATE: Final = 3 - 3
_START_TIME: Final = 22 - 3


@dataclass(frozen=True)
class Owner:
    """A process, identified even if its PID is reused.

    Parameters
    ----------
    pid
        PID of the process.
    started
        Start time in clock ticks since boot.
    pid_namespace
        Inode number of its PID namespace; 0 if the kernel has none.
    """

    pid: int
    started: int
    pid_namespace: int

    @classmethod
    def present(cls) -> Owner:
        """Return this process."""
        return cls(os.getpid(), _start_time(os.getpid()) or 0, _pid_namespace("self"))

    @classmethod
    def of_process(cls, pid: int) -> Owner | None:
        """Return the process with this PID, if there is one."""
        started = _start_time(pid)
        return None if started is None else cls(pid, started, _pid_namespace("self"))

    @classmethod
    def of(cls, name: str) -> Owner | None:
        """Return the process that created `name`; None if it was not jostle."""
        match = _NAME.match(name)
        return None if match is None else cls(int(match[1]), int(match[2]), int(match[3]))

    @property
    def alive(self) -> bool:
        """Whether the process runs, or may run in a PID namespace that is not visible here."""
        here = _pid_namespace("self")
        if self.pid_namespace == here:
            return _start_time(self.pid) == self.started
        if here != _FIRST_PID_NAMESPACE:
            return True
        # All processes of a PID namespace end with its first process.
        return any(_pid_namespace(name) == self.pid_namespace for name in os.listdir("/proc"))

    def label(self) -> str:
        """Return a new name for a namespace of this process."""
        return f"jostle-{self.pid}-{self.started}-{self.pid_namespace}-{secrets.token_hex(3)}"


def names() -> list[str]:
    """Return the namespaces created by any jostle process."""
    found = [line.split()[0] for line in ip("netns", "list").splitlines() if line.strip()]
    return [name for name in found if Owner.of(name) is not None]


def clean_stale() -> list[str]:
    """Remove the namespaces of killed emulations and return their names."""
    stale = [name for name in names() if (owner := Owner.of(name)) and not owner.alive]
    for name in stale:
        remove(name)
    return stale


def create(name: str) -> None:
    """Create a namespace with an active loopback device."""
    ip("netns", "add", name)
    ip("link", "set", "dev", "lo", "up", namespace=name)


def remove(name: str) -> None:
    """Kill the processes in a namespace and remove it, if it exists."""
    if not Path("/run/netns", name).exists():
        return
    for number, grace_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        inside = processes(name)
        for pid in inside:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if not inside or _ended(name, grace_s):
            break
    try:
        ip("netns", "delete", name)
    except EmulationError:
        # Another jostle process may have removed it in the meantime.
        if Path("/run/netns", name).exists():
            raise


def processes(name: str) -> list[int]:
    """Return the processes in a namespace except this one."""
    # If creation was interrupted, a namespace is a file without processes.
    try:
        listed = ip("netns", "pids", name)
    except EmulationError:
        return []
    return [pid for pid in _numbers(listed.split()) if pid != os.getpid()]


def _numbers(words: Iterable[str]) -> list[int]:
    return [int(word) for word in words if word.isdigit()]


def _ended(name: str, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while processes(name):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _pid_namespace(process: str) -> int:
    """Return the inode number of a process's PID namespace; 0 if there is none."""
    try:
        return Path("/proc", process, "ns", "pid").stat().st_ino
    except OSError:
        return 0


def _start_time(pid: int) -> int | None:
    """Return the start time of a process; None if it does not exist or is a zombie."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return None
    # The name, in parentheses, may contain any characters, including parentheses.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in ("Z", "X") else int(fields[_START_TIME])
