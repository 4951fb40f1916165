"""Samples that the engine measures as a run, for every kind of log."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jostle.measurements.unknown_values import Unknown

NS: Final = 10**9
FULL_BYTES: Final = 1448
"""Payload of a full-sized segment if the log does not contain it."""
HEADER_BYTES: Final = 66
"""Headers of a segment with TCP time stamps, including Ethernet."""
STATES: Final = (
    "rtt_s", "srtt_s", "rtt_min_s", "cwnd_bytes", "ssthresh_bytes", "in_flight_bytes",
    "pacing_rate_bps",
)  # fmt: skip
PING_TIMEOUT_NS: Final = 10 * NS
"""Time after which a ping counts as lost: as long as `ping -c` waits for the last one."""

MOST_NS: Final = 366 * 86_400 * NS
"""Longest log; a longer one is damaged."""
MOST_COUNT: Final = 2**53
"""Largest number of bytes, packets or bit/s (9 PB): the largest exact integer in a double."""
MOST_ROWS: Final = 100_000
"""Largest number of bins of a series; longer logs get longer bins."""
MOST_FLOWS: Final = 1_000
MOST_SAMPLES: Final = 2_000_000
"""Times × flows of a log. Each takes about 200 bytes of memory."""
_MOST_LINES: Final = 2_000_000
"""Largest number of lines of a text file. A line of ping has about 50 bytes."""


@dataclass(frozen=True)
class Log:
    """A log in the format that the engine reads.

    Attributes
    ----------
    spec
        Substitute for the specification of a run, without the file's digest.
    times_ns
        Times of the samples.
    flows
        Samples of each flow, in the format of `crates/metrics/src/kernel_samples.rs`.
    notes
        Remarks for the user.
    unknown
        Flow → what the log does not contain of it.
    """

    spec: dict[str, Any]
    times_ns: list[int]
    flows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    unknown: Mapping[str, Collection[Unknown]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping: number from 0, time of the request, and RTT; None if there was no reply."""

    number: int
    sent_ns: int
    rtt_ns: int | None

    @property
    def known_ns(self) -> int:
        """Time at which the reply arrived or the ping counted as lost."""
        return self.sent_ns + (PING_TIMEOUT_NS if self.rtt_ns is None else self.rtt_ns)


def ping_flow(
    name: str, pings: Sequence[Ping], times: Sequence[int], payload: int, every_ns: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Convert pings to a flow: its specification and its samples.

    Parameters
    ----------
    pings
        In the order in which they were sent.
    times
        Times of the samples; the last one is after the last result.
    """
    # Results are reported in sending order: a reply waits for the result of an earlier lost ping.
    order, latest = [], 0
    for ping in pings:
        known_ns = ping.known_ns
        if ping.rtt_ns is None:
            # A ping that is lost at the end of the log is reported just before the last sample.
            known_ns = min(known_ns, times[-1] - 1)
            latest = max(latest, known_ns)
        order.append((max(known_ns, latest), ping.number, ping.rtt_ns))
    sent = [ping.sent_ns for ping in pings]
    came = sorted(ping.known_ns for ping in pings if ping.rtt_ns is not None)
    counts = [bisect_left(sent, at) for at in times]
    back = [bisect_right(came, at) for at in times]
    size = payload + 8 + 20 + 14
    counters = {
        "sent_bytes": [float(one * size) for one in counts],
        "received_bytes": [float(one * size) for one in back],
        "delivered_bytes": [float(one * payload) for one in back],
        "sent_packets": [float(one) for one in counts],
        "retransmitted_packets": [0.0] * len(times),
    }
    told = flow_samples(counters, empty_samples(len(times)), len(times))
    told["pings_ns"] = order
    source = {
        "kind": "ping", "bytes": payload, "every_ns": every_ns, "timeout_ns": PING_TIMEOUT_NS,
    }  # fmt: skip
    described = flow_spec(name, "udp", source, FULL_BYTES)
    described["controller"]["name"] = "none"
    return described, told


def ping_samples(name: str, pings: Sequence[Ping], payload: int, every_ns: int) -> Log:
    """Return a log of pings only."""
    end = max(ping.known_ns for ping in pings) + 1
    step_ns = max(every_ns, end // MOST_ROWS)
    times = [0, *range(step_ns, end, step_ns), end]
    described, told = ping_flow(name, pings, times, payload, every_ns)
    return Log(spec(times, [described]), times, [told])


def empty_samples(count: int) -> dict[str, list[float]]:
    """Return samples of states whose values are all unknown."""
    return {name: [math.nan] * count for name in STATES}


def flow_samples(
    counters: Mapping[str, Sequence[float]], states: Mapping[str, Sequence[float]], count: int
) -> dict[str, Any]:
    """Return the samples of a flow in the engine's format.

    Raises
    ------
    ValueError
        When a number is outside its valid range.
    """
    import numpy as np

    made = {name: np.array(values, dtype=float) for name, values in {**counters, **states}.items()}
    for name, values in made.items():
        most = MOST_NS / NS if name.endswith("_s") else MOST_COUNT
        there = values if name in counters else values[~np.isnan(values)]
        wrong = there[~((there >= 0) & (there <= most))]
        if wrong.size:
            raise ValueError(f"{name} of {wrong[0]:g}: 0 to {most:.3g} are read")
    return made | {
        "start_ns": 0,
        "completed_ns": None,
        "mode": ["unknown"] * count,
        "internals": {},
        "initial_cwnd_bytes": 0,
    }


def lines_of(text: str) -> list[str]:
    """Split a text into lines.

    Raises
    ------
    ValueError
        When there are too many.
    """
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise ValueError(f"{len(lines)} lines: at most {_MOST_LINES} are read")
    return lines


def check_size(times: int, flows: int, most_samples: int = MOST_SAMPLES) -> None:
    """Check the size of a log before its samples are created.

    Raises
    ------
    ValueError
        When it is too large.
    """
    if flows > MOST_FLOWS:
        raise ValueError(f"{flows} flows: at most {MOST_FLOWS} are read")
    if times * flows > most_samples:
        raise ValueError(
            f"{times} times of {flows} flows: at most {most_samples} samples are read — write logs "
            "of fewer flows"
        )


def check(times: Sequence[int]) -> None:
    """Check that the times of samples increase and cover at most a year.

    Raises
    ------
    ValueError
        When they do not.
    """
    ordered = all(before <= later for before, later in itertools.pairwise(times))
    if not ordered or times[-1] > MOST_NS:
        raise ValueError("its times decrease, or it is longer than a year")


def spec(times: Sequence[int], flows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a substitute for the specification of a run."""
    check(times)
    steps = [later - before for before, later in itertools.pairwise(times)]
    most_bins = min(MOST_ROWS, MOST_SAMPLES // len(flows))
    return {
        "seed": 0,
        "duration_ns": times[-1],
        "interval_ns": max(sorted(steps)[len(steps) // 2], times[-1] // most_bins, 1),
        "record": "none",
        "capture": None,
        "phases": [{"name": "overall", "from_ns": 0, "to_ns": times[-1]}],
        "links": [],
        "flows": flows,
    }


def flow_spec(name: str, transport: str, source: Mapping[str, Any], mss: int) -> dict[str, Any]:
    """Return a substitute for the specification of a flow."""
    return {
        "name": name,
        "group": None,
        "transport": transport,
        "controller": {"name": "unknown", "parameters": {}},
        "slow_start": None,
        "memory": None,
        "peer": 0,
        "path": [],
        "reverse_path": [],
        "base_delay_ns": 0,
        "after": None,
        "start_ns": 0,
        "stop_ns": None,
        "source": dict(source),
        "mtu_bytes": mss + HEADER_BYTES - 14,
        "pacing": False,
        "ecn": False,
        "initial_window_packets": 1,
        "initial_pacing": False,
        "receive_window_bytes": 0,
        "initial_receive_window_bytes": 0,
        "receive_window_autotuning": False,
        "gro": False,
        "linux": "6.1",
        "nic_rate_bps": None,
    }
