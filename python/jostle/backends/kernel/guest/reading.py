"""How data are read, and thrown away.

Receivers wake once per `read_bytes`. A receiver that slept and read later would change the traffic:
unread data delay ACKs (`__tcp_ack_snd_check`). SO_RCVLOWAT leaves them alone, and MSG_TRUNC throws
data away without copying them. Each read leaves a byte, and the next one waits in `poll`: a read
that takes everything sends an ACK of its own (`__tcp_cleanup_rbuf`), of a single segment, if that
had PSH (`tcp_measure_rcv_mss`), as the last one of every burst has. The end of a message is read
whole, as every application would: its ACK, too, is sent at once.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Mapping
from typing import Any


def read_messages(
    connection: socket.socket,
    job: Mapping[str, Any],
    left_bytes: int | None,
    take: Callable[[], int | None],
) -> None:
    """Read until the connection ends, or the last message is whole.

    It reads in portions, and what is left of a message at once.

    Parameters
    ----------
    job
        The flow's part of the job: how much it reads at once.
    left_bytes
        Size of the first message; None if there are no messages.
    take
        Called when a message is whole; returns the size of the next, None after the last.
    """
    portion_bytes, most_bytes = job["read_bytes"], job["read_most_bytes"]
    buffer = bytearray(max(portion_bytes, most_bytes))
    readable = select.poll()
    readable.register(connection, select.POLLIN)
    awaited_bytes = 0
    while True:
        wanted_bytes, limit_bytes = portion_bytes, most_bytes
        if left_bytes is not None and left_bytes <= portion_bytes:
            wanted_bytes = limit_bytes = left_bytes
        if awaited_bytes != wanted_bytes:
            awaited_bytes = wanted_bytes
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited_bytes)
        readable.poll()
        taken_bytes = connection.recv_into(buffer, limit_bytes, socket.MSG_TRUNC)
        if not taken_bytes:
            return
        if left_bytes is not None:
            left_bytes -= taken_bytes
            if not left_bytes:
                left_bytes = take()
                if left_bytes is None:
                    return
