"""Samples from qlog files of QUIC implementations.

A sender's qlog gives packets sent, retransmitted and acknowledged, RTTs and cwnd. A receiver's qlog
gives received packets. Names are those in draft-ietf-quic-qlog-quic-events, from -03 (used by our
logs) to the present version, and in draft-00 and draft-01 as picoquic and mvfst write them.
"""

from __future__ import annotations

from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.measurements.log_samples import (
    HEADER_BYTES,
    MOST_NS,
    MOST_ROWS,
    NS,
    STATES,
    Log,
    check_size,
    flow_samples,
    flow_spec,
    spec,
)
from jostle.measurements.qlog_connection import COLUMNS, COUNTERS, Connection
from jostle.measurements.unknown_values import Unknown
from jostle.quic.qlog_events import (
    CALENDAR_MS,
    MAX_BYTES,
    METRICS_UPDATED,
    NO_THRESHOLD,
    events,
)
from jostle.safe_io.untrusted_files import malformed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_EVENTS: Final = 4_000_000
"""Packets, ACKs and metrics of a file; each takes about 100 bytes of memory."""

_INTERVAL_NS: Final = NS // 10
_MOST_FLOWS: Final = 1000
_QUIC: Final = {
    "implementation": None, "initial_mtu_bytes": 1200, "mtu_discovery": False,
    "ack_frequency": None, "recovery": "rfc9002", "gso_packets": 1, "pacing": False, "streams": 1,
    "stream_receive_window_bytes": 0, "handshake": "1rtt", "crypto": "tls",
}  # fmt: skip
"""Required keys of a QUIC flow's specification, whose values are unknown."""
_DATA_MARKS: Final = (
    b"packet_sent", b"packet_received", b"congestion_state_updated", b"mtu_updated",
    *(name.encode() for name in METRICS_UPDATED),
)  # fmt: skip


def of_qlog(file: BufferedIOBase, path: Path, most_bytes: int = MAX_BYTES) -> Log:
    """Measure the connections of a qlog, of which at most `most_bytes` are read.

    Raises
    ------
    ValueError
        When it is not a qlog, or contains no packet or metric.
    """
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    for end in (".sender", ".receiver"):
        name = name.removesuffix(end)
    connections: dict[tuple[int, str], Connection] = {}
    for count, event in enumerate(events(file, path.name, _DATA_MARKS, most_bytes)):
        if count >= MOST_EVENTS:
            raise ValueError(f"{path.name}: more than {MOST_EVENTS} events, the most that are read")
        key = (event.trace.number, event.group)
        if key not in connections:
            if len(connections) == _MOST_FLOWS:
                raise ValueError(f"{path.name}: more than {_MOST_FLOWS} connections")
            number = f" #{len(connections) + 1}" if connections else ""
            connections[key] = Connection(f"{name[:240]}{number}")
        try:
            connections[key].see(event)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            at = f"at {event.time_ms} ms"
            message = f"{path.name}: `{event.name}` {at} is not as qlog has it ({malformed(error)})"
            raise ValueError(message) from error
    told = [one for one in connections.values() if one.has_rows]
    if not told:
        raise ValueError(f"{path.name}: no packet and no metric of a connection is in it")
    return _log(told)


def _log(connections: list[Connection]) -> Log:
    import numpy as np

    first_ms = min(one.first_ms or 0.0 for one in connections)
    # Our logs count from the start of the run, other logs from the start of the connection.
    origin_ms = first_ms if first_ms >= CALENDAR_MS or first_ms < 0 else 0.0
    if max(one.rows[:, 0].max() for one in connections) - origin_ms > MOST_NS / 1e6:
        raise ValueError("it is longer than a year")
    rows_ns = [np.rint((one.rows[:, 0] - origin_ms) * 1e6).astype(np.int64) for one in connections]
    end_ns = max(*(int(at_ns[-1]) + 1 for at_ns in rows_ns), 1)
    # Values are constant between events: each bin begins and ends with an additional sample.
    step_ns = max(_INTERVAL_NS, -(-end_ns // (MOST_ROWS // len(connections) + 1)))
    bins = np.append(np.arange(0, end_ns, step_ns), end_ns)
    # Each RTT is a separate sample, even if several have the same time.
    moments = np.sort(np.concatenate([bins, *map(np.unique, rows_ns)]))
    times = np.append(0, moments[(moments > 0) & (moments <= end_ns)])
    check_size(len(times), len(connections), MOST_EVENTS)
    flows, described = [], []
    for one, at_ns in zip(connections, rows_ns, strict=True):
        flows.append(_flow_samples_at(one, at_ns, times, origin_ms))
        described.append(_described(one, origin_ms, end_ns))
    made = spec(times.tolist(), described)
    made["interval_ns"] = step_ns
    notes = [
        f"{one.name} is the log of an end that received: what was sent is what came"
        for one in connections
        if not one.is_sender
    ]
    if end_ns <= 1:
        notes.append("all its events have the same time: its rates mean nothing")
    unknown: dict[str, list[Unknown]] = {
        one.name: ["retransmissions"] for one in connections if not one.is_sender
    }
    return Log(made, times.tolist(), flows, tuple(notes), unknown)


def _ns(time_ms: float, origin_ms: float) -> int:
    return round((time_ms - origin_ms) * 1e6)


def _described(one: Connection, origin_ms: float, end_ns: int) -> dict[str, Any]:
    complete = one.is_sender and one.completed_ms is not None
    source = {"kind": "fixed", "bytes": one.sent.stream_bytes} if complete else {"kind": "bulk"}
    mss = min(max(one.datagram_bytes, 1), 65_507) + 28 - (HEADER_BYTES - 14)
    described = flow_spec(one.name, "quic", source, mss)
    # With this table the log's own counters are used; without it, QUIC is treated as encrypted, as
    # in a capture.
    described["quic"] = _QUIC | {"initial_mtu_bytes": one.datagram_bytes}
    described["start_ns"] = min(max(_ns(one.first_ms or 0.0, origin_ms), 0), end_ns - 1)
    return described


def _flow_samples_at(
    one: Connection,
    at_ns: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    origin_ms: float,
) -> dict[str, Any]:
    """Return the latest row of a connection at each time."""
    import numpy as np

    # Before the first row, counters are 0 and states are unknown. Events count in the order of the
    # file, even if their times decrease.
    known = np.searchsorted(np.maximum.accumulate(at_ns), times, side="right")
    before = np.full((1, len(COLUMNS)), np.nan)
    before[0, [*range(1 + 2 * len(COUNTERS)), -1]] = 0
    rows = np.concatenate([before, one.rows])[known]
    columns = dict(zip(COLUMNS, rows.T, strict=True))
    end = "sender" if one.is_sender else "receiver"
    counters = {name: columns[f"{end}:{name}"] for name in COUNTERS}
    states = {name: columns[name] for name in STATES}
    states["rtt_s"] = np.where(np.diff(known, prepend=0) > 0, states["rtt_s"], np.nan)
    threshold = states["ssthresh_bytes"]
    states["ssthresh_bytes"] = np.where(threshold >= NO_THRESHOLD, np.nan, threshold)
    told = flow_samples(counters, states, len(times))
    modes = list(one.modes)
    told["mode"] = [modes[mode] for mode in columns["mode"].astype(int)]
    told["start_ns"] = max(_ns(one.first_ms or 0.0, origin_ms), 0)
    told["initial_cwnd_bytes"] = min(max(one.initial_cwnd, 0), 2**40)
    if one.is_sender and one.completed_ms is not None:
        told["completed_ns"] = _ns(one.completed_ms, origin_ms)
    return told
