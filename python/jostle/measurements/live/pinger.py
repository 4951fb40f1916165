"""Pings in a thread, logged in the format of `ping -D`.

The kernel records the arrival time of a reply (SO_TIMESTAMPNS), so that load on this process does
not increase the RTT.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["HOW_TO_ALLOW", "Pinger", "Pings", "open_socket"]

EVERY_S: Final = 0.1
PATIENCE_S: Final = 1.0
"""Time to wait for replies after the last ping."""
HOW_TO_ALLOW: Final = 'sudo sysctl net.ipv4.ping_group_range="0 2147483647"'
PAYLOAD_BYTES: Final = 56
_SO_TIMESTAMPNS: Final = 35
_HEADER: Final = struct.Struct("!BBHHH")
_TIMESPEC: Final = struct.Struct("=qq")
_REQUESTS: Final[Mapping[int, int]] = {socket.AF_INET: 8, socket.AF_INET6: 128}
_ANSWERS: Final[Mapping[int, int]] = {socket.AF_INET: 0, socket.AF_INET6: 129}
_ROOM: Final = 2048


@dataclass(frozen=True)
class Pings:
    """Results of pings.

    Attributes
    ----------
    host
        Host that was pinged.
    sent_s
        Time of each request, in seconds since 1970.
    rtt_s
        RTT by position of the request; absent if there was no reply.
    """

    host: str
    sent_s: tuple[float, ...]
    rtt_s: Mapping[int, float]

    def quantile_s(self, share: float, from_s: float = 0.0) -> float | None:
        """Return a quantile of the RTTs of requests that were sent at or after a time."""
        there = sorted(rtt for number, rtt in self.rtt_s.items() if self.sent_s[number] >= from_s)
        return there[min(int(share * len(there)), len(there) - 1)] if there else None

    @property
    def lost(self) -> int:
        """Number of requests without a reply."""
        return len(self.sent_s) - len(self.rtt_s)

    def write(self, path: Path) -> None:
        """Write the format of `ping -D`, whose time stamps are the arrival times of replies."""
        size = PAYLOAD_BYTES + _HEADER.size
        lines = [f"PING {self.host} {PAYLOAD_BYTES} data bytes"]
        for number, rtt_s in sorted(self.rtt_s.items()):
            came_s = self.sent_s[number] + rtt_s
            lines.append(
                f"[{came_s:.6f}] {size} bytes from {self.host}: icmp_seq={number + 1} "
                f"time={rtt_s * 1e3:.3f} ms"
            )
        lines.append(f"{len(self.sent_s)} packets transmitted, {len(self.rtt_s)} received")
        path.write_text("\n".join(lines) + "\n", "utf-8")


def open_socket(family: int) -> socket.socket:
    """Open a socket for echo requests: an unprivileged one if permitted, else a raw one.

    Raises
    ------
    OSError
        When neither is permitted.
    """
    protocol = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
    try:
        made = socket.socket(family, socket.SOCK_DGRAM, protocol)
    except OSError:
        made = socket.socket(family, socket.SOCK_RAW, protocol)
    made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    made.setblocking(False)
    return made


class Pinger:
    """Context manager that pings a host every tenth of a second.

    Parameters
    ----------
    family, host
        Address family and numeric address.
    """

    def __init__(self, family: int, host: str) -> None:
        self._family = family
        self._host = host
        self._socket = open_socket(family)
        # A raw socket receives the replies of all processes. For unprivileged sockets the kernel
        # sets the identifier.
        self._identifier = os.getpid() & 0xFFFF
        self._sent_s: list[float] = []
        self._rtt_s: dict[int, float] = {}
        self._patience_s = PATIENCE_S
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Pinger:
        # Without a route to the host all pings are lost; the transfer reports the reason.
        with suppress(OSError):
            self._socket.connect((self._host, 0))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error, the replies are not used.
        self._patience_s = PATIENCE_S if kind is None else 0.0
        self._over.set()
        self._thread.join()
        self._socket.close()

    def pings(self) -> Pings:
        """Return the results after the context has been left."""
        return Pings(self._host, tuple(self._sent_s), dict(self._rtt_s))

    def _run(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            self._send()
            due += EVERY_S
            self._await(due)
        until = time.monotonic() + self._patience_s
        while len(self._rtt_s) < len(self._sent_s) and time.monotonic() < until:
            self._await(min(until, time.monotonic() + EVERY_S))

    def _send(self) -> None:
        number = len(self._sent_s) & 0xFFFF
        payload = struct.pack("!I", len(self._sent_s)).ljust(PAYLOAD_BYTES, b"\0")
        kind = _REQUESTS[self._family]
        words = (kind, 0, 0, self._identifier, number)
        checksum = _checksum(_HEADER.pack(*words) + payload)
        self._sent_s.append(time.time())
        # Errors of earlier pings (unreachable) are raised here; this ping is then lost.
        with suppress(OSError):
            self._socket.send(_HEADER.pack(kind, 0, checksum, self._identifier, number) + payload)

    def _await(self, until: float) -> None:
        """Receive replies until a time."""
        while (left := until - time.monotonic()) > 0:
            there, _, _ = select.select([self._socket], [], [], left)
            if not there:
                return
            with suppress(OSError):
                content, told, _, _ = self._socket.recvmsg(_ROOM, 128)
                self._answered(content, _came_s(told))

    def _answered(self, content: bytes, came_s: float) -> None:
        if self._socket.type == socket.SOCK_RAW:
            if self._family == socket.AF_INET:
                content = content[(content[0] & 0x0F) * 4 :] if content else b""
            if len(content) >= _HEADER.size and _HEADER.unpack_from(content)[3] != self._identifier:
                return
        if len(content) < _HEADER.size + 4 or content[0] != _ANSWERS[self._family]:
            return
        (number,) = struct.unpack_from("!I", content, _HEADER.size)
        if number < len(self._sent_s):
            self._rtt_s.setdefault(number, max(came_s - self._sent_s[number], 0.0))


def _came_s(told: list[tuple[int, int, bytes]]) -> float:
    for level, kind, data in told:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(data) >= _TIMESPEC.size:
            seconds, ns = _TIMESPEC.unpack_from(data)
            return float(seconds + ns / 1e9)
    return time.time()


def _checksum(packet: bytes) -> int:
    """Return the checksum of RFC 1071; for ICMPv6 and unprivileged sockets the kernel sets it."""
    total: int = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
