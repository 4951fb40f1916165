"""Sums of the counters of a flow's connections, including closed ones."""

from __future__ import annotations

import socket
import struct
import threading
from typing import NamedTuple

from .sample_format import CONNECTIONS, FLOW_BYTES, TCP_INFO_BYTES, UNKNOWN

# struct tcp_info of linux/tcp.h: the fields of `_Info`, with their offsets since Linux 4.19.
_INFO = struct.Struct("=16xI4x4I28xI28xI24xQ4xI4x3I40xQ")


class _Info(NamedTuple):
    """Fields of `tcp_info`, with the kernel's names."""

    snd_mss: int = 0
    unacked: int = 0
    sacked: int = 0
    lost: int = 0
    retrans: int = 0
    rtt_us: int = 0
    total_retrans: int = 0
    bytes_received: int = 0
    segs_in: int = 0
    min_rtt_us: int = 0
    data_segs_in: int = 0
    data_segs_out: int = 0
    bytes_sent: int = 0


def _info(connection: socket.socket | None) -> _Info:
    if connection is None:
        return _Info()
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return _Info(*_INFO.unpack_from(info.ljust(TCP_INFO_BYTES, b"\0")))


def retransmitted_packets(sender: socket.socket | None) -> int:
    """Return the number of packets that a sender has retransmitted so far."""
    return _info(sender).total_retrans


class Ends:
    """Both sockets of a connection; None before they exist."""

    def __init__(self, receiver: socket.socket | None = None) -> None:
        self.sender: socket.socket | None = None
        self.receiver = receiver
        # Segments that the sender had received at the last sample.
        self.acks = 0


class _Counts(NamedTuple):
    """Cumulative counters."""

    sent_packets: int = 0
    sent_bytes: int = 0
    retransmitted_packets: int = 0
    received_packets: int = 0
    delivered_bytes: int = 0

    def plus(self, sender: _Info, receiver: _Info) -> _Counts:
        """Return the sums with the counters of a connection."""
        return _Counts(
            self.sent_packets + sender.data_segs_out,
            self.sent_bytes + sender.bytes_sent,
            self.retransmitted_packets + sender.total_retrans,
            self.received_packets + receiver.data_segs_in,
            self.delivered_bytes + receiver.bytes_received,
        )


class ConnectionTotals:
    """Sums over the connections of a flow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: set[Ends] = set()
        self._closed = _Counts()
        self._min_rtt_us = UNKNOWN
        # Since the previous sample: number of ACKs, and the sum of the smoothed RTT after each.
        self._acks = 0
        self._rtts_us = 0

    def add(self, ends: Ends) -> None:
        """Add a connection."""
        with self._lock:
            self._living.add(ends)

    def close(self, ends: Ends) -> None:
        """Store the counters of a connection, and close its sockets."""
        with self._lock:
            self._living.discard(ends)
            self._closed = self._closed.plus(self._look(ends), _info(ends.receiver))
            for end in (ends.sender, ends.receiver):
                if end is not None:
                    vanish(end)

    def sample(self) -> bytes:
        """Return the record of the flow; see `CONNECTIONS`."""
        with self._lock:
            counts = self._closed
            in_flight_bytes = 0
            for ends in self._living:
                sender = self._look(ends)
                counts = counts.plus(sender, _info(ends.receiver))
                packets = sender.unacked - sender.sacked - sender.lost + sender.retrans
                in_flight_bytes += max(0, packets) * sender.snd_mss
            record = CONNECTIONS.pack(
                *counts,
                in_flight_bytes,
                self._acks,
                self._rtts_us,
                self._min_rtt_us,
            )
            self._acks = self._rtts_us = 0
        return record.ljust(FLOW_BYTES, b"\0")

    def _look(self, ends: Ends) -> _Info:
        """Read the sender's `tcp_info`, and count its new ACKs."""
        sender = _info(ends.sender)
        new = sender.segs_in - ends.acks
        if new > 0 and sender.rtt_us:
            self._acks += new
            self._rtts_us += new * sender.rtt_us
            self._min_rtt_us = min(self._min_rtt_us, sender.min_rtt_us)
        ends.acks = sender.segs_in
        return sender


# linux/tcp.h; Python lacks this constant.
_TCP_REPAIR = 19


def vanish(connection: socket.socket) -> None:
    """Close a connection without sending a packet, like the simulator.

    The kernel treats a connection in repair mode as migrated to another host. Closing it does not
    notify the peer (`tcp_disconnect`) and releases its port at once.
    """
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
    connection.close()
