"""Processes in hosts: their start, end and output, and the ports that they have bound."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from .failure import GuestFailure
from .namespaces import Host

EXIT_TIMEOUT_S = 1.0
"""Timeout for a program to exit after a signal."""

ISOLATED_PYTHON = (sys.executable, "-I", "-S", "-B")
"""Command that starts a script of this package, without modules of the user."""

# Many programs complete their log only on SIGINT.
_EXIT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_TAIL_LINES = 12
_LINE_CHARACTERS = 300

# Columns of /proc/net/tcp and udp, and the state of a listening socket (TCP_LISTEN).
_LOCAL, _STATE = 1, 3
_LISTENS = "0A"


class HostProcess:
    """A process with its own session in a host.

    Attributes
    ----------
    process
        The process, which leads a process group.
    """

    process: subprocess.Popen[bytes]

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self.process.poll()

    def end(
        self,
        signals: Sequence[signal.Signals] = _EXIT_SIGNALS,
        timeout_s: float = EXIT_TIMEOUT_S,
    ) -> None:
        """Send the exit signals to the process group, until the process has ended."""
        for exit_signal in signals:
            if self.status is not None:
                break
            try:
                os.killpg(self.process.pid, exit_signal)
                self.process.wait(timeout_s)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def how_it_ended(self) -> str:
        """Describe the exit status."""
        return how_it_ended(self.status or 0)


class Program(HostProcess):
    """A process in a host, with the last lines of its output.

    Parameters
    ----------
    role
        Role in the flow, for messages.
    environment
        Environment variables. Without a launcher, the program also inherits all others.
    hear
        Called with every line of output.
    launcher
        Command that starts the program, before its own words.
    """

    def __init__(
        self,
        role: str,
        words: Sequence[str],
        host: Host,
        environment: Mapping[str, str],
        *,
        cwd: Path,
        hear: Callable[[str], None] = lambda _line: None,
        launcher: Sequence[str] = (),
    ) -> None:
        self.role = role
        self._hear = hear
        self.words = words
        self._said: deque[str] = deque(maxlen=_TAIL_LINES)
        with host.entered():
            try:
                self.process = subprocess.Popen(
                    [*launcher, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=environment if launcher else {**os.environ, **environment},
                    start_new_session=True,
                )
            except OSError as error:
                raise GuestFailure(f"{role} `{words[0]}`: {error.strerror}") from error
        assert self.process.stdout is not None
        self._reader = threading.Thread(
            target=self._listen, args=(self.process.stdout,), daemon=True
        )
        self._reader.start()

    def _listen(self, output: IO[bytes]) -> None:
        # Longer lines are split.
        while line := output.readline(1 << 16):
            text = line.decode("utf-8", "replace").strip()
            if text:
                self._said.append(text[:_LINE_CHARACTERS])
                self._hear(text)

    def complaint(self, what: str) -> GuestFailure:
        """Return a failure with a description and the last output."""
        self._reader.join(EXIT_TIMEOUT_S)
        said = " | ".join(self._said) or "nothing"
        return GuestFailure(f"the {self.role} `{self.words[0]}` {what}; it said last: {said}")


def how_it_ended(status: int) -> str:
    """Describe an exit status, negative for a signal."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def bound_ports(*protocols: str) -> set[int]:
    """Return the ports of `udp` and `tcp` at which sockets of the current namespace listen."""
    found = set()
    for table in (f"{protocol}{family}" for protocol in protocols for family in ("", "6")):
        try:
            lines = Path("/proc/thread-self/net", table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for fields in map(str.split, lines):
            if table.startswith("udp") or fields[_STATE] == _LISTENS:
                found.add(int(fields[_LOCAL].rpartition(":")[2], 16))
    return found
