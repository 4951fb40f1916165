"""Parser for the output of ping: which probes were sent, and the RTTs of their replies."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["PingLog", "Reply", "SequenceNumbers", "parse_ping"]

_WRAP: Final = 1 << 16
"""Number of ICMP sequence numbers (16 bits)."""
_MOST_LATE: Final = 1 << 12
"""Replies that are fewer numbers behind are late; further behind, the number has wrapped."""
_INTERVAL_S: Final = 1.0
"""Default interval of ping."""
_PAYLOAD_BYTES: Final = 56
"""Default payload of ping."""
_ICMP_BYTES: Final = 8

# "64 bytes from 192.0.2.1: icmp_seq=3 ttl=57 time=12.3 ms", of iputils and BSD (for IPv6 with a
# comma, "from 2001:db8::1, icmp_seq"; BusyBox writes "seq="). -D adds a time stamp in front. Lost
# probes: "From 192.0.2.9 icmp_seq=3 Destination Host Unreachable", "no answer yet for icmp_seq=3"
# (-O), and of BSD "Request timeout for icmp_seq 3".
_PROBE: Final = re.compile(
    r"(?:\[(?P<at>\d+(?:\.\d+)?)\] )?"
    # Atomic group: without it, the match time is quadratic in the length of a line.
    r"(?>.*?\b(?:icmp_)?seq[= ](?P<number>\d+)\b)(?P<rest>.*)"
)
_TIME: Final = re.compile(r"\btime[=<](?P<ms>\d+(?:\.\d+)?) ms")
_FROM: Final = re.compile(r"\b(?P<bytes>\d+) bytes from (?P<host>[^\s,]+?)[:,]?\s")
# iputils says "20 received" and counts from 1; BSD and BusyBox say "20 packets received" and count
# from 0.
_SUMMARY: Final = re.compile(
    r"(?P<sent>\d+) packets transmitted(?:, (?P<received>\d+) (?P<from_0>packets )?received)?"
)


class SequenceNumbers:
    """Unwraps 16-bit sequence numbers in the order of arrival.

    From the first number that is larger, numbers remain unchanged, because they do not wrap.
    """

    def __init__(self) -> None:
        self._highest: int | None = None
        self._is_wrapping = True

    def unwrap(self, number: int) -> int:
        """Return a sequence number without wrapping."""
        self._is_wrapping = self._is_wrapping and number < _WRAP
        if self._highest is None or not self._is_wrapping:
            unwrapped = number
        else:
            behind = (self._highest - number) % _WRAP
            is_late = behind < _MOST_LATE and behind <= self._highest
            unwrapped = self._highest - behind + (0 if is_late else _WRAP)
        self._highest = max(self._highest or 0, unwrapped)
        return unwrapped


@dataclass(frozen=True, slots=True)
class Reply:
    """RTT of a probe, and with `ping -D` the arrival time of the reply."""

    rtt_ms: float
    at_s: float | None


@dataclass(frozen=True)
class PingLog:
    """Probes of a log.

    Attributes
    ----------
    host
        Host of the first reply; "" if no line names it.
    payload_bytes
        Payload of a probe.
    sent
        Number of probes.
    replies
        First reply by position of its probe, from 0 and ascending. Other probes were lost.
    interval_s
        Time between probes: the median by time stamps, or else ping's default.
    is_timed
        Whether the interval is from time stamps.
    """

    host: str
    payload_bytes: int
    sent: int
    replies: dict[int, Reply]
    interval_s: float
    is_timed: bool


@dataclass(frozen=True)
class _Summary:
    """Numbers of ping's last lines, and the number of its first probe."""

    sent: int
    received: int
    first: int


def parse_ping(lines: Sequence[str], most: int) -> PingLog | None:
    """Parse the output of `ping` of iputils, BSD or BusyBox.

    Parameters
    ----------
    lines
        Lines of the output.
    most
        Largest number of probes.

    Returns
    -------
    PingLog or None
        None without a reply.

    Raises
    ------
    ValueError
        If there are too many probes, time stamps do not grow, or a second run of ping follows.
    """
    replies: dict[int, Reply] = {}
    numbers, lowest, highest = SequenceNumbers(), -1, -1
    host, payload_bytes, summary = "", _PAYLOAD_BYTES, None
    for at, line in enumerate(lines):
        probe = _PROBE.match(line.strip())
        if probe is None:
            if replies and line.startswith("PING"):
                raise ValueError(f"line {at + 1}: a second run of ping — write a file for each")
            summary = _summary_of(line) or summary
            continue
        number = numbers.unwrap(int(probe["number"]))
        lowest, highest = min(lowest, number) if lowest >= 0 else number, max(highest, number)
        time = _TIME.search(probe["rest"])
        if time is None:
            continue
        if source := _FROM.search(line):
            host, payload_bytes = host or source["host"], int(source["bytes"]) - _ICMP_BYTES
        # A second reply with the same number was duplicated in the network.
        at_s = float(probe["at"]) if probe["at"] else None
        replies.setdefault(number, Reply(float(time["ms"]), at_s))
    if not replies:
        return None
    first, sent = _sent_of(lowest, highest, len(replies), summary)
    if sent > most:
        raise ValueError(f"{sent} pings: at most {most} are read")
    replies = {number - first: replies[number] for number in sorted(replies)}
    interval_s = _interval_s(replies)
    every_s = _INTERVAL_S if interval_s is None else interval_s
    return PingLog(host, max(payload_bytes, 1), sent, replies, every_s, interval_s is not None)


def _summary_of(line: str) -> _Summary | None:
    found = _SUMMARY.match(line.strip())
    if found is None:
        return None
    return _Summary(int(found["sent"]), int(found["received"] or 0), 0 if found["from_0"] else 1)


def _sent_of(
    lowest: int, highest: int, reply_count: int, summary: _Summary | None
) -> tuple[int, int]:
    """Return the number of the first probe and the number of probes.

    Without a summary, the lines show which probes were sent. A summary also counts probes without a
    line. If it counts more replies than the log contains, the start of the log was cut off, maybe
    by whole turns of the sequence number.
    """
    if summary is None:
        return lowest, highest - lowest + 1
    first = min(lowest, summary.first)
    end = first + summary.sent
    if reply_count < summary.received:
        turns = max(end - 1 - highest, 0) // _WRAP
        return lowest, max(end - turns * _WRAP, highest + 1) - lowest
    return first, max(end, highest + 1) - first


def _interval_s(replies: dict[int, Reply]) -> float | None:
    """Return the median interval between probes by time stamps, if the log contains them."""
    left = [(n, one.at_s - one.rtt_ms / 1e3) for n, one in replies.items() if one.at_s is not None]
    if len(left) < 2:
        return None
    interval_s = statistics.median(
        (later_s - before_s) / (later - before)
        for (before, before_s), (later, later_s) in itertools.pairwise(left)
    )
    if not interval_s > 0:
        raise ValueError("its time stamps do not grow")
    return interval_s
