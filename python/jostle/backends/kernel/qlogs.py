"""What a QUIC stack wrote of a connection: its RTT, its window, its losses.

Read loosely, because stacks write several drafts of qlog (draft-ietf-quic-qlog-main-schema and
draft-ietf-quic-qlog-quic-events, 0.3 and later): one JSON document, or one event per line, with or
without a record separator; names with or without the old categories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.foreign_files import GUEST_BYTES, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# RFC 7464.
_SEPARATOR = b"\x1e"
# What stands in every line of interest; parsing all packets would take minutes.
_MARKS = (b"metrics_updated", b"packet_lost", b"packets_lost", b"congestion_state_updated")
_MAX_LINE_BYTES = 1 << 20
# Above it a time in ms counts from 1970, below it from the connection's start: 2001.
_CALENDAR_MS = 1e12

# Quantity → name in qlog, and what a value there is multiplied by. Times are in ms.
_QUANTITIES = {
    "srtt_s": ("smoothed_rtt", 1e-3),
    "rtt_min_s": ("min_rtt", 1e-3),
    "cwnd_bytes": ("congestion_window", 1.0),
    "ssthresh_bytes": ("ssthresh", 1.0),
    "in_flight_bytes": ("bytes_in_flight", 1.0),
    "pacing_rate_bps": ("pacing_rate", 1.0),
}
# A threshold of a stack that has none.
_NO_THRESHOLD = 2.0**62


@dataclass(frozen=True)
class Log:
    """Events of a sender, in order.

    Attributes
    ----------
    time_s
        When each was, from the start of the connection; `since_1970` says if from there.
    values
        By quantity, a value per event: NaN where it has not been told so far.
    lost
        Packets lost so far.
    mode
        State of the congestion controller, empty as long as nothing was said.
    """

    time_s: Array
    values: Mapping[str, Array]
    lost: Array
    mode: list[str]
    since_1970: bool

    def at(self, time_s: NDArray[np.floating[Any]]) -> NDArray[np.intp]:
        """Position of the last event at or before each time; −1 where there is none."""
        import numpy as np

        return np.searchsorted(self.time_s, time_s, side="right") - 1


def read(folder: Path) -> Log | None:
    """Read the log of the connection that sent most: a server may have begun others.

    Returns
    -------
        None when nothing was written.

    Raises
    ------
    ValueError
        When what was written is not qlog; the text says where.
    """
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    largest = max(files, key=lambda path: path.lstat().st_size, default=None)
    return None if largest is None else _log(largest)


def _log(path: Path) -> Log:
    import numpy as np

    times: list[float] = []
    rows: list[list[float]] = []
    lost: list[int] = []
    modes: list[str] = []
    now_ms, count, mode = 0.0, 0, ""
    known = dict.fromkeys(_QUANTITIES, float("nan"))
    relative = None
    for event, reference_ms, deltas in _events(path):
        time_ms = float(event["time"])
        now_ms = now_ms + time_ms if deltas else reference_ms + time_ms
        name, data = _short(str(event.get("name", ""))), event.get("data", {})
        if name in ("metrics_updated", "recovery_metrics_updated"):
            for quantity, (key, factor) in _QUANTITIES.items():
                if key in data:
                    known[quantity] = float(data[key]) * factor
        elif name in ("packet_lost", "packets_lost"):
            # A probe for the path's MTU carries nothing, and is sent to be lost.
            count += not data.get("is_mtu_probe_packet", False)
        elif name == "congestion_state_updated":
            mode = str(data.get("new", mode))
        else:
            continue
        relative = now_ms < _CALENDAR_MS if relative is None else relative
        times.append(now_ms / 1e3)
        rows.append(list(known.values()))
        lost.append(count)
        modes.append(mode)
    table = np.array(rows, float).reshape(len(rows), len(_QUANTITIES)).T
    values = dict(zip(_QUANTITIES, table, strict=True))
    values["ssthresh_bytes"][values["ssthresh_bytes"] >= _NO_THRESHOLD] = np.nan
    return Log(
        np.maximum.accumulate(np.array(times, float)),
        values,
        np.array(lost, float),
        modes,
        since_1970=relative is False,
    )


def _events(path: Path) -> Iterator[tuple[Mapping[str, Any], float, bool]]:
    """Yield each event of interest, what its time counts from, and whether from the event before.

    Events whose times count from the one before are all of interest.
    """
    with open_regular(path) as file:
        if path.lstat().st_size > GUEST_BYTES:
            raise ValueError(f"{path.name}: a qlog of more than {GUEST_BYTES >> 30} GiB")
        first = file.readline(_MAX_LINE_BYTES).lstrip(_SEPARATOR)
        try:
            header = json.loads(first)
        except ValueError:
            # One document, maybe written over several lines.
            header = _json(first + file.read(), path.name, 1)
        traces = header.get("traces") or [header.get("trace", {})]
        reference_ms, deltas = _clock(traces[0].get("common_fields", {}))
        for event in traces[0].get("events", ()):
            yield event, reference_ms, deltas
        number = 1
        while line := file.readline(_MAX_LINE_BYTES):
            number += 1
            line = line.strip(_SEPARATOR + b"\r\n \0")
            if not line or not (deltas or any(mark in line for mark in _MARKS)):
                continue
            if not line.endswith(b"}"):
                # A program that was killed left half of its last line.
                continue
            yield _json(line, path.name, number), reference_ms, deltas


def _json(text: bytes, name: str, line: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}, line {line}: no qlog: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{name}, line {line}: no qlog: not an object")
    return found


def _clock(common: Mapping[str, Any]) -> tuple[float, bool]:
    """Tell what times count from, in ms, and whether each counts from the one before."""
    form = str(common.get("time_format", "relative"))
    reference = common.get("reference_time", 0)
    if isinstance(reference, Mapping):
        # Since draft 10 of the main schema: an epoch, and when it was on the calendar.
        reference = 0
    reference_ms = 0.0 if form == "absolute" else float(reference)
    return reference_ms, form in ("delta", "relative_to_previous_event")


def _short(name: str) -> str:
    return name.rpartition(":")[2]
