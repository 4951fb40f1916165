"""Connections of this host from the kernel's sock_diag(7), like ss, without root."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jostle.measurements.live.tcp_info import decoded

__all__ = ["Connection", "Diagnosis", "spelt"]

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 0x1
_NLM_F_DUMP: Final = 0x300
_NLMSG_ERROR: Final = 2
_NLMSG_DONE: Final = 3
_INET_DIAG_INFO: Final = 2
_INET_DIAG_CONG: Final = 4
_ESTABLISHED: Final = 1
# nlmsghdr; inet_diag_req_v2 without the connection; inet_diag_sockid; the rest of the reply's
# inet_diag_msg; rtattr: linux/netlink.h and linux/inet_diag.h.
_HEADER: Final = struct.Struct("=IHHII")
_REQUEST: Final = struct.Struct("=BBBBI")
_SOCKET: Final = struct.Struct("!HH16s16s12s")
_MESSAGE: Final = struct.Struct("=BBBB48sIIIII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_ROOM: Final = 1 << 16


@dataclass(frozen=True)
class Connection:
    """An established connection.

    Attributes
    ----------
    family
        `AF_INET` or `AF_INET6`.
    local_port, peer_port
        Ports.
    local, peer
        Addresses, 16 bytes each.
    device
        Index of the interface to which it is bound, and the kernel's cookie of the connection.
    """

    family: int
    local_port: int
    peer_port: int
    local: bytes
    peer: bytes
    device: bytes

    def ends(self) -> tuple[str, str]:
        """Return both ends in the format of ss."""
        size = 4 if self.family == socket.AF_INET else 16
        local, peer = (socket.inet_ntop(self.family, end[:size]) for end in (self.local, self.peer))
        return spelt(local, self.local_port), spelt(peer, self.peer_port)


def spelt(address: str, port: int) -> str:
    """Return an address and its port in the format of ss."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Diagnosis:
    """Queries the kernel about connections.

    Raises
    ------
    OSError
        When this process is not permitted to do so, as in some sandboxes.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._socket.bind((0, 0))
        self._socket.settimeout(1.0)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def to(self, family: int, address: str, port: int) -> list[Connection]:
        """Return the established connections to an address and port."""
        peer = socket.inet_pton(family, address).ljust(16, b"\0")
        unbound = bytes(12)
        asked = Connection(family, 0, port, bytes(16), peer, unbound)
        return [found for found, _ in self._ask(asked, every=True) if found.peer == peer]

    def look(self, at: Connection) -> tuple[dict[str, int], str] | None:
        """Return a connection's TCP_INFO and its controller; None if it no longer exists."""
        for _, attributes in self._ask(at, every=False):
            content = attributes.get(_INET_DIAG_INFO)
            if content:
                name = attributes.get(_INET_DIAG_CONG, b"unknown").rstrip(b"\0")
                return decoded(content), name.decode("ascii", "replace")
        return None

    def _ask(
        self, about: Connection, *, every: bool
    ) -> Iterator[tuple[Connection, dict[int, bytes]]]:
        wanted = 1 << (_INET_DIAG_INFO - 1) | 1 << (_INET_DIAG_CONG - 1)
        request = _REQUEST.pack(
            about.family, socket.IPPROTO_TCP, 0 if every else wanted, 0, 1 << _ESTABLISHED
        )
        which = _SOCKET.pack(
            about.local_port, about.peer_port, about.local, about.peer, about.device
        )
        flags = _NLM_F_REQUEST | (_NLM_F_DUMP if every else 0)
        size = _HEADER.size + len(request) + len(which)
        header = _HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, flags, 0, 0)
        self._socket.send(header + request + which)
        while True:
            answer = self._socket.recv(_ROOM)
            at = 0
            while at + _HEADER.size <= len(answer):
                length, kind, _, _, _ = _HEADER.unpack_from(answer, at)
                if kind in (_NLMSG_DONE, _NLMSG_ERROR) or length < _HEADER.size:
                    return
                yield _read(answer[at + _HEADER.size : at + length])
                at += (length + 3) & ~3
            if not every:
                return


def _read(message: bytes) -> tuple[Connection, dict[int, bytes]]:
    family, _, _, _, which, *_ = _MESSAGE.unpack_from(message)
    local_port, peer_port, local, peer, device = _SOCKET.unpack(which)
    attributes: dict[int, bytes] = {}
    at = _MESSAGE.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size:
            break
        attributes[kind] = message[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return Connection(family, local_port, peer_port, local, peer, device), attributes
