"""Lone flows on the virtual kernel: each packet is that of the simulator, at the same time."""

from __future__ import annotations

from pathlib import Path

import pcapng
import pytest
from jostle.backends.kernel import KernelBackend
from jostle.backends.sim import SimBackend

from backends_kernel.kernel_specs import spec_of

# The simulator's timers expire as those of Linux; its random numbers are others.
SCENARIO = """
capture = true
duration = "{duration}"
[bottleneck]
rate = "{rate}"
queue = {{ kind = "drop_tail", limit = "{limit}" }}
[[flows]]
name = "one"
controller = "{controller}"
rtt = "{rtt}"
timers = {{ hz = 1000 }}
{more}
"""
BULK, FIXED = "", 'size = "5 MB"'
# The clock of User-Mode Linux has steps of 256 ns, and its timers are late by a few.
TOLERANCE_NS = 5_000

Seen = tuple[int, str, int, object]


def seen(path: Path) -> list[Seen]:
    """Time, direction, number and content of each packet at the sender, without the handshake."""
    packets = pcapng.read(path).packets
    syn = packets[0]
    rows: list[Seen] = []
    for packet in packets[3:]:
        time_ns = packet.time_ns - syn.time_ns
        if packet.source == syn.source:
            rows.append((time_ns, "data", packet.sequence - syn.sequence, packet.payload))
        else:
            begin = syn.sequence
            blocks = tuple((first - begin, end - begin) for first, end in packet.blocks)
            rows.append((time_ns, "ack", packet.acknowledgment - begin, blocks))
    return [(at, kind, number % 2**32, rest) for at, kind, number, rest in rows]


def in_order(rows: list[Seen]) -> list[Seen]:
    """Sort what one end sends and receives at one instant: captures differ in that."""
    at_once: list[Seen] = []
    last_ns = 0
    for at_ns, kind, number, rest in rows:
        last_ns = at_ns if at_ns - last_ns > TOLERANCE_NS else last_ns
        at_once.append((last_ns, kind, number, rest))
    return sorted(at_once, key=lambda row: row[:3])


@pytest.mark.parametrize(
    ("controller", "rate", "limit", "rtt", "more"),
    [
        ("reno", "1 Mbit/s", "2 BDP", "80 ms", BULK),
        ("cubic", "2 Mbit/s", "4 BDP", "40 ms", BULK),
        ("vegas", "1 Mbit/s", "1 BDP", "200 ms", BULK),
        ("westwood", "3 Mbit/s", "1.5 BDP", "33 ms", BULK),
        ("htcp", "5 Mbit/s", "2 BDP", "20 ms", FIXED),
        ("scalable", "8 Mbit/s", "0.5 BDP", "100 ms", FIXED),
        ("illinois", "10 Mbit/s", "1 BDP", "17 ms", FIXED),
    ],
)
def test_a_lone_flow_has_the_same_packets(
    *,
    backend: KernelBackend,
    simulator: SimBackend,
    controller: str,
    rate: str,
    limit: str,
    rtt: str,
    more: str,
) -> None:
    values = {"controller": controller, "rate": rate, "limit": limit, "rtt": rtt, "more": more}
    spec = spec_of(SCENARIO.format(duration="5 s", **values))
    # A record that is dropped removes its captures.
    records = [run.run(spec) for run in (backend, simulator)]
    theirs, ours = (in_order(seen(record.captures["one.sender"])) for record in records)
    differ = [(own, row) for own, row in zip(ours, theirs, strict=False) if own[1:] != row[1:]]
    assert not differ, f"of {len(ours)} and {len(theirs)} packets, first {differ[0]}"
    assert max(abs(own[0] - row[0]) for own, row in zip(ours, theirs, strict=True)) < 20_000
    assert len(ours) > 500
