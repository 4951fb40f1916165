"""Proxies, which forward data from one TCP connection to the next.

A proxy has a socket in two hosts: the receiver of the previous connection, and the sender of the
connection that it opens. It reads received data as long as its buffer has room, and writes it. All
payload is zeros, so the proxy counts bytes without copying them.
"""

from __future__ import annotations

import fcntl
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .flow import Flow
from .namespaces import Host
from .tcp_flow import PORT, ZEROS, TcpFlow, end_abruptly, set_controller

# linux/if_ether.h, linux/sockios.h, asm/ioctls.h.
_ETH_P_IP = 0x0800
_SIOCOUTQ, _FIONREAD = 0x5411, 0x541B
_READ_BYTES = 1 << 20
# Polling interval for events that the kernel does not signal: that data was acknowledged.
_LOOK_MS = 1


class RelayFlow(TcpFlow):
    """A connection opened by a proxy; see `TcpFlow`."""

    def __init__(
        self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host], reader: Any
    ) -> None:
        super().__init__(number, job, hosts, None, reader)
        self._source = job["source"]
        self._came: TcpFlow | None = None
        self._knock: socket.socket | None = None
        # Bytes that were read and not yet written.
        self._unwritten_bytes = 0
        self._acked_bytes = 0
        self._moved = threading.Condition()

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Wait for the previous connection."""
        before = flows[self._source["from"]]
        assert isinstance(before, TcpFlow), "what is passed on comes over TCP"
        self._came = before
        # The receiver of the last connection reads the messages of the flow's application.
        self.application = before.application
        # A program learns of a connection after the handshake; a gateway sees the SYN.
        with before.receiving_host().entered():
            self._knock = socket.socket(
                socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_IP)
            )
            self._knock.bind(("in", _ETH_P_IP))
        super().start(start_ns, flows)

    def wait_acknowledged(self, total_bytes: int) -> None:
        """Wait until this connection's receiver has acknowledged the first `total_bytes`."""
        with self._moved:
            self._moved.wait_for(lambda: self._acked_bytes >= total_bytes)

    def _messages(self) -> list[str]:
        """Return no log, because the first connection of the flow has it."""
        return []

    def _send(self) -> None:
        assert self._came is not None
        assert self._knock is not None
        self._knock.recv(1)
        self._knock.close()
        self._hosts[self._job["sender"]].enter()
        sender = socket.socket()
        set_controller(sender, self._job["controller"])
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end_abruptly(sender)
        sender.bind((self._job["sender_address"], 0))
        sender.setblocking(False)
        self._sender = sender
        self._due_ns = self._opened_ns = time.monotonic_ns()
        sender.connect_ex((self._job["receiver_address"], PORT))
        try:
            self._pass_on(self._came.accepted(), sender)
        except (ConnectionError, TimeoutError) as error:
            self._broken = error.strerror or str(error)

    def _pass_on(self, came: socket.socket, sender: socket.socket) -> None:
        came.setblocking(False)
        arrivals = select.poll()
        arrivals.register(came, select.POLLIN)
        nothing = bytearray(_READ_BYTES)
        while True:
            held_bytes = self._unwritten_bytes + self._unacknowledged_bytes(sender)
            readable_bytes = self._readable_bytes(came, self._source["buffer_bytes"] - held_bytes)
            if readable_bytes:
                taken = came.recv_into(nothing, min(readable_bytes, _READ_BYTES), socket.MSG_TRUNC)
                self._unwritten_bytes += taken
                held_bytes += taken
            self._write_on(sender)
            if readable_bytes:
                continue
            blocked = _waiting_bytes(came) > 0
            if blocked:
                # The buffer is full until data is acknowledged.
                time.sleep(_LOOK_MS / 1e3)
                continue
            for _, happened in arrivals.poll(_LOOK_MS if held_bytes else None):
                if happened & (select.POLLHUP | select.POLLERR):
                    return

    def _readable_bytes(self, came: socket.socket, room_bytes: int) -> int:
        """Return the bytes to read: all that arrived, or the segments that fit into the buffer."""
        waiting_bytes = _waiting_bytes(came)
        if waiting_bytes <= room_bytes:
            return waiting_bytes
        return max(0, room_bytes - room_bytes % int(self._job["segment_bytes"]))

    def _write_on(self, sender: socket.socket) -> None:
        while self._unwritten_bytes:
            try:
                taken = sender.send(ZEROS[: self._unwritten_bytes])
            except BlockingIOError:
                return
            self._unwritten_bytes -= taken
            self._written_bytes += taken

    def _unacknowledged_bytes(self, sender: socket.socket) -> int:
        """Return the unacknowledged bytes, and notify `wait_acknowledged` of progress."""
        left_bytes = _ioctl_int(sender, _SIOCOUTQ)
        acked_bytes = self._written_bytes - left_bytes
        if acked_bytes > self._acked_bytes:
            with self._moved:
                self._acked_bytes = acked_bytes
                self._moved.notify_all()
        return left_bytes


def _waiting_bytes(connection: socket.socket) -> int:
    return _ioctl_int(connection, _FIONREAD)


def _ioctl_int(connection: socket.socket, request: int) -> int:
    (value,) = struct.unpack("=i", fcntl.ioctl(connection, request, b"\0" * 4))
    return int(value)
