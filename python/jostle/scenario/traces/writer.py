"""Writing of recordings as CSV tables or Mahimahi traces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces import mahimahi
from jostle.scenario.traces.recording import Column, Quantity, Recording, TraceExtract

__all__ = ["as_mahimahi", "as_table", "label"]

_WRITTEN: Final[Mapping[Quantity, tuple[str, float]]] = {
    "rate": ("_mbps", 1e-6),
    "delay": ("_ms", 1e3),
    "loss": ("_percent", 1e2),
}
_ENDING: Final = re.compile(r"[ _]*[(\[]?(mbps|mbit/s|kbps|bps|ms|us|percent|%)[)\]]?$")


def label(column: Column) -> str:
    """Return the name of a column without its unit."""
    return _ENDING.sub("", column.name) or column.quantity


def as_table(recording: Recording) -> str:
    """Return all samples as CSV: start and end in seconds, and each column with its unit."""
    names: list[str] = []
    for column in recording.columns:
        suffix = _WRITTEN[column.quantity][0]
        name = label(column)
        number = sum(one == name + suffix for one in names)
        names.append(name + suffix if not number else f"{name}{number + 1}{suffix}")
    lines = [",".join(["start", "end", *names])]
    scaled = [one.values * _WRITTEN[one.quantity][1] for one in recording.columns]
    for row, (start, end) in enumerate(zip(recording.start_s, recording.end_s, strict=True)):
        cells = ["" if np.isnan(one[row]) else f"{one[row]:.9g}" for one in scaled]
        lines.append(",".join([f"{start:.12g}", f"{end:.12g}", *cells]))
    return "\n".join(lines) + "\n"


def as_mahimahi(rates: TraceExtract, source: str) -> str:
    """Return a rate as delivery opportunities in Mahimahi's format.

    Raises
    ------
    QuantityError
        If there is no opportunity, the last one is before the end of the first millisecond, or
        there are too many.
    """
    try:
        times = list(mahimahi.of_rates(rates))
    except QuantityError as error:
        raise QuantityError(f'trace "{source}": {error}') from None
    if not times or times[-1] == 0:
        raise QuantityError(f'trace "{source}": it carries less than a packet')
    return mahimahi.lines(times)
