"""Runs programs in separate process groups, and ends all of their processes."""

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
"""Called with each line of output, without its line end."""

_POLL_S = 0.01
_WAIT_S = 0.25
_GONE_WITHIN_S = 5.0

# The shell becomes the program (`exec`). Before that, it starts a background watcher, which reads
# from our pipe. If this process dies, even by SIGKILL, the pipe closes, and the watcher kills the
# whole group. Shells redirect the input of background commands to /dev/null, so the watcher uses
# descriptor 3.
_GUARDED = (
    "exec 3<&0; signal=$0; ulimit -c 0; "
    "( (read -r _ <&3; kill -s $signal 0) >/dev/null 2>&1 & ); "
    'exec "$@" </dev/null 3<&-'
)


class Group:
    """A running program, with all processes that it starts.

    Parameters
    ----------
    command
        Program and arguments; its input is empty.
    environment
        Complete environment of the program. Default: the environment of this process.
    stop_signal
        Signal for the group when this process dies. Default: SIGKILL.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stop_signal: signal.Signals | None = None,
    ) -> None:
        # Windows has no SIGKILL, and does not use this module.
        last = stop_signal or signal.SIGKILL
        # A separate session: Ctrl-C reaches only this process, which then ends the group in the
        # right order. And a panicking UML, which kills its process group, does not kill this
        # process.
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
        """ID of the process group, and of its first process."""
        return self._process.pid

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the program's end; return its status, or None if it still runs."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def lines(self) -> Iterator[str]:
        """Yield the lines of output, until all writers have ended."""
        for line in self._process.stdout or ():
            yield line.decode("utf-8", "replace").rstrip("\r\n")

    def end(self, first: signal.Signals | None = None, patience_s: float = 0.0) -> None:
        """End every process of the group, and wait until all have ended.

        Parameters
        ----------
        first
            Signal before SIGKILL, so that the program can clean up.
        patience_s
            Timeout for the cleanup.
        """
        if first is not None and self._process.poll() is None:
            os.killpg(self.id, first)
            self.wait(patience_s)
        with suppress(ProcessLookupError):
            # One call for all processes: a process traced by UML would continue to run without its
            # tracer.
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
    """Return the running processes of a group, without zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # pid (name) state parent group …: the name may contain any character, so search for the
            # last ).
            state, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # The process has just ended.
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
    """Run a program; after the block, none of its processes is left.

    Parameters
    ----------
    on_line
        Called with each line of output, in a separate thread; all lines are processed when the
        block ends. An exception of it is then raised.
    first, patience_s
        See `Group.end`.
    """
    group = Group(command, environment=environment, cwd=cwd, stop_signal=first)

    failures: list[Exception] = []

    def read() -> None:
        for line in group.lines():
            # If no one read the output, the program would block forever.
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
        # A process that left the group may keep its output open; then the reader owns the pipe.
        if not reader.is_alive():
            group.close()
    if failures:
        raise failures[0]


def run_to_end(
    command: Sequence[str],
    on_line: Line,
    *,
    environment: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    patience_s: float = 0.0,
) -> int:
    """Run a program and return its exit status; see `running`.

    If this process is interrupted, the program gets SIGTERM and time to remove incomplete files.
    """
    with running(
        command,
        on_line,
        environment=environment,
        cwd=cwd,
        first=signal.SIGTERM,
        patience_s=patience_s,
    ) as group:
        while (status := group.wait(_WAIT_S)) is None:
            pass
    return status
