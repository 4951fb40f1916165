"""Reader of trace files in all supported formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces import mahimahi

if TYPE_CHECKING:
    from jostle.scenario.traces.recording import Recording

__all__ = ["STEP_S", "read"]

STEP_S: Final = 0.1
"""Default interval over which delivery opportunities are counted."""

_MOST_S: Final = 3.2e9
"""About a hundred years; longer recordings are corrupt."""
_LOOKED_AT: Final = 4096
"""Number of characters at the start of a file that determine its format."""


def read(
    path: Path, *, step_s: float = STEP_S, where: Mapping[str, str] | None = None
) -> Recording:
    """Read a recording of a link.

    Parameters
    ----------
    path
        Mahimahi's delivery opportunities, a CSV table, JSON of iperf3 or irtt, or the output of
        ping. The content determines the format.
    step_s
        Interval over which delivery opportunities are counted.
    where
        Required values by column of a table; other rows are ignored.

    Raises
    ------
    QuantityError
        If the file cannot be read; the message names file, line and accepted values.
    """
    recording = _read(mahimahi.read_text_of(path), str(path), step_s, where or {})
    _check_times(recording)
    return recording


def _check_times(recording: Recording) -> None:
    import numpy as np

    start_s, lasting_s = recording.start_s, recording.end_s - recording.start_s
    place = f'trace "{recording.source}"'
    if not recording.length_s <= _MOST_S:
        message = f"it lasts {recording.length_s:g} s: at most {_MOST_S:g} s are read"
        raise QuantityError(f"{place}: {message}")
    wrong = np.flatnonzero(~(np.diff(start_s, prepend=-np.inf) > 0) | ~(lasting_s >= 0))
    if wrong.size:
        message = (
            f"sample {wrong[0] + 1} does not start after the one before, or ends before it starts"
        )
        raise QuantityError(f"{place}: {message}")
    if not lasting_s.any():
        raise QuantityError(f"{place}: its samples last 0 s")


def _read(text: str, source: str, step_s: float, where: Mapping[str, str]) -> Recording:
    # Import here, because numpy is slow to import and `jostle --help` does not need it.
    from jostle.scenario.traces import csv_tables, measurement_tools

    start = text[:_LOOKED_AT].lstrip("\ufeff \t\r\n")
    if where and (start.startswith("{") or not _is_table(start)):
        raise QuantityError(f'trace "{source}": where is of tables with named columns')
    if start.startswith("{"):
        return measurement_tools.of_json(text, source)
    if "icmp_seq=" in start or start.startswith("PING "):
        return measurement_tools.of_ping(text, source)
    if _is_table(start):
        return csv_tables.recording(text.lstrip("\ufeff"), source, where)
    return mahimahi.recording(text, source, step_s)


def _is_table(start: str) -> bool:
    first = start.split("\n", 1)[0]
    return re.search(r"[,;\t]", first) is not None
