"""Reads a trace, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jostle.scenario.text.units import QuantityError
from jostle.scenario.traces import mahimahi

if TYPE_CHECKING:
    from jostle.scenario.traces.recording import Recording

__all__ = ["STEP_S", "read"]

STEP_S: Final = 0.1
"""Over which delivery opportunities are counted, unless something else is asked for."""

_MOST_S: Final = 3.2e9
"""A hundred years: longer files are damaged."""
_LOOKED_AT: Final = 4096
"""Letters at the start of a file by which it is told what it is."""


def read(
    path: Path, *, step_s: float = STEP_S, where: Mapping[str, str] | None = None
) -> Recording:
    """Read a recording of a link.

    Parameters
    ----------
    path
        Mahimahi's delivery opportunities, a CSV table, iperf3's or irtt's JSON, or the output of
        ping: which of them is told by its content.
    step_s
        Over which delivery opportunities are counted.
    where
        Of a table only the rows with these values, by column.

    Raises
    ------
    QuantityError
        If it cannot be read; the text names file and line, and what would be accepted.
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
    # numpy takes its time to load: `jostle --help` must not wait for it.
    from jostle.scenario.traces import probes, tables

    start = text[:_LOOKED_AT].lstrip("\ufeff \t\r\n")
    if where and (start.startswith("{") or not _is_table(start)):
        raise QuantityError(f'trace "{source}": where is of tables with named columns')
    if start.startswith("{"):
        return probes.of_json(text, source)
    if "icmp_seq=" in start or start.startswith("PING "):
        return probes.of_ping(text, source)
    if _is_table(start):
        return tables.recording(text.lstrip("\ufeff"), source, where)
    return mahimahi.recording(text, source, step_s)


def _is_table(start: str) -> bool:
    first = start.split("\n", 1)[0]
    return re.search(r"[,;\t]", first) is not None
