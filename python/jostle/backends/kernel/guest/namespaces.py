"""Unnamed network namespaces.

A namespace that is held only by file descriptors ends with the process, even after SIGKILL, so that
no cleanup is needed.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .clock import libc
from .failure import GuestFailure

_CLONE_NEWNET = 0x40000000
_OWN = "/proc/thread-self/ns/net"


class Host:
    """A host of the emulated network: a network namespace.

    Parameters
    ----------
    name
        Name for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _succeeds(libc.unshare(_CLONE_NEWNET), "cannot make a network namespace")
            self.descriptor = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            _enter(home)
            os.close(home)

    def enter(self) -> None:
        """Move the calling thread into the namespace."""
        _enter(self.descriptor)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the namespace temporarily; programs started meanwhile inherit it."""
        home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.enter()
            yield
        finally:
            _enter(home)
            os.close(home)

    def change_queues(self, lines: Sequence[str]) -> None:
        """Run commands of `tc` in the namespace.

        Raises
        ------
        GuestFailure
            If a command failed.
        """
        with self.entered():
            done = subprocess.run(
                ["tc", "-batch", "-"],
                input="".join(f"{line}\n" for line in lines),
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        if done.returncode == 0:
            return
        said = done.stdout.strip()
        # "Command failed -:3": the third input line.
        number = re.search(r"-:(\d+)", said)
        line = lines[int(number[1]) - 1] if number else "; ".join(lines)
        if "kind is unknown" in said:
            raise GuestFailure(f"this kernel lacks the queueing discipline of `tc {line}`")
        raise GuestFailure(f"`tc {line}` failed: {said}")


def _enter(descriptor: int) -> None:
    _succeeds(libc.setns(descriptor, _CLONE_NEWNET), "cannot enter a network namespace")


def _succeeds(result: int, message: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{message}: {os.strerror(number)}")
