"""What a QUIC stack wrote of its connections (qlog), as samples.

From the end that sends data: what it sent, what it sent again, what was acknowledged, its RTTs and
its window. From the other end: what came. Names are those of draft-ietf-quic-qlog-quic-events, from
-03 (which ours have) to the present one.
"""

from __future__ import annotations

import math
import re
from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Final

from jostle.captures.samples import HEADER_BYTES, MOST_ROWS, NS, STATES, Log, flow_spec, seen, spec
from jostle.qlog_events import (
    CALENDAR_MS,
    METRICS,
    METRICS_UPDATED,
    NO_THRESHOLD,
    Event,
    events,
)

PACKET_BYTES: Final = 42
"""Headers of UDP, IPv4 and Ethernet, which no log has."""
MOST_EVENTS: Final = 4_000_000
"""Packets, ACKs and metrics of a file: some hundred bytes each while it is read."""

_INTERVAL_NS: Final = NS // 10
_MOST_FLOWS: Final = 1000
_SPACES: Final = {"initial": "initial", "handshake": "handshake"}
"""0-RTT and 1-RTT share their numbers (RFC 9000 §12.3)."""
_SHORT: Final = "1RTT"
_MODE: Final = re.compile(r"[a-z][a-z_]{0,39}")
_MOST_MODES: Final = 40
_QUIC: Final = {
    "implementation": None, "initial_mtu_bytes": 1200, "mtu_discovery": False,
    "ack_frequency": None, "recovery": "rfc9002", "gso_packets": 1, "pacing": False, "streams": 1,
    "stream_receive_window_bytes": 0, "handshake": "1rtt", "crypto": "tls",
}  # fmt: skip
"""What the specification of a QUIC flow has to have; nothing of it is known."""
_COUNTERS: Final = (
    "sent_bytes", "received_bytes", "delivered_bytes", "sent_packets", "retransmitted_packets",
)  # fmt: skip

_DATA_MARKS: Final = (
    b"packet_sent", b"packet_received", b"metrics_updated", b"congestion_state_updated",
    b"mtu_updated",
)  # fmt: skip


class _Coverage:
    """What is there of a stream from its first byte on, and beyond holes."""

    def __init__(self) -> None:
        self.next = 0
        self._beyond: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> int:
        """Put a range in; return how many bytes more are in order."""
        before = self.next
        if start > before:
            insort(self._beyond, (start, end))
            return 0
        self.next = max(before, end)
        done = 0
        while done < len(self._beyond) and self._beyond[done][0] <= self.next:
            self.next = max(self.next, self._beyond[done][1])
            done += 1
        del self._beyond[:done]
        return self.next - before


@dataclass
class _Sent:
    """A packet that nobody has acknowledged."""

    wire_bytes: int
    ranges: list[tuple[int, int, int, bool]]


@dataclass
class _Direction:
    """What went one way: which bytes of streams, in how many packets."""

    packets: int = 0
    wire_bytes: int = 0
    stream_bytes: int = 0
    again_packets: int = 0
    highest: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    # Of the instant of the last packet.
    now_ms: float = -math.inf
    repeated: int = 0
    full: int = 0
    fresh: bool = False
    together: int = 0

    def count(self, event: Event, length: int, short: bool, most: int) -> int:
        """Count a packet, which may share the datagram of the one before it.

        Returns
        -------
        int
            Bytes on the wire that it adds.
        """
        again = event.time_ms == self.now_ms
        if not again:
            self.now_ms, self.repeated, self.full, self.fresh = event.time_ms, 0, 0, False
        # RFC 9000 §12.2: behind a packet with a long header, in one datagram.
        joined = again and self.fresh and self.together + length <= most
        self.together = length + (self.together if joined else 0)
        self.fresh = not short
        headers = 0 if joined else PACKET_BYTES
        self.packets += not joined
        self.full += not joined
        self.wire_bytes += length + headers
        return length + headers

    def repeat(self, repeated: int, full_bytes: int) -> None:
        """Count as many of the packets of an instant as sent again as their old bytes fill."""
        if repeated:
            before = min(-(-self.repeated // full_bytes), self.full)
            self.repeated += repeated
            self.again_packets += min(-(-self.repeated // full_bytes), self.full) - before

    def ranges(self, frames: Iterable[Any]) -> tuple[list[tuple[int, int, int, bool]], int]:
        """Take the bytes of streams in a packet, and how many of them were sent before."""
        found, repeated = [], 0
        for frame in frames:
            if not isinstance(frame, Mapping) or frame.get("frame_type") != "stream":
                continue
            stream, start = int(frame.get("stream_id", 0)), int(frame.get("offset", 0))
            length = _length(frame)
            if length < 0 or start < 0:
                raise ValueError(f"a frame of stream {stream} with {length} bytes from {start}")
            end, high = start + length, self.highest.get(stream, 0)
            repeated += max(0, min(end, high) - start)
            self.highest[stream] = max(high, end)
            fin = bool(frame.get("fin", False))
            if fin:
                self.ended[stream] = end
            self.stream_bytes += max(0, end - max(start, high))
            found.append((stream, start, end, fin))
        return found, repeated


class _Connection:
    """A connection, as the events of one of its ends tell it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.first_ms: float | None = None
        self.sent = _Direction()
        self.came = _Direction()
        self.datagram_bytes = 1200  # RFC 9000 §14: the smallest maximum.
        self.outstanding: dict[str, dict[int, _Sent]] = {}
        self.acknowledged: dict[int, _Coverage] = {}
        self.in_order: dict[int, _Coverage] = {}
        self.acked_bytes = self.acked_wire_bytes = self.came_bytes = 0
        self.states = dict.fromkeys((*METRICS, "rtt_s"), math.nan)
        self.mode = "unknown"
        self.initial_cwnd = 0
        self.completed_ms: float | None = None
        self.rows: list[tuple[float, tuple[int, ...], tuple[int, ...], dict[str, float], str]] = []

    def see(self, event: Event) -> None:
        """Take an event, and note how everything stands after it."""
        self.first_ms = event.time_ms if self.first_ms is None else self.first_ms
        name, data = event.name, event.data
        rtt_s = math.nan
        if name == "packet_sent":
            self._packet(event, self.sent)
        elif name == "packet_received":
            self._packet(event, self.came)
        elif name in METRICS_UPDATED:
            for state, (key, factor) in METRICS.items():
                if key in data:
                    self.states[state] = _number(data[key], key) * factor
            if "latest_rtt" in data:
                rtt_s = _number(data["latest_rtt"], "latest_rtt") / 1e3
            if not self.initial_cwnd and "congestion_window" in data:
                self.initial_cwnd = int(data["congestion_window"])
        elif name == "congestion_state_updated":
            self.mode = str(data.get("new", self.mode))
        elif name == "mtu_updated":
            self.datagram_bytes = max(1, int(data.get("new", self.datagram_bytes)))
        else:
            return
        self._note(event.time_ms, rtt_s)

    def _packet(self, event: Event, way: _Direction) -> None:
        data = event.data
        header = data.get("header") or {}
        kind = str(header.get("packet_type", _SHORT))
        frames = data.get("frames") or ()
        length = _size(data)
        wire_bytes = way.count(event, length, kind == _SHORT, self.datagram_bytes)
        ranges, repeated = way.ranges(frames)
        way.repeat(repeated, self.datagram_bytes)
        if way is self.sent:
            number = header.get("packet_number")
            if number is not None:
                space = self.outstanding.setdefault(_SPACES.get(kind, _SHORT), {})
                space[int(number)] = _Sent(wire_bytes, ranges)
            return
        for stream, start, end, _ in ranges:
            self.came_bytes += self.in_order.setdefault(stream, _Coverage()).add(start, end)
        for frame in frames:
            if isinstance(frame, Mapping) and frame.get("frame_type") == "ack":
                self._acknowledge(event, _SPACES.get(kind, _SHORT), frame.get("acked_ranges") or ())

    def _acknowledge(self, event: Event, space: str, ranges: Iterable[Any]) -> None:
        waiting = self.outstanding.get(space, {})
        for one in ranges:
            # "[120,120]" and "[120]" are the same.
            low, high = int(one[0]), int(one[-1])
            if high - low < len(waiting):
                numbers = [number for number in range(low, high + 1) if number in waiting]
            else:
                numbers = [number for number in waiting if low <= number <= high]
            for number in numbers:
                packet = waiting.pop(number)
                self.acked_wire_bytes += packet.wire_bytes
                for stream, start, end, _ in packet.ranges:
                    coverage = self.acknowledged.setdefault(stream, _Coverage())
                    self.acked_bytes += coverage.add(start, end)
        if self.completed_ms is None and self.sent.stream_bytes and self._is_complete():
            self.completed_ms = event.time_ms

    def _is_complete(self) -> bool:
        """Every stream that was begun has ended, and all of it is acknowledged."""
        ended = self.sent.ended
        return self.sent.highest.keys() == ended.keys() and all(
            self.acknowledged.get(stream, _Coverage()).next >= end for stream, end in ended.items()
        )

    def _note(self, time_ms: float, rtt_s: float) -> None:
        sent, came = self.sent, self.came
        of_sender = (
            sent.wire_bytes, self.acked_wire_bytes, self.acked_bytes, sent.packets,
            sent.again_packets,
        )  # fmt: skip
        of_receiver = (
            came.wire_bytes, came.wire_bytes, self.came_bytes, came.packets, came.again_packets,
        )  # fmt: skip
        states = {**self.states, "rtt_s": rtt_s}
        if self.rows and self.rows[-1][0] == time_ms and math.isnan(rtt_s):
            # Of an instant the last counts, and each RTT.
            states["rtt_s"] = self.rows.pop()[3]["rtt_s"]
        self.rows.append((time_ms, of_sender, of_receiver, states, self.mode))

    @property
    def is_sender(self) -> bool:
        """Whether more data left than came."""
        return self.sent.stream_bytes >= self.came.stream_bytes


def of_qlog(file: BufferedIOBase, path: Path) -> Log:
    """Measure the connections of a qlog.

    Raises
    ------
    ValueError
        When it is none, or says of no packet or metric.
    """
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    for end in (".sender", ".receiver"):
        name = name.removesuffix(end)
    connections: dict[tuple[int, str], _Connection] = {}
    for count, event in enumerate(events(file, path.name, _DATA_MARKS)):
        if count >= MOST_EVENTS:
            raise ValueError(f"{path.name}: more than {MOST_EVENTS} events, the most that are read")
        key = (event.trace.number, event.group)
        if key not in connections:
            if len(connections) == _MOST_FLOWS:
                raise ValueError(f"{path.name}: more than {_MOST_FLOWS} connections")
            number = f" #{len(connections) + 1}" if connections else ""
            connections[key] = _Connection(f"{name[:240]}{number}")
        try:
            connections[key].see(event)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            at = f"at {event.time_ms} ms"
            message = f"{path.name}: `{event.name}` {at} is not as qlog has it ({error!r})"
            raise ValueError(message) from error
    told = [one for one in connections.values() if one.rows]
    if not told:
        raise ValueError(f"{path.name}: no packet and no metric of a connection is in it")
    return _log(told)


def _log(connections: list[_Connection]) -> Log:
    first_ms = min(one.first_ms or 0.0 for one in connections)
    # Our own count from the run's start, those of others from the connection's.
    origin_ms = first_ms if first_ms >= CALENDAR_MS or first_ms < 0 else 0.0
    last_ms = max(one.rows[-1][0] for one in connections)
    end_ns = max(round((last_ms - origin_ms) * 1e6) + 1, 1)
    # Between events everything stays as it is: each bin begins and ends with a sample of its own.
    step_ns = max(_INTERVAL_NS, -(-end_ns // (MOST_ROWS // len(connections) + 1)))
    bins = {*range(0, end_ns, step_ns), end_ns}
    timed = [[(_ns(row[0], origin_ms), row) for row in one.rows] for one in connections]
    # An RTT is a sample of its own, also if several are of one instant.
    moments = sorted([*bins, *(at for rows in timed for at in dict.fromkeys(at for at, _ in rows))])
    times = [0, *(at for at in moments if 0 < at <= end_ns)]
    flows, described = [], []
    for one, rows in zip(connections, timed, strict=True):
        flows.append(_seen(one, rows, times, origin_ms))
        described.append(_described(one, origin_ms, end_ns))
    made = spec(times, described)
    made["interval_ns"] = step_ns
    notes = [
        f"{one.name} is the log of an end that received: what was sent is what came"
        for one in connections
        if not one.is_sender
    ]
    return Log(made, times, flows, tuple(notes))


def _ns(time_ms: float, origin_ms: float) -> int:
    return round((time_ms - origin_ms) * 1e6)


def _described(one: _Connection, origin_ms: float, end_ns: int) -> dict[str, Any]:
    complete = one.is_sender and one.completed_ms is not None
    source = {"kind": "fixed", "bytes": one.sent.stream_bytes} if complete else {"kind": "bulk"}
    mss = min(max(one.datagram_bytes, 1), 65_507) + 28 - (HEADER_BYTES - 14)
    described = flow_spec(one.name, "quic", source, mss)
    # What a log tells of itself counts: without this table QUIC is sealed, as in a capture.
    described["quic"] = _QUIC | {"initial_mtu_bytes": one.datagram_bytes}
    described["start_ns"] = min(max(_ns(one.first_ms or 0.0, origin_ms), 0), end_ns - 1)
    return described


def _seen(
    one: _Connection, rows: list[tuple[int, Any]], times: list[int], origin_ms: float
) -> dict[str, Any]:
    at_ns = [at for at, _ in rows]
    counters: dict[str, list[float]] = {name: [] for name in _COUNTERS}
    states: dict[str, list[float]] = {name: [] for name in STATES}
    modes: list[str] = []
    known: set[str] = set()
    position = 0
    for time_ns in times:
        new = position < len(rows) and at_ns[position] <= time_ns
        while position < len(rows) and at_ns[position] <= time_ns:
            position += 1
        row = rows[position - 1][1] if position else None
        count = (row[1] if one.is_sender else row[2]) if row else (0,) * len(_COUNTERS)
        for name, value in zip(_COUNTERS, count, strict=True):
            counters[name].append(float(value))
        for name in STATES:
            states[name].append(row[3].get(name, math.nan) if row else math.nan)
        if not new:
            states["rtt_s"][-1] = math.nan
        if states["ssthresh_bytes"][-1] >= NO_THRESHOLD:
            states["ssthresh_bytes"][-1] = math.nan
        mode = row[4] if row and _MODE.fullmatch(row[4]) else "unknown"
        if mode not in known and len(known) >= _MOST_MODES:
            mode = "unknown"
        known.add(mode)
        modes.append(mode)
    told = seen(counters, states, len(times))
    told["mode"] = modes
    told["start_ns"] = max(_ns(one.first_ms or 0.0, origin_ms), 0)
    told["initial_cwnd_bytes"] = min(max(one.initial_cwnd, 0), 2**40)
    if one.is_sender and one.completed_ms is not None:
        told["completed_ns"] = _ns(one.completed_ms, origin_ms)
    return told


def _size(data: Mapping[str, Any]) -> int:
    """Give a packet's length: in `raw` since -02 of the events, in the header before."""
    raw, header = data.get("raw") or {}, data.get("header") or {}
    length = raw.get("length", header.get("packet_size", 0))
    if not 0 <= int(length) <= 65_535:
        raise ValueError(f"a packet of {length} bytes")
    return int(length)


def _length(frame: Mapping[str, Any]) -> int:
    """Give how many bytes of its stream a frame has: in `raw` since -09 of the events."""
    raw = frame.get("raw") or {}
    for there, key in ((frame, "length"), (raw, "payload_length"), (raw, "length")):
        if key in there:
            return int(there[key])
    return 0


def _number(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise ValueError(f"{key} of {value!r}")
    return float(value)
