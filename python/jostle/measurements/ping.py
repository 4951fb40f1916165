"""Samples from the output of ping and irtt."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jostle.measurements.log_samples import NS, Log, Ping, lines_of, ping_samples

MOST_PINGS: Final = 1_000_000
"""Largest number of pings; the permitted file size has no room for more."""
_REPEATED_WITHIN: Final = 64
"""Number of recent echoes in which a repeated number is a duplicate."""
_MOST_LOST: Final = 100
"""Largest number of lost pings per reply; a log with more is damaged."""

# "64 bytes from 192.0.2.1: icmp_seq=3 ttl=57 time=12.3 ms", of iputils, BusyBox and BSD (for IPv6
# with a comma, "from 2001:db8::1, icmp_seq"); -D adds a time stamp in front.
_ECHO: Final = re.compile(
    r"^(?:\[(?P<at>\d+\.\d+)\] )?(?P<bytes>\d+) bytes from (?P<host>[^\s,]+?)[:,]?\s"
    # An atomic group: without it, the run time is quadratic in the length of a line.
    r"(?>.*?(?:icmp_)?seq=(?P<number>\d+)).*? time=(?P<ms>[\d.]+) ms"
)
_SENT: Final = re.compile(r"^(?P<sent>\d+) packets transmitted")


def of_ping(text: str) -> Log | None:
    """Parse the output of `ping`: number and RTT of each echo, and with `-D` its time."""
    echoes: list[tuple[int, float | None, int]] = []
    recent: deque[int] = deque(maxlen=_REPEATED_WITHIN)
    sent, payload, host = 0, 56, ""
    for line in lines_of(text):
        echo = _ECHO.match(line)
        if echo is not None:
            host = host or echo["host"]
            payload = max(int(echo["bytes"]) - 8, 1)
            at_s = float(echo["at"]) if echo["at"] else None
            # A second echo with the same number was duplicated in the network.
            number = int(echo["number"])
            if number not in recent:
                recent.append(number)
                echoes.append((number, at_s, _checked(round(float(echo["ms"]) * 1e6))))
        elif said := _SENT.match(line.strip()):
            sent = int(said["sent"])
    if not echoes:
        return None
    first = min(1, *(number for number, _, _ in echoes))
    count = max(sent, max(number for number, _, _ in echoes) - first + 1)
    _bounded(count)
    every_ns = _every(echoes)
    if count > _MOST_LOST * len(echoes) + _MOST_LOST**2:
        raise ValueError(f"{len(echoes)} replies to {count} pings: too few")
    known = {number - first: rtt_ns for number, _, rtt_ns in echoes}
    pings = [Ping(number, number * every_ns, known.get(number)) for number in range(count)]
    return ping_samples(f"ping {host}".strip()[:255], pings, payload, every_ns)


def _every(echoes: Sequence[tuple[int, float | None, int]]) -> int:
    """Return the interval between pings, from time stamps or else ping's default of 1 s."""
    timed = [(number, at_s - rtt_ns / NS) for number, at_s, rtt_ns in echoes if at_s is not None]
    if len(timed) < 2 or timed[-1][0] <= timed[0][0]:
        return NS
    passed_s = timed[-1][1] - timed[0][1]
    return max(round(passed_s / (timed[-1][0] - timed[0][0]) * NS), 1_000)


def of_irtt(document: Mapping[str, Any]) -> Log:
    """Convert the round trips of `irtt client -o` to samples.

    `lost` is the text `false`, or where the packet was lost if that is known. `delay.rtt` is in
    nanoseconds, without the processing time of the server. Send times are from the client's wall
    clock.
    """
    config = document["config"]
    every_ns = int(config["params"]["interval"])
    trips = sorted(document["round_trips"], key=lambda trip: int(trip["seqno"]))
    if not trips or every_ns < 1_000:
        raise ValueError("no round trips at intervals of at least 1 us")
    _bounded(len(trips))
    numbers = [int(trip["seqno"]) for trip in trips]
    if numbers[0] < 0 or len(set(numbers)) < len(numbers):
        raise ValueError("the numbers of round trips repeat, or are below 0")
    left = [_sent(trip, every_ns) for trip in trips]
    if any(later < before for before, later in itertools.pairwise(left)):
        raise ValueError("a round trip left before the one before it")
    if left[-1] - left[0] > 2 * every_ns * len(trips) + NS:
        raise ValueError("round trips are further apart than its interval says")
    pings = [
        Ping(at, sent_ns - left[0], _round_trip(trip))
        for at, (trip, sent_ns) in enumerate(zip(trips, left, strict=True))
    ]
    payload = max(int(config["params"].get("length") or 0), 1)
    name = f"irtt {config.get('host') or ''}".strip()
    return ping_samples(name[:255], pings, payload, every_ns)


def _sent(trip: Mapping[str, Any], every_ns: int) -> int:
    """Return the send time of a round trip from the client's wall clock, or else its number."""
    wall = trip.get("timestamps", {}).get("client", {}).get("send", {}).get("wall")
    return int(trip["seqno"]) * every_ns if wall is None else int(wall)


def _round_trip(trip: Mapping[str, Any]) -> int | None:
    if trip["lost"] not in ("false", False):
        return None
    return _checked(int(trip["delay"]["rtt"]))


def _checked(rtt_ns: int) -> int:
    if not 0 <= rtt_ns <= 3600 * NS:
        raise ValueError(f"a round trip of {rtt_ns} ns")
    return rtt_ns


def _bounded(count: int) -> None:
    if count > MOST_PINGS:
        raise ValueError(f"{count} pings: at most {MOST_PINGS} are read")
