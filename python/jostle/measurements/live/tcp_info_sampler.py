"""Samples TCP_INFO of open connections in a thread during a transfer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from jostle.measurements.live.sock_diag import Connection, Diagnosis, spelt
from jostle.measurements.live.tcp_info import BYTES, Sample, decoded, text_of

__all__ = ["EVERY_S", "Sampler", "of_peer", "of_socket", "write"]

EVERY_S: Final = 0.02
"""Time between two samples."""
_SEARCH_S: Final = 0.1
"""Time between two searches for new connections, which iterate over all of the host's."""

Look = Callable[[], Iterable[Sample]]


class Sampler:
    """Context manager that takes samples repeatedly.

    Parameters
    ----------
    look
        Function that returns the samples of the present time.
    """

    def __init__(self, look: Look) -> None:
        self.samples: list[Sample] = []
        self._look = look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            # The connection may be closed, or the kernel too busy to answer.
            with suppress(OSError):
                self.samples += self._look()
            # After a late wake-up the next sample keeps its schedule, or is taken immediately.
            due = max(due + EVERY_S, time.monotonic() - EVERY_S)
            self._over.wait(max(due - time.monotonic(), 0))

    def largest(self) -> list[Sample]:
        """Return the samples of the connection that transferred the most bytes."""
        moved: dict[tuple[str, str], int] = {}
        for one in self.samples:
            moved[one.local, one.peer] = one.moved_bytes
        if not moved:
            return []
        most = max(moved, key=lambda ends: moved[ends])
        return [one for one in self.samples if (one.local, one.peer) == most]


def of_socket(which: socket.socket) -> Look:
    """Return a function that samples a connection of this process."""
    local, peer = (spelt(*end[:2]) for end in (which.getsockname(), which.getpeername()))

    def look() -> list[Sample]:
        at_s = time.time()
        info = decoded(which.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES))
        name = which.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        return [Sample(at_s, local, peer, name.rstrip(b"\0").decode(), info)]

    return look


def of_peer(diagnosis: Diagnosis, family: int, address: str, port: int) -> Look:
    """Return a function that samples connections to an address and port opened from now on."""
    before = set(diagnosis.to(family, address, port))
    known: list[Connection] = []
    searched_s = 0.0

    def look() -> list[Sample]:
        nonlocal known, searched_s
        if time.monotonic() - searched_s >= _SEARCH_S:
            searched_s = time.monotonic()
            known = [one for one in diagnosis.to(family, address, port) if one not in before]
        found = []
        for one in known:
            at_s = time.time()
            if seen := diagnosis.look(one):
                found.append(Sample(at_s, *one.ends(), seen[1], seen[0]))
        return found

    return look


def write(samples: Iterable[Sample], path: Path) -> None:
    """Write samples of one connection as a log that `jostle analyze` reads."""
    path.write_text("".join(map(text_of, samples)), "utf-8")
