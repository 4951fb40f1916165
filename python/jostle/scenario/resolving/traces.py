"""Mahimahi link traces: one delivery opportunity per line, as whole milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jostle.foreign_files import TRACE_BYTES, read_text
from jostle.scenario.text.units import PACKET_BYTES, QuantityError

__all__ = ["LinkTrace", "TraceReader", "cached_trace_reader", "read_trace"]

_LARGEST_MS = 2**32 - 1


@dataclass(frozen=True)
class LinkTrace:
    """Delivery opportunities of a link.

    Parameters
    ----------
    opportunities_ms
        Millisecond of each, never decreasing. The trace repeats after the last.
    """

    opportunities_ms: tuple[int, ...]

    @property
    def mean_rate_bps(self) -> int:
        """Mean rate over one pass of the trace.

        An opportunity carries a full packet: Mahimahi's 1500 bytes of IP and the Ethernet header
        that rates count here.
        """
        bits = len(self.opportunities_ms) * PACKET_BYTES * 8
        return bits * 1000 // self.opportunities_ms[-1]


TraceReader = Callable[[str], LinkTrace]
"""Reads the trace that a scenario names; raises `QuantityError` if it cannot."""


def read_trace(path: Path) -> LinkTrace:
    """Read a trace from a file.

    Raises
    ------
    QuantityError
        If the file cannot be read, or is empty, or holds anything but whole milliseconds in order.
    """
    try:
        text = read_text(path, TRACE_BYTES)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise QuantityError(f'trace "{path}": {reason[0].lower()}{reason[1:]}') from None
    except ValueError:
        raise QuantityError(f'trace "{path}": not a text file') from None
    times: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.strip()
        if not written:
            continue
        # int() alone would take "1_0" and non-Latin digits.
        if not (written.isascii() and written.isdigit() and len(written) <= 10):
            raise QuantityError(
                f'trace "{path}", line {number}: "{written[:40]}" is not a whole number of '
                "milliseconds"
            )
        time = int(written)
        if time > _LARGEST_MS:
            raise QuantityError(f'trace "{path}", line {number}: {time} ms is too large')
        if times and time < times[-1]:
            raise QuantityError(
                f'trace "{path}", line {number}: {time} ms comes after {times[-1]} ms — times '
                "never decrease"
            )
        times.append(time)
    if not times:
        raise QuantityError(f'trace "{path}": empty — it needs at least one line')
    if times[-1] == 0:
        raise QuantityError(f'trace "{path}": the last time is 0 ms — it is the trace\'s length')
    return LinkTrace(tuple(times))


def cached_trace_reader(folder: Path) -> TraceReader:
    """Return a reader that reads each trace once, however many conditions use it."""
    cache: dict[str, LinkTrace | QuantityError] = {}

    def read(name: str) -> LinkTrace:
        if name not in cache:
            try:
                cache[name] = read_trace(folder / name)
            except QuantityError as error:
                cache[name] = error
        found = cache[name]
        if isinstance(found, QuantityError):
            raise found
        return found

    return read
