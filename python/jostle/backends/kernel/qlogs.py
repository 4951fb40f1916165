"""What a QUIC stack wrote of a connection: its RTT, its window, its losses.

Events of draft-ietf-quic-qlog-quic-events, 0.3 and later: names with or without the old categories.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.foreign_files import GUEST_BYTES, open_regular
from jostle.qlog_events import (
    CALENDAR_MS,
    METRICS,
    METRICS_UPDATED,
    NO_THRESHOLD,
    Event,
    events,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# What stands in every line of interest; parsing all packets would take minutes.
_MARKS = (b"metrics_updated", b"packet_lost", b"packets_lost", b"congestion_state_updated")


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
    # A program may have left links and folders, which are no logs.
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
            # A probe for the path's MTU carries nothing, and is sent to be lost.
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
    """Yield events of the first trace: a program writes one of each connection."""
    with open_regular(path) as file:
        if path.lstat().st_size > GUEST_BYTES:
            raise ValueError(f"{path.name}: a qlog of more than {GUEST_BYTES >> 30} GiB")
        for event in events(file, path.name, _MARKS):
            if event.trace.number == 0:
                yield event
