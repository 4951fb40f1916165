"""A QUIC connection, as the events that one of its ends logged tell it."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jostle.measurements.log_samples import STATES
from jostle.quic.qlog_events import METRICS, METRICS_UPDATED, OTHER_METRICS, Event

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["COLUMNS", "COUNTERS", "Connection"]

PACKET_BYTES: Final = 42
"""Headers of UDP, IPv4 and Ethernet, which are in no log."""
COUNTERS: Final = (
    "sent_bytes", "received_bytes", "delivered_bytes", "sent_packets", "retransmitted_packets",
)  # fmt: skip
COLUMNS: Final = (
    "time_ms", *(f"{end}:{name}" for end in ("sender", "receiver") for name in COUNTERS), *STATES,
    "mode",
)  # fmt: skip
"""Columns of the rows of a connection. A mode is its position in `Connection.modes`."""
_RTT_FROM_END: Final = COLUMNS.index("rtt_s") - len(COLUMNS)

_MOST_OUTSTANDING: Final = 65_536
"""Packets that wait for an ACK; of more, the oldest ones count as lost."""
_MOST_GAPS: Final = 65_536
"""Of a stream."""
_SPACES: Final = {"initial": "initial", "handshake": "handshake"}
"""0-RTT and 1-RTT share their numbers (RFC 9000 §12.3)."""
_SHORT: Final = "1RTT"
_MODE: Final = re.compile(r"[a-z][a-z_]{0,39}")
_MOST_MODES: Final = 40


class _Coverage:
    """Ranges of a stream that arrived: in order from its first byte, and beyond gaps."""

    __slots__ = ("_beyond", "next")

    def __init__(self) -> None:
        self.next = 0
        self._beyond: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> int:
        """Put a range in; return how many bytes more are in order."""
        before = self.next
        if start > before:
            insort(self._beyond, (start, end))
            if len(self._beyond) > _MOST_GAPS:
                raise ValueError(f"a stream with more than {_MOST_GAPS} gaps")
            return 0
        self.next = max(before, end)
        done = 0
        while done < len(self._beyond) and self._beyond[done][0] <= self.next:
            self.next = max(self.next, self._beyond[done][1])
            done += 1
        del self._beyond[:done]
        return self.next - before


@dataclass(slots=True)
class _Sent:
    """A packet that is not acknowledged yet."""

    wire_bytes: int
    ranges: list[tuple[int, int, int]]


class _Outstanding:
    """Packets of a number space that are not acknowledged yet."""

    def __init__(self) -> None:
        self._packets: dict[int, _Sent] = {}
        self._numbers: list[int] = []

    def add(self, number: int, packet: _Sent) -> None:
        """Put a packet in."""
        if number not in self._packets:
            insort(self._numbers, number)
        self._packets[number] = packet
        if len(self._numbers) > _MOST_OUTSTANDING:
            del self._packets[self._numbers.pop(0)]

    def take(self, low: int, high: int) -> list[_Sent]:
        """Take out the packets with these numbers."""
        first, last = bisect_left(self._numbers, low), bisect_right(self._numbers, high)
        taken = self._numbers[first:last]
        del self._numbers[first:last]
        return [self._packets.pop(number) for number in taken]


@dataclass
class _Direction:
    """Packets and stream bytes of one direction."""

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
        """Count packets of an instant as retransmitted, as many as the old bytes fill."""
        if repeated:
            before = min(-(-self.repeated // full_bytes), self.full)
            self.repeated += repeated
            self.again_packets += min(-(-self.repeated // full_bytes), self.full) - before

    def ranges(self, frames: Iterable[Any]) -> tuple[list[tuple[int, int, int]], int]:
        """Take the bytes of streams in a packet, and how many of them were sent before."""
        found, repeated = [], 0
        for frame in frames:
            if not isinstance(frame, Mapping) or frame.get("frame_type") != "stream":
                continue
            # Picoquic's logs of draft-00 have `id`.
            stream = int(frame.get("stream_id", frame.get("id", 0)))
            start = int(frame.get("offset", 0))
            length = _length(frame)
            if length < 0 or start < 0:
                raise ValueError(f"a frame of stream {stream} with {length} bytes from {start}")
            end, high = start + length, self.highest.get(stream, 0)
            repeated += max(0, min(end, high) - start)
            self.highest[stream] = max(high, end)
            if frame.get("fin", False):
                self.ended[stream] = end
            self.stream_bytes += max(0, end - max(start, high))
            found.append((stream, start, end))
        return found, repeated


class Connection:
    """A connection, as the events of one of its ends tell it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.first_ms: float | None = None
        self.sent = _Direction()
        self.came = _Direction()
        self.datagram_bytes = 1200  # RFC 9000 §14: the smallest maximum.
        self.outstanding: dict[str, _Outstanding] = {}
        self.acknowledged: dict[int, _Coverage] = {}
        self.in_order: dict[int, _Coverage] = {}
        # Streams of which the end, or data before it, is not acknowledged yet.
        self.unfinished: set[int] = set()
        self.acked_bytes = self.acked_wire_bytes = self.came_bytes = 0
        self.states = dict.fromkeys(STATES, math.nan)
        self.modes = {"unknown": 0}
        self.mode = 0
        self.initial_cwnd = 0
        self.completed_ms: float | None = None
        self._rows = array("d")

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
            data = {OTHER_METRICS.get(key, key): value for key, value in data.items()}
            for state, (key, factor) in METRICS.items():
                if key in data:
                    unit = event.unit_ms if state.endswith("_s") else 1.0
                    self.states[state] = _number(data[key], key) * factor * unit
            if "latest_rtt" in data:
                rtt_s = _number(data["latest_rtt"], "latest_rtt") / 1e3 * event.unit_ms
            if not self.initial_cwnd and "congestion_window" in data:
                self.initial_cwnd = int(data["congestion_window"])
        elif name == "congestion_state_updated":
            self._change_mode(str(data.get("new", "")))
        elif name == "mtu_updated":
            self.datagram_bytes = max(1, int(data.get("new", self.datagram_bytes)))
        else:
            return
        self._note(event.time_ms, rtt_s)

    def _packet(self, event: Event, way: _Direction) -> None:
        data = event.data
        header = data.get("header") or {}
        # Draft-00 and draft-01 have the type next to the header.
        kind = str(header.get("packet_type") or data.get("packet_type", _SHORT))
        frames = data.get("frames") or ()
        length = _size(data)
        wire_bytes = way.count(event, length, kind == _SHORT, self.datagram_bytes)
        ranges, repeated = way.ranges(frames)
        way.repeat(repeated, self.datagram_bytes)
        if way is self.sent:
            number = header.get("packet_number")
            if number is not None:
                space = self.outstanding.setdefault(_SPACES.get(kind, _SHORT), _Outstanding())
                space.add(int(number), _Sent(wire_bytes, ranges))
            for stream, _, _ in ranges:
                self._update_unfinished(stream)
            return
        for stream, start, end in ranges:
            self.came_bytes += self.in_order.setdefault(stream, _Coverage()).add(start, end)
        for frame in frames:
            if isinstance(frame, Mapping) and frame.get("frame_type") == "ack":
                self._acknowledge(event, _SPACES.get(kind, _SHORT), frame.get("acked_ranges") or ())

    def _acknowledge(self, event: Event, space: str, ranges: Iterable[Any]) -> None:
        waiting = self.outstanding.get(space, _Outstanding())
        for one in ranges:
            # "[120,120]" and "[120]" are the same.
            for packet in waiting.take(int(one[0]), int(one[-1])):
                self.acked_wire_bytes += packet.wire_bytes
                for stream, start, end in packet.ranges:
                    coverage = self.acknowledged.setdefault(stream, _Coverage())
                    self.acked_bytes += coverage.add(start, end)
                    self._update_unfinished(stream)
        if self.completed_ms is None and self.sent.stream_bytes and not self.unfinished:
            self.completed_ms = event.time_ms

    def _update_unfinished(self, stream: int) -> None:
        """Note whether a stream has ended and is acknowledged completely."""
        end = self.sent.ended.get(stream)
        coverage = self.acknowledged.get(stream)
        known = 0 if coverage is None else coverage.next
        if end is not None and known >= end:
            self.unfinished.discard(stream)
        else:
            self.unfinished.add(stream)

    def _change_mode(self, name: str) -> None:
        if not _MODE.fullmatch(name) or len(self.modes) > _MOST_MODES:
            name = name if name in self.modes else "unknown"
        self.mode = self.modes.setdefault(name, len(self.modes))

    def _note(self, time_ms: float, rtt_s: float) -> None:
        sent, came, rows = self.sent, self.came, self._rows
        if rows and rows[-len(COLUMNS)] == time_ms and math.isnan(rtt_s):
            # Of an instant the last counts, and each RTT.
            rtt_s = rows[_RTT_FROM_END]
            del rows[-len(COLUMNS) :]
        self.states["rtt_s"] = rtt_s
        rows.extend((
            time_ms,
            *(sent.wire_bytes, self.acked_wire_bytes, self.acked_bytes),
            *(sent.packets, sent.again_packets),
            *(came.wire_bytes, came.wire_bytes, self.came_bytes),
            *(came.packets, came.again_packets),
            *self.states.values(),
            self.mode,
        ))  # fmt: skip

    @property
    def has_rows(self) -> bool:
        """Whether anything was said of it."""
        return len(self._rows) > 0

    @property
    def rows(self) -> npt.NDArray[np.float64]:
        """A row per instant, and per RTT: how everything was after it, in `COLUMNS`."""
        import numpy as np

        return np.frombuffer(self._rows, dtype=float).reshape(-1, len(COLUMNS))

    @property
    def is_sender(self) -> bool:
        """Whether more data left than came; of packets without frames, more bytes of packets."""
        sent, came = self.sent, self.came
        return (sent.stream_bytes, sent.wire_bytes) >= (came.stream_bytes, came.wire_bytes)


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
    if isinstance(value, str):
        # Draft-00 and draft-01 may have numbers as text.
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        raise ValueError(f"{key} of {value!r}")
    return float(value)
