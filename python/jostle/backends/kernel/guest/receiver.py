"""Reading and discarding of received data.

Receivers wake up once per `read_bytes`. A receiver that slept and read later would change the
traffic, because unread data delays ACKs (`tcp_input.c::__tcp_ack_snd_check`). SO_RCVLOWAT does not,
and MSG_TRUNC discards data without copying. Each read leaves one byte, and the receiver then waits
in `poll`. A read of all data would send an extra ACK (`tcp.c::__tcp_cleanup_rbuf`) for a single
segment with PSH (`tcp_input.c::tcp_measure_rcv_mss`), such as the last segment of every burst. The
end of a message is read completely, as by every application, so its ACK is sent at once.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from .clock import sleep_until

_REPORT_S = 1e-6


class _Messages:
    """The unread bytes of a message, if there are messages, and the messages after it."""

    def __init__(self, left_bytes: int | None, take: Callable[[], int | None]) -> None:
        self.left_bytes = left_bytes
        self.take = take

    def end_with(self, taken_bytes: int) -> bool:
        """Count data that was read. Returns whether the last message is complete."""
        if self.left_bytes is None:
            return False
        self.left_bytes -= taken_bytes
        if self.left_bytes:
            return False
        self.left_bytes = self.take()
        return self.left_bytes is None


def wait_readable(readable: select.poll) -> None:
    """Wait until the polled socket can be read, also while its sender has reports to read."""
    while all(happened == select.POLLERR for _, happened in readable.poll()):
        # The sender's thread takes the report. In virtual time only a sleep lets it run.
        time.sleep(_REPORT_S)


def read_slowly(
    connection: socket.socket,
    reader: Any,
    start_ns: int,
    left_bytes: int | None,
    take: Callable[[], int | None],
) -> None:
    """Read as a slow application does, until the connection ends or the last message is complete.

    Parameters
    ----------
    reader
        The engine's application at the receiver.
    start_ns
        Time 0 of the run on the monotonic clock.
    left_bytes, take
        See `read_messages`.
    """
    readable = select.poll()
    readable.register(connection, select.POLLIN)
    buffer = bytearray(1)
    messages = _Messages(left_bytes, take)
    while True:
        wait_readable(readable)
        now_ns = time.monotonic_ns() - start_ns
        next_ns = reader.next_read_ns(now_ns)
        if next_ns > now_ns:
            sleep_until(start_ns + next_ns)
        at_ns, read_bytes = max(now_ns, next_ns), 0
        # A read may contain the ends of several messages.
        while read_bytes < reader.read_bytes:
            limit_bytes = reader.read_bytes - read_bytes
            if messages.left_bytes is not None:
                limit_bytes = min(limit_bytes, messages.left_bytes)
            if len(buffer) < limit_bytes:
                buffer = bytearray(limit_bytes)
            try:
                flags = socket.MSG_TRUNC | socket.MSG_DONTWAIT
                taken_bytes = connection.recv_into(buffer, limit_bytes, flags)
            except BlockingIOError:
                break
            if not taken_bytes:
                return
            read_bytes += taken_bytes
            if messages.end_with(taken_bytes):
                return
        reader.on_read(at_ns, read_bytes)


def read_messages(
    connection: socket.socket,
    job: Mapping[str, Any],
    left_bytes: int | None,
    take: Callable[[], int | None],
) -> None:
    """Read until the connection ends, or the last message is complete.

    Data is read in portions, and the rest of a message at once.

    Parameters
    ----------
    job
        The flow's part of the job, with the read sizes.
    left_bytes
        Size of the first message; None if there are no messages.
    take
        Called after a complete message; returns the size of the next, or None after the last.
    """
    portion_bytes, most_bytes = job["read_bytes"], job["read_most_bytes"]
    buffer = bytearray(max(portion_bytes, most_bytes))
    readable = select.poll()
    readable.register(connection, select.POLLIN)
    awaited_bytes = 0
    messages = _Messages(left_bytes, take)
    while True:
        wanted_bytes, limit_bytes = portion_bytes, most_bytes
        if messages.left_bytes is not None and messages.left_bytes <= portion_bytes:
            wanted_bytes = limit_bytes = messages.left_bytes
        if awaited_bytes != wanted_bytes:
            awaited_bytes = wanted_bytes
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited_bytes)
        wait_readable(readable)
        taken_bytes = connection.recv_into(buffer, limit_bytes, socket.MSG_TRUNC)
        if not taken_bytes or messages.end_with(taken_bytes):
            return
