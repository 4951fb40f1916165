"""What other tools wrote down, as samples that the engine measures: iperf3's JSON, ping's lines.

Nothing is made up: what a log does not say is absent.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.foreign_files import TRACE_BYTES, read_bytes

_NS: Final = 10**9
_FULL_BYTES: Final = 1448
"""Payload of a full segment where the log does not say what it was."""
_HEADER_BYTES: Final = 66
_STATES: Final = (
    "rtt_s", "srtt_s", "rtt_min_s", "cwnd_bytes", "ssthresh_bytes", "in_flight_bytes",
    "pacing_rate_bps",
)  # fmt: skip
_PING_TIMEOUT_NS: Final = 10 * _NS

# "64 bytes from 192.0.2.1: icmp_seq=3 ttl=57 time=12.3 ms", of iputils, BusyBox and BSD; with -D a
# time stamp in front.
_ECHO: Final = re.compile(
    r"^(?:\[(?P<at>\d+\.\d+)\] )?(?P<bytes>\d+) bytes from (?P<host>[^\s:]+(?::[0-9a-f:]+)?).*?"
    r"(?:icmp_)?seq=(?P<number>\d+).*? time=(?P<ms>[\d.]+) ms"
)
_SENT: Final = re.compile(r"^(?P<sent>\d+) packets transmitted")


@dataclass(frozen=True)
class Log:
    """A log as the engine takes it.

    Attributes
    ----------
    spec
        What stands for the specification of a run, without the file's digest.
    times_ns
        Times of the samples.
    flows
        What was seen of each flow, in the words of `crates/record/src/samples.rs`.
    """

    spec: dict[str, Any]
    times_ns: list[int]
    flows: list[dict[str, Any]]


def is_log(path: Path) -> bool:
    """Whether a file is a log by its name: captures are found by their first bytes."""
    return path.suffix in {".json", ".txt", ".log"}


def read(path: Path) -> Log:
    """Read a log.

    Raises
    ------
    InputError
        When it is none of a known kind, or says nothing that can be measured.
    """
    try:
        text = read_bytes(path, TRACE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: no JSON: {error}") from error
        try:
            return _iperf3(document)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise InputError(f"{path}: not what iperf3 --json writes ({error!r})") from error
    found = _ping(text)
    if found is None:
        raise InputError(f"{path}: neither iperf3's JSON nor the lines of ping")
    return found


def _iperf3(document: Mapping[str, Any]) -> Log:
    """Take the intervals of `iperf3 --json`, of TCP.

    Its `bytes` are what the sender's application wrote (or the receiver's read); `snd_cwnd`, `rtt`
    (in microseconds, smoothed) and `retransmits` are the sender's TCP_INFO at an interval's end.
    """
    start = document["start"]
    if start["test_start"]["protocol"] != "TCP":
        raise ValueError("a test of TCP alone can be measured")
    mss = int(start.get("tcp_mss_default") or start.get("tcp_mss") or _FULL_BYTES)
    sockets = [connected["socket"] for connected in start["connected"]]
    intervals = document["intervals"]
    if not intervals:
        raise ValueError("it has no intervals")
    times = [0, *(round(max(s["end"] for s in one["streams"]) * _NS) for one in intervals)]
    flows, specs = [], []
    for number, socket in enumerate(sockets):
        streams = [_stream_of(one["streams"], socket) for one in intervals]
        flows.append(_iperf3_flow(streams, mss))
        name = "iperf3" if len(sockets) == 1 else f"iperf3-{number + 1}"
        specs.append(_flow_spec(name, "tcp", {"kind": "bulk"}, mss))
    controller = document.get("end", {}).get("sender_tcp_congestion")
    for spec in specs:
        spec["controller"]["name"] = str(controller or "unknown")
    return Log(_spec(times, specs), times, flows)


def _stream_of(streams: Sequence[Mapping[str, Any]], socket: object) -> Mapping[str, Any]:
    return next(stream for stream in streams if stream["socket"] == socket)


def _iperf3_flow(streams: Sequence[Mapping[str, Any]], mss: int) -> dict[str, Any]:
    sent, again = [0.0], [0.0]
    for stream in streams:
        sent.append(sent[-1] + float(stream["bytes"]))
        again.append(again[-1] + float(stream.get("retransmits") or 0))
    knows_itself = any("snd_cwnd" in stream for stream in streams)
    packets = [math.ceil(payload / mss) + more for payload, more in zip(sent, again, strict=True)]
    wire = [
        payload + count * _HEADER_BYTES + more * mss
        for payload, count, more in zip(sent, packets, again, strict=True)
    ]
    state = {name: [math.nan] * len(sent) for name in _STATES}
    for at, stream in enumerate(streams, start=1):
        if knows_itself:
            rtt_s = float(stream["rtt"]) / 1e6 if stream.get("rtt") else math.nan
            state["rtt_s"][at] = state["srtt_s"][at] = rtt_s
            state["cwnd_bytes"][at] = float(stream["snd_cwnd"])
    counters = {
        "sent_bytes": wire,
        "received_bytes": [payload + math.ceil(payload / mss) * _HEADER_BYTES for payload in sent],
        "delivered_bytes": sent,
        "sent_packets": packets,
        "retransmitted_packets": again,
    }
    return _seen(counters, state, len(sent))


def _ping(text: str) -> Log | None:
    """Take the lines of `ping`: each echo's number and round trip; with `-D` its time."""
    echoes: list[tuple[int, float | None, int]] = []
    sent, payload, host = 0, 56, ""
    for line in text.splitlines():
        echo = _ECHO.match(line)
        if echo is not None:
            host = host or echo["host"]
            payload = max(int(echo["bytes"]) - 8, 1)
            at_s = float(echo["at"]) if echo["at"] else None
            # A second echo of the same number is a copy that the network made.
            number = int(echo["number"])
            if number not in {known for known, _, _ in echoes[-64:]}:
                echoes.append((number, at_s, round(float(echo["ms"]) * 1e6)))
        elif said := _SENT.match(line.strip()):
            sent = int(said["sent"])
    if not echoes:
        return None
    first = min(number for number, _, _ in echoes)
    first = min(first, 1)
    every_ns = _every(echoes)
    count = max(sent, max(number for number, _, _ in echoes) - first + 1)
    known = {number - first: rtt_ns for number, _, rtt_ns in echoes}
    pings = []
    for number in range(count):
        rtt_ns = known.get(number)
        came = number * every_ns + (_PING_TIMEOUT_NS if rtt_ns is None else rtt_ns)
        pings.append((came, number, rtt_ns))
    # One that waits for a lost one is told after it, as a sender knows them in their order.
    order, latest = [], 0
    for came, number, rtt_ns in pings:
        latest = max(latest, came) if rtt_ns is None else latest
        order.append((max(came, latest), number, rtt_ns))
    end = max(came for came, _, _ in order) + 1
    times = [0, *range(every_ns, end, every_ns), end]
    counts = [min(-(-at // every_ns) if at < end else count, count) for at in times]
    arrived = [sum(came <= at and rtt is not None for came, _, rtt in order) for at in (0, end)]
    back = [float(min(one, arrived[1])) for one in counts]
    size = payload + 8 + 20 + 14
    counters = {
        "sent_bytes": [float(one * size) for one in counts],
        "received_bytes": [one * size for one in back],
        "delivered_bytes": [one * payload for one in back],
        "sent_packets": [float(one) for one in counts],
        "retransmitted_packets": [0.0] * len(times),
    }
    seen = _seen(counters, {name: [math.nan] * len(times) for name in _STATES}, len(times))
    seen["pings_ns"] = order
    source = {
        "kind": "ping", "bytes": payload, "every_ns": every_ns, "timeout_ns": _PING_TIMEOUT_NS,
    }  # fmt: skip
    spec = _flow_spec(f"ping {host}".strip(), "udp", source, _FULL_BYTES)
    spec["controller"]["name"] = "none"
    return Log(_spec(times, [spec]), times, [seen])


def _every(echoes: Sequence[tuple[int, float | None, int]]) -> int:
    """Time from one ping to the next: by their time stamps, or ping's own second."""
    timed = [(number, at_s - rtt_ns / _NS) for number, at_s, rtt_ns in echoes if at_s is not None]
    if len(timed) < 2 or timed[-1][0] <= timed[0][0]:
        return _NS
    passed_s = timed[-1][1] - timed[0][1]
    return max(round(passed_s / (timed[-1][0] - timed[0][0]) * _NS), 1_000)


def _seen(
    counters: Mapping[str, Sequence[float]], states: Mapping[str, Sequence[float]], count: int
) -> dict[str, Any]:
    import numpy as np

    made = {name: np.array(values, dtype=float) for name, values in {**counters, **states}.items()}
    return made | {
        "start_ns": 0,
        "completed_ns": None,
        "responses_ns": [],
        "mode": ["unknown"] * count,
        "internals": {},
        "initial_cwnd_bytes": 0,
    }


def _spec(times: Sequence[int], flows: list[dict[str, Any]]) -> dict[str, Any]:
    steps = [later - before for before, later in itertools.pairwise(times)]
    return {
        "seed": 0,
        "duration_ns": times[-1],
        "interval_ns": sorted(steps)[len(steps) // 2],
        "trace": "none",
        "capture": None,
        "phases": [{"name": "overall", "from_ns": 0, "to_ns": times[-1]}],
        "links": [],
        "flows": flows,
    }


def _flow_spec(name: str, transport: str, source: Mapping[str, Any], mss: int) -> dict[str, Any]:
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
        "access_delay_ns": 0,
        "after": None,
        "start_ns": 0,
        "stop_ns": None,
        "source": dict(source),
        "mtu_bytes": mss + _HEADER_BYTES - 14,
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
