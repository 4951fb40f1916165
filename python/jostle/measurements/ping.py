"""Samples from the output of ping and irtt."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from jostle.measurements.log_samples import NS, Log, Ping, lines_of, ping_samples
from jostle.scenario.traces.ping_output import parse_ping

MOST_PINGS: Final = 1_000_000
"""Largest number of pings; the permitted file size has no room for more."""
_MOST_LOST: Final = 100
"""Largest number of lost pings per reply; a log with more is damaged."""


def of_ping(text: str) -> Log | None:
    """Convert the output of `ping` to samples: the RTT of each probe, or its loss."""
    log = parse_ping(lines_of(text), MOST_PINGS)
    if log is None:
        return None
    if log.sent > _MOST_LOST * len(log.replies) + _MOST_LOST**2:
        raise ValueError(f"{len(log.replies)} replies to {log.sent} pings: too few")
    every_ns = max(round(log.interval_s * NS), 1_000)
    rtt_ns = {at: _checked(round(reply.rtt_ms * 1e6)) for at, reply in log.replies.items()}
    pings = [Ping(at, at * every_ns, rtt_ns.get(at)) for at in range(log.sent)]
    return ping_samples(f"ping {log.host}".strip()[:255], pings, log.payload_bytes, every_ns)


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
    if len(trips) > MOST_PINGS:
        raise ValueError(f"{len(trips)} pings: at most {MOST_PINGS} are read")
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
