"""Samples from the output of repeated `ss -tin` with time stamps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jostle.measurements.log_samples import (
    FULL_BYTES,
    HEADER_BYTES,
    NS,
    Log,
    check_size,
    empty_samples,
    flow_samples,
    flow_spec,
    lines_of,
    spec,
)
from jostle.measurements.unknown_values import Unknown

_MOST_SAID: Final = 10_000
# The output of `date +%s.%N`; flent's script writes "Time: " in front.
_TIME: Final = re.compile(r"^(?:Time: )?(\d{9,10}(?:\.\d{1,9})?)$")
# "ESTAB 0 0 192.0.2.1:5201 198.51.100.9:50122"; without state if ss filtered by state.
_SOCKET: Final = re.compile(
    r"^(?:tcp\s+)?(?:[A-Z][A-Z0-9-]*\s+)?\d+\s+\d+\s+(\S+:\d+)\s+(\S+:\d+)(?P<rest>.*)$"
)
_NUMBER: Final = re.compile(r"\b([a-z_]+):(\d{1,15}(?:\.\d{1,9})?)(?:/(\d{1,15}))?")
_PACING: Final = re.compile(r"\bpacing_rate (\d{1,15}(?:\.\d{1,9})?)([KMGT]?)bps")
_CONTROLLER: Final = re.compile(
    r"^\s*(?:(?:ts|sack|ecn|ecnseen|fastopen)\s+)*([a-z][a-z0-9_]*)(?=\s)"
)
_SCALES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_DIRECTIONS: Final = (
    {
        "delivered": "bytes_acked", "sent": "bytes_sent", "packets": "data_segs_out",
        "again": "retrans_total", "arrived": "delivered",
    },
    # A receiver does not know retransmissions.
    {
        "delivered": "bytes_received", "sent": "bytes_received", "packets": "data_segs_in",
        "again": "", "arrived": "",
    },
)  # fmt: skip
_LEAST_PART: Final = 0.1
"""Share of the other direction below which a direction is not a flow, such as requests."""
_CUT: Final = "it ends in the middle of a line (measured up to there)"
_OF_RECEIVERS: Final = "the window and the retransmissions of a flow that is received are unknown"
_UNKNOWN_OF_RECEIVERS: Final[tuple[Unknown, ...]] = ("cwnd", "retransmissions")

Connection = tuple[str, str]
Said = dict[Connection, str]


def is_ss(text: str) -> bool:
    """Return whether a text looks like output of ss about connections."""
    return re.search(r"\bcwnd:\d", text) is not None


def of_ss(text: str) -> Log:
    """Return cwnd, RTT, and data sent, retransmitted and acknowledged between samples.

    For received data, only arrivals and the receiver's RTT estimate are known, which is based on
    time stamps. A direction with less than a tenth of the other direction's data is ignored.

    Raises
    ------
    ValueError
        When there is nothing to measure.
    """
    whole, is_cut = _up_to_cut(text)
    samples = _samples(whole)
    if len(samples) < 2:
        raise ValueError("fewer than two times: `date +%s.%N` before each `ss -tin` prints them")
    connections = list(dict.fromkeys(one for _, said in samples for one in said))
    check_size(len(samples), len(connections))
    times = [at - samples[0][0] for at, _ in samples]
    found = []
    for connection in connections:
        found += _flows(connection, [said.get(connection) for _, said in samples], times)
    if not found:
        raise ValueError("no connection sends or receives anything in it")
    flows, told = zip(*found, strict=True)
    received = [one["name"] for one in flows if one["controller"]["name"] == "unknown"]
    notes = ((_OF_RECEIVERS,) if received else ()) + ((_CUT,) if is_cut else ())
    unknown: dict[str, tuple[Unknown, ...]] = dict.fromkeys(received, _UNKNOWN_OF_RECEIVERS)
    return Log(spec(times, list(flows)), times, list(told), notes, unknown)


def _up_to_cut(text: str) -> tuple[str, bool]:
    """Return the text without a last line that was cut off, and whether there is one.

    A last line without a newline is complete if its last key ends an earlier line, too. Its last
    number may still lack digits: it counts only if it is the same in an earlier line.
    """
    head, _, last = text.rpartition("\n")
    if not last.strip():
        return text, False
    earlier = [line.rstrip() for line in lines_of(head)]
    if last.rstrip() in earlier:
        return text, False
    if _TIME.match(last.strip()):
        # All times have the same number of digits.
        is_whole = any(len(line) == len(last.rstrip()) for line in earlier if _TIME.match(line))
        return (text, False) if is_whole else (f"{head}\n", True)
    ends = {line.split()[-1] for line in earlier if is_ss(line)}
    number = last.split()[-1]
    if is_ss(last) and number in ends:
        return text, False
    key, colon, _ = number.partition(":")
    if is_ss(last) and colon and any(end.startswith(key + colon) for end in ends):
        return text[: len(text.rstrip()) - len(number)], False
    return f"{head}\n", True


def _samples(text: str) -> list[tuple[int, Said]]:
    """Return the output of ss at each time; in flent's logs the time follows its output."""
    lines = [line for line in lines_of(text) if line.strip()]
    before = bool(lines) and _TIME.match(lines[0].strip()) is not None
    samples: list[tuple[int, Said]] = []
    said: Said = {}
    last: Connection | None = None
    for line in lines:
        if time := _TIME.match(line.strip()):
            if not before and last is None and not said:
                continue
            if before:
                said = {}
            samples.append((round(float(time[1]) * NS), said))
            last = None
            if not before:
                said = {}
        elif line[0].isspace() and last is not None:
            said[last] += line
            if len(said[last]) > _MOST_SAID:
                raise ValueError(f"more than {_MOST_SAID} characters of a connection")
        elif socket := _SOCKET.match(line):
            last = (socket[1], socket[2])
            said[last] = socket["rest"]
    return samples


def _flows(
    connection: Connection, lines: Sequence[str | None], times: Sequence[int]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the directions of a connection that carry data."""
    known = [at for at, line in enumerate(lines) if line is not None and is_ss(line)]
    numbers = {at: _numbers(lines[at] or "") for at in known}
    # Counters of a connection that existed before the log start at its first sample.
    zero = numbers[known[0]] if known and known[0] == 0 else {}
    sizes = [
        int(max((one.get(key, 0.0) for one in numbers.values()), default=0)) or FULL_BYTES
        for key in ("mss", "rcvmss")
    ]
    if max(sizes) > 65_535:
        raise ValueError(f"a segment of {max(sizes)} bytes")
    there = [
        _counted(connection, numbers, zero, count=len(times), keys=keys, mss=mss)
        for keys, mss in zip(_DIRECTIONS, sizes, strict=True)
    ]
    most = max(one["delivered"][-1] for one in there)
    found = []
    for sends, counted, mss in zip((True, False), there, sizes, strict=True):
        # A direction with requests only is not a flow.
        if counted["delivered"][-1] < max(_LEAST_PART * most, 1):
            continue
        states = empty_samples(len(times))
        for at, now in numbers.items():
            (_note if sends else _note_received)(states, at, now, mss)
        ends = connection if sends else connection[::-1]
        described = flow_spec(" > ".join(ends)[:255], "tcp", {"kind": "bulk"}, mss)
        controller = _CONTROLLER.match(lines[known[0]] or "") if sends else None
        described["controller"]["name"] = controller[1] if controller else "unknown"
        # ss ran on one host: flows that it sends do not compete with flows that it receives.
        described["sender_host" if sends else "receiver_host"] = "host"
        told = flow_samples(_counters(counted, mss), states, len(times))
        described["start_ns"] = told["start_ns"] = times[max(known[0] - 1, 0)]
        found.append((described, told))
    return found


def _counted(
    connection: Connection,
    numbers: Mapping[int, Mapping[str, float]],
    zero: Mapping[str, float],
    *,
    count: int,
    keys: Mapping[str, str],
    mss: int,
) -> dict[str, list[float]]:
    """Return the counters of a direction at each sample, by their keys in ss."""
    counted = {name: [0.0] * count for name in keys}
    for at in range(count):
        if at not in numbers:
            for values in counted.values():
                values[at] = values[at - 1] if at else 0.0
            continue
        now = numbers[at]
        payload = _grown(now, zero, keys["delivered"], 0.0)
        whole = _grown(now, zero, keys["sent"], payload)
        new = {
            "delivered": payload,
            "sent": whole,
            "packets": _grown(now, zero, keys["packets"], math.ceil(whole / mss)),
            "again": _grown(now, zero, keys["again"], 0.0),
            # Packets that arrived, including packets after a gap, which are not yet acknowledged.
            "arrived": _grown(now, zero, keys["arrived"], math.ceil(payload / mss)) * mss,
        }
        for name, value in new.items():
            if value < (counted[name][at - 1] if at else 0.0):
                raise ValueError(f"{' > '.join(connection)}: what it counts decreases")
            counted[name][at] = value
    return counted


def _counters(counted: Mapping[str, Sequence[float]], mss: int) -> dict[str, Sequence[float]]:
    """Return counters in the engine's format: bytes on the wire, including headers."""
    headers = [HEADER_BYTES * packets for packets in counted["packets"]]
    return {
        "sent_bytes": [a + b for a, b in zip(counted["sent"], headers, strict=True)],
        "received_bytes": [a + math.ceil(a / mss) * HEADER_BYTES for a in counted["arrived"]],
        "delivered_bytes": counted["delivered"],
        "sent_packets": counted["packets"],
        "retransmitted_packets": counted["again"],
    }


def _numbers(line: str) -> dict[str, float]:
    """Return the `key:number` pairs; `retrans:2/17` is 2 now and 17 in total."""
    found: dict[str, float] = {}
    for key, value, total in _NUMBER.findall(line):
        found.setdefault(key, float(value))
        if total:
            found.setdefault(f"{key}_total", float(total))
    if pacing := _PACING.search(line):
        found["pacing_rate"] = float(pacing[1]) * _SCALES[pacing[2]]
    return found


def _grown(now: Mapping[str, float], zero: Mapping[str, float], key: str, other: float) -> float:
    """Return the growth of a counter; ss prints neither zeros nor fields of newer kernels."""
    return now[key] - zero.get(key, 0.0) if key in now else other


def _note(states: dict[str, list[float]], at: int, now: Mapping[str, float], mss: int) -> None:
    """Store the sender's states of a sample."""
    states["cwnd_bytes"][at] = now["cwnd"] * mss
    if now.get("rtt"):
        states["rtt_s"][at] = states["srtt_s"][at] = now["rtt"] / 1e3
    if now.get("minrtt"):
        states["rtt_min_s"][at] = now["minrtt"] / 1e3
    if "ssthresh" in now:
        states["ssthresh_bytes"][at] = now["ssthresh"] * mss
    # `tcp.h::tcp_packets_in_flight`: packets_out − (sacked_out + lost_out) + retrans_out.
    left = now.get("sacked", 0.0) + now.get("lost", 0.0) - now.get("retrans", 0.0)
    states["in_flight_bytes"][at] = max(now.get("unacked", 0.0) - left, 0.0) * mss
    if "pacing_rate" in now:
        states["pacing_rate_bps"][at] = now["pacing_rate"]


def _note_received(
    states: dict[str, list[float]], at: int, now: Mapping[str, float], _mss: int
) -> None:
    """Store the receiver's states: time from an ACK to the first segment that echoes it."""
    # With an absent cwnd the engine ignores the RTT. `Log.unknown` removes the 0.
    states["cwnd_bytes"][at] = 0.0
    if now.get("rcv_rtt"):
        states["rtt_s"][at] = states["srtt_s"][at] = now["rcv_rtt"] / 1e3
    # min_rtt of a receiver is from its handshake or a request, before any queue builds up.
    if now.get("minrtt"):
        states["rtt_min_s"][at] = now["minrtt"] / 1e3
