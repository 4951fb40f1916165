"""What the connections of a flow have counted together, those that are gone included."""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import dataclass, replace

from .records import CONNECTIONS, FLOW_BYTES, TCP_INFO_BYTES, UNKNOWN

# struct tcp_info of linux/tcp.h, the fields of `_Info` where they are since Linux 4.19.
_INFO = struct.Struct("=16xI4x4I28xI28xI24xQ4xI4x3I40xQ")


@dataclass(frozen=True)
class _Info:
    """Fields of `tcp_info`, by the kernel's names."""

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
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    return _Info(*_INFO.unpack_from(told.ljust(TCP_INFO_BYTES, b"\0")))


def retransmitted_packets(sender: socket.socket | None) -> int:
    """Count what a sender has sent again so far."""
    return _info(sender).total_retrans


@dataclass(eq=False)
class Ends:
    """The two ends of a connection; each is absent as long as it is not there."""

    sender: socket.socket | None = None
    receiver: socket.socket | None = None
    acks: int = 0
    """Segments that had come to the sender when it was looked at last."""


@dataclass
class _Counts:
    """What only grows."""

    sent_packets: int = 0
    sent_bytes: int = 0
    retransmitted_packets: int = 0
    received_packets: int = 0
    delivered_bytes: int = 0

    def add(self, sender: _Info, receiver: _Info) -> None:
        """Add those of a connection."""
        self.sent_packets += sender.data_segs_out
        self.sent_bytes += sender.bytes_sent
        self.retransmitted_packets += sender.total_retrans
        self.received_packets += receiver.data_segs_in
        self.delivered_bytes += receiver.bytes_received


class Tally:
    """The connections of a flow, added up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: set[Ends] = set()
        self._gone = _Counts()
        self._min_rtt_us = UNKNOWN
        # Since the sample before: ACKs, and the smoothed RTT that each of them left.
        self._acks = 0
        self._rtts_us = 0

    def add(self, ends: Ends) -> None:
        """Count a connection from here on."""
        with self._lock:
            self._living.add(ends)

    def close(self, ends: Ends) -> None:
        """Keep what a connection has counted, and close its ends."""
        with self._lock:
            self._living.discard(ends)
            self._gone.add(self._look(ends), _info(ends.receiver))
            for end in (ends.sender, ends.receiver):
                if end is not None:
                    vanish(end)

    def sample(self) -> bytes:
        """One record; see `CONNECTIONS`."""
        with self._lock:
            counts = replace(self._gone)
            in_flight_bytes = 0
            for ends in self._living:
                sender = self._look(ends)
                counts.add(sender, _info(ends.receiver))
                packets = sender.unacked - sender.sacked - sender.lost + sender.retrans
                in_flight_bytes += max(0, packets) * sender.snd_mss
            record = CONNECTIONS.pack(
                counts.sent_packets,
                counts.sent_bytes,
                counts.retransmitted_packets,
                counts.received_packets,
                counts.delivered_bytes,
                in_flight_bytes,
                self._acks,
                self._rtts_us,
                self._min_rtt_us,
            )
            self._acks = self._rtts_us = 0
        return record.ljust(FLOW_BYTES, b"\0")

    def _look(self, ends: Ends) -> _Info:
        """Ask a sender, and count the ACKs that it has had since."""
        sender = _info(ends.sender)
        new = sender.segs_in - ends.acks
        if new > 0 and sender.rtt_us:
            self._acks += new
            self._rtts_us += new * sender.rtt_us
            self._min_rtt_us = min(self._min_rtt_us, sender.min_rtt_us)
        ends.acks = sender.segs_in
        return sender


# linux/tcp.h; Python has no name for it.
_TCP_REPAIR = 19


def vanish(connection: socket.socket) -> None:
    """Close a connection without a packet, as the simulator's end.

    A connection in repair is moved to another host, so that closing it tells the peer nothing
    (`tcp_disconnect`), and its port is free at once.
    """
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
    connection.close()
