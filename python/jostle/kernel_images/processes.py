"""Other programs in a process group of their own, of which nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

Line = Callable[[str], object]
"""Told of each line of output, without its end."""

_POLL_S = 0.01
_GONE_WITHIN_S = 5.0

# The shell becomes the program (`exec`). Before that it starts a watcher in the background, which
# reads from our pipe: if this process dies, even by SIGKILL, the pipe closes, and the watcher kills
# the whole group. Shells give background commands /dev/null as input, hence descriptor 3.
_GUARDED = (
    "exec 3<&0; signal=$0; ulimit -c 0; "
    "( (read -r _ <&3; kill -s $signal 0) >/dev/null 2>&1 & ); "
    'exec "$@" </dev/null 3<&-'
)


class Group:
    """A running program with everything that it starts.

    Parameters
    ----------
    command
        Program and arguments; its input is empty.
    environment
        The whole environment of the program; that of this process if absent.
    stop_signal
        What ends the group when this process dies; SIGKILL if absent.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stop_signal: signal.Signals | None = None,
    ) -> None:
        # Windows, where nothing of this is used, has no SIGKILL.
        last = stop_signal or signal.SIGKILL
        # A session of its own: Ctrl-C reaches this process alone, which then ends the group in
        # the order it wants; and a panicking UML, which ends "its group", spares us.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, last.name.removeprefix("SIG"), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
            cwd=cwd,
        )

    @property
    def id(self) -> int:
        """Number of the process group, and of its first process."""
        return self._process.pid

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the program's end and return its status; None when it still runs."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def lines(self) -> Iterator[str]:
        """Lines of output, until all that write have ended."""
        for line in self._process.stdout or ():
            yield line.decode("utf-8", "replace").rstrip("\r\n")

    def end(self, first: signal.Signals | None = None, patience_s: float = 0.0) -> None:
        """End every process of the group and wait until they are gone.

        Parameters
        ----------
        first
            Sent before SIGKILL, so that the program can tidy up.
        patience_s
            How long that may take.
        """
        if first is not None and self._process.poll() is None:
            os.killpg(self.id, first)
            self.wait(patience_s)
        with suppress(ProcessLookupError):
            # One call for all: what UML traces would run on unguarded if it outlived its tracer.
            os.killpg(self.id, signal.SIGKILL)
        self._process.wait()
        until_s = time.monotonic() + _GONE_WITHIN_S
        while members(self.id) and time.monotonic() < until_s:
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Close the pipes to the program."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def members(group: int) -> list[int]:
    """List the processes of a group that run; what is dead but not yet reaped does not."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # pid (name) state parent group …: the name may hold anything but ends at the last ).
            state, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # It has just ended.
        if int(owner) == group and state not in "ZX":
            found.append(int(entry.name))
    return found


@contextmanager
def running(
    command: Sequence[str],
    on_line: Line,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    first: signal.Signals | None = None,
    patience_s: float = 0.0,
) -> Iterator[Group]:
    """Run a program; whatever happens inside the block, nothing of it is left after.

    Parameters
    ----------
    on_line
        Told of each line of output, in a thread of its own; all of it when the block has ended.
        What it raises is raised then.
    first, patience_s
        See `Group.end`.
    """
    group = Group(command, environment=environment, cwd=cwd, stop_signal=first)

    failures: list[Exception] = []

    def read() -> None:
        for line in group.lines():
            # A program whose output nobody reads would wait forever.
            if not failures:
                try:
                    on_line(line)
                except Exception as error:
                    failures.append(error)

    reader = threading.Thread(target=read, name=f"output of {command[0]}", daemon=True)
    try:
        reader.start()
        yield group
    finally:
        group.end(first, patience_s)
        if reader.ident is not None:
            reader.join(_GONE_WITHIN_S)
        # A process that left the group may hold its output open; then the reader has the pipe.
        if not reader.is_alive():
            group.close()
    if failures:
        raise failures[0]
