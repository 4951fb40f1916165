"""Netlink interface to qdiscs and routes, for options without `tc` syntax and for speed."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

from .failure import GuestFailure

# linux/netlink.h, linux/rtnetlink.h
NEW_ROUTE, NEW_QDISC, GET_QDISC = 24, 36, 38
REQUEST, ACKNOWLEDGE, ECHO, REPLACE, EXCLUSIVE, CREATE = 1, 4, 8, 0x100, 0x200, 0x400
_ERROR = 2
_NESTED = 0x8000
_HEADER = struct.Struct("=IHHII")
_TCA_KIND, _TCA_OPTIONS = 1, 2
_RTA_DST, _RTA_OIF = 1, 4

ROOT = 0xFFFFFFFF
"""Parent of a device's root qdisc."""

# struct tcmsg
_TC = struct.Struct("=BxxxiIII")
TC_BYTES = _HEADER.size + _TC.size

# struct rtmsg of an IPv4 route to one address through a device: RT_TABLE_MAIN, RTPROT_BOOT,
# RT_SCOPE_LINK, RTN_UNICAST.
_ROUTE = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, 254, 3, 253, 1, 0)


def attribute(number: int, content: bytes) -> bytes:
    """Encode an attribute."""
    length = 4 + len(content)
    return struct.pack("=HH", length, number) + content + bytes(-length % 4)


def attributes(message: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Decode the attributes between two positions: number and content."""
    while at + 4 <= end:
        length, number = struct.unpack_from("=HH", message, at)
        if length < 4:
            return
        yield number & ~_NESTED, message[at + 4 : at + length]
        at += (length + 3) & ~3


class Device:
    """A device in the current network namespace: its qdiscs, and routes through it."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._index = socket.if_nametoindex(name)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def query(self, handle: int) -> bytes:
        """Return the request for a qdisc, which can be sent repeatedly."""
        # Without ECHO, only subscribers of all events get the reply.
        return self._message(GET_QDISC, REQUEST | ECHO, handle, 0, b"")

    def ask(self, message: bytes) -> tuple[bytes, int]:
        """Send a message; return the reply and its length.

        Raises
        ------
        OSError
            If the kernel returned an error.
        """
        self._socket.send(message)
        reply = self._socket.recv(1 << 16)
        length, kind = struct.unpack_from("=IH", reply)
        if kind == _ERROR:
            number = -struct.unpack_from("=i", reply, _HEADER.size)[0]
            if number:
                raise OSError(number, os.strerror(number))
        return reply, length

    def add(self, kind: str, handle: int, parent: int, options: bytes) -> None:
        """Create a qdisc.

        Raises
        ------
        GuestFailure
            If the kernel rejects or does not know it.
        """
        self._set(kind, handle, parent, options, CREATE | EXCLUSIVE)

    def change(self, kind: str, handle: int, parent: int, options: bytes) -> None:
        """Add options to a qdisc.

        Raises
        ------
        GuestFailure
            If the kernel rejects them.
        """
        self._set(kind, handle, parent, options, 0)

    def route(self, address: str) -> None:
        """Route packets to an address through the device, instead of an earlier route.

        Raises
        ------
        GuestFailure
            If the kernel rejects it.
        """
        body = _ROUTE + attribute(_RTA_DST, socket.inet_aton(address))
        body += attribute(_RTA_OIF, struct.pack("=I", self._index))
        flags = REQUEST | ACKNOWLEDGE | CREATE | REPLACE
        try:
            self.ask(_HEADER.pack(_HEADER.size + len(body), NEW_ROUTE, flags, 0, 0) + body)
        except OSError as error:
            raise GuestFailure(f"the route to {address} is refused: {error.strerror}") from error

    def _set(self, kind: str, handle: int, parent: int, options: bytes, flags: int) -> None:
        body = attribute(_TCA_KIND, kind.encode() + b"\0")
        body += attribute(_TCA_OPTIONS | _NESTED, options)
        message = self._message(NEW_QDISC, REQUEST | ACKNOWLEDGE | flags, handle, parent, body)
        try:
            self.ask(message)
        except FileNotFoundError:
            raise GuestFailure(f"this kernel lacks the queueing discipline {kind}") from None
        except OSError as error:
            raise GuestFailure(f"the discipline {kind} is refused: {error.strerror}") from error

    def _message(self, kind: int, flags: int, handle: int, parent: int, body: bytes) -> bytes:
        body = _TC.pack(socket.AF_UNSPEC, self._index, handle, parent, 0) + body
        return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body
