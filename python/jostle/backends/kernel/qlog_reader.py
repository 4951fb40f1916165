"""Reads RTT, cwnd and losses of a connection from the qlog of an external QUIC implementation.

Supports draft-ietf-quic-qlog-quic-events from 0.3 on, with or without the old event categories.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.quic.qlog_events import (
    CALENDAR_MS,
    METRICS,
    METRICS_UPDATED,
    NO_THRESHOLD,
    Event,
    events,
)
from jostle.safe_io.untrusted_files import GUEST_BYTES, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Names in all relevant lines. Parsing all packet events would take minutes.
_MARKS = (b"metrics_updated", b"packet_lost", b"packets_lost", b"congestion_state_updated")


@dataclass(frozen=True)
class Log:
    """Events of a sender, in order.

    Attributes
    ----------
    time_s
        Time of each event since the start of the connection, or since 1970 if `since_1970`.
    values
        Quantity → value at each event; NaN before its first report.
    lost
        Packets lost so far.
    mode
        State of the congestion controller; empty before its first report.
    """

    time_s: Array
    values: Mapping[str, Array]
    lost: Array
    mode: list[str]
    since_1970: bool

    def at(self, time_s: NDArray[np.floating[Any]]) -> NDArray[np.intp]:
        """Return the index of the last event at or before each time; −1 if there is none."""
        import numpy as np

        return np.searchsorted(self.time_s, time_s, side="right") - 1


def read(folder: Path) -> Log | None:
    """Read the largest log, because a server may have started other connections.

    Returns
    -------
        None if there is no log.

    Raises
    ------
    ValueError
        If the log is not valid qlog. The message gives the location.
    """
    # A program may have created links and folders, which are ignored.
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    sizes = {path: path.lstat() for path in files}
    logs = [path for path in files if stat.S_ISREG(sizes[path].st_mode)]
    largest = max(logs, key=lambda path: sizes[path].st_size, default=None)
    return None if largest is None else _log(largest)


def _log(path: Path) -> Log:
    import numpy as np

    times: list[float] = []
    rows: list[list[float]] = []
    lost: list[int] = []
    modes: list[str] = []
    count, mode = 0, ""
    known = dict.fromkeys(METRICS, float("nan"))
    relative = None
    for event in _events(path):
        data = event.data
        if event.name in METRICS_UPDATED:
            for quantity, (key, factor) in METRICS.items():
                if key in data:
                    known[quantity] = _number(data, key, path) * factor
        elif event.name in ("packet_lost", "packets_lost"):
            # PMTU probes carry no data, and their loss is expected.
            count += not data.get("is_mtu_probe_packet", False)
        elif event.name == "congestion_state_updated":
            mode = str(data.get("new", mode))
        else:
            continue
        relative = event.time_ms < CALENDAR_MS if relative is None else relative
        times.append(event.time_ms / 1e3)
        rows.append(list(known.values()))
        lost.append(count)
        modes.append(mode)
    table = np.array(rows, float).reshape(len(rows), len(METRICS)).T
    values = dict(zip(METRICS, table, strict=True))
    values["ssthresh_bytes"][values["ssthresh_bytes"] >= NO_THRESHOLD] = np.nan
    return Log(
        np.maximum.accumulate(np.array(times, float)),
        values,
        np.array(lost, float),
        modes,
        since_1970=relative is False,
    )


def _number(data: Mapping[str, Any], key: str, path: Path) -> float:
    try:
        return float(data[key])
    except (TypeError, ValueError):
        raise ValueError(f"{path.name}: {key} is no number: {str(data[key])[:80]}") from None


def _events(path: Path) -> Iterator[Event]:
    """Yield the events of the first trace; a program writes one trace per connection."""
    with open_regular(path) as file:
        if path.lstat().st_size > GUEST_BYTES:
            raise ValueError(f"{path.name}: a qlog of more than {GUEST_BYTES >> 30} GiB")
        for event in events(file, path.name, _MARKS):
            if event.trace.number == 0:
                yield event
