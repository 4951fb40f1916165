"""CBR datagrams without replies, and pings, over UDP sockets.

All namespaces share one clock. The one-way delay is the receive timestamp of the kernel minus the
time of sending.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .clock import clock_offset_ns, sleep_until
from .flow import Flow, ThreadedFlow
from .namespaces import Host
from .sample_format import ARRIVAL, DEPARTURE, FLOW_BYTES

_PORT = 5201
_NO_RECORD = bytes(FLOW_BYTES)
# asm/socket.h: receive timestamps of the kernel; socket buffers above the usual limits.
_SO_TIMESTAMPNS, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 35, 32, 33
_TIMESTAMP = struct.Struct("=qq")
_NUMBER = struct.Struct("=Iq")
# Unread datagrams are read at once.
_BUFFER_BYTES = 4 << 20
_LARGEST_BYTES = 1 << 16


class DatagramFlow(ThreadedFlow):
    """A flow of datagrams, with one thread per end.

    Parameters
    ----------
    number
        Index of the flow in the job.
    job
        The flow's part of the job.
    traffic
        Applications of the engine.
    folder
        Folder for the records of both ends.
    """

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        traffic: Any,
        *,
        folder: Path,
    ) -> None:
        super().__init__(number, job, hosts)
        self._traffic = traffic
        self._offset_ns = 0
        folder = folder / "datagrams"
        folder.mkdir(exist_ok=True)
        self._sent = (folder / f"{number}.sent").open("xb", buffering=1 << 16)
        self._came = (folder / f"{number}.came").open("xb", buffering=1 << 16)

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the sender, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""
        self._offset_ns = clock_offset_ns()
        super().start(start_ns, flows)

    def sample(self) -> bytes:
        """Return an empty record, because both ends record every datagram."""
        return _NO_RECORD

    def check(self) -> None:
        """Check that both ends succeeded, and flush their records."""
        super().check()
        self._sent.flush()
        self._came.flush()

    def _receive(self) -> None:
        self._hosts[self._job["receiver"]].enter()
        receiver = _socket((self._job["receiver_address"], _PORT))
        self._listens.set()
        while True:
            came, payload, sender = self._receive_datagram(receiver)
            self._came.write(came)
            self._reply(receiver, payload, sender)

    def _receive_datagram(self, end: socket.socket) -> tuple[bytes, bytes, Any]:
        """Receive a datagram; return its record, its payload and its sender."""
        payload, ancillary, _, sender = end.recvmsg(_LARGEST_BYTES, 64)
        number, sent_ns = _NUMBER.unpack_from(payload)
        (_, _, stamp) = ancillary[0]
        seconds, rest_ns = _TIMESTAMP.unpack(stamp)
        came_ns = seconds * 10**9 + rest_ns - self._offset_ns
        return ARRIVAL.pack(came_ns - self._start_ns, sent_ns, number), payload, sender

    def _reply(self, receiver: socket.socket, payload: bytes, sender: Any) -> None:
        """Reply to a datagram; CBR datagrams have no reply."""

    def _opened(self, sender: socket.socket) -> None:
        """Prepare for replies; CBR datagrams have none."""

    def _send(self) -> None:
        self._hosts[self._job["sender"]].enter()
        sender = _socket((self._job["sender_address"], 0))
        sender.connect((self._job["receiver_address"], _PORT))
        self._opened(sender)
        due_ns = self._begin_ns() + self._job["start_ns"]
        stop_ns = self._job["stop_ns"]
        size = self._job["source"]["bytes"]
        times_ns = self._traffic.datagram_times(self.number, due_ns - self._start_ns)
        for number, at_ns in enumerate(times_ns):
            if stop_ns is not None and at_ns >= stop_ns:
                return
            if number == 0:
                self._due_ns = due_ns
            sleep_until(self._start_ns + at_ns)
            sent_ns = time.monotonic_ns() - self._start_ns
            sender.send(_NUMBER.pack(number, sent_ns).ljust(size, b"\0"))
            self._sent.write(DEPARTURE.pack(sent_ns))


class PingFlow(DatagramFlow):
    """Pings: the receiver returns each datagram, and a third thread receives it."""

    def __init__(
        self,
        number: int,
        job: Mapping[str, Any],
        hosts: Mapping[str, Host],
        traffic: Any,
        *,
        folder: Path,
    ) -> None:
        super().__init__(number, job, hosts, traffic, folder=folder)
        self._back = (folder / "datagrams" / f"{number}.back").open("xb", buffering=1 << 16)

    def check(self) -> None:
        """Check that both ends succeeded, and flush their records."""
        super().check()
        self._back.flush()

    def _reply(self, receiver: socket.socket, payload: bytes, sender: Any) -> None:
        receiver.sendto(payload, sender)

    def _opened(self, sender: socket.socket) -> None:
        def take() -> None:
            while True:
                self._back.write(self._receive_datagram(sender)[0])

        self._thread(take)


def _socket(address: tuple[str, int]) -> socket.socket:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    for option in (_SO_RCVBUFFORCE, _SO_SNDBUFFORCE):
        end.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    end.bind(address)
    return end
