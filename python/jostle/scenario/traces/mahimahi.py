"""Traces in Mahimahi's format: one delivery opportunity per line, in whole milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.safe_io.untrusted_files import TRACE_BYTES, read_text
from jostle.scenario.parsing.quantities import PACKET_BYTES, QuantityError, quoted

if TYPE_CHECKING:
    from jostle.scenario.traces.recording import Recording, TraceExtract

__all__ = ["LinkTrace", "of_rates", "parse", "read_trace", "recording"]

_LARGEST_MS = 2**32 - 1
_PACKET_BITS = PACKET_BYTES * 8
_MOST_OPPORTUNITIES = 4_000_000
"""Maximum number of opportunities of a written file, about `TRACE_BYTES`."""


@dataclass(frozen=True)
class LinkTrace:
    """Delivery opportunities of a link.

    Parameters
    ----------
    opportunities_ms
        Times in milliseconds, never decreasing. The trace repeats after the last one.
    """

    opportunities_ms: tuple[int, ...]

    @property
    def mean_rate_bps(self) -> int:
        """Mean rate over one pass of the trace.

        An opportunity carries a full-sized packet of 1514 bytes: Mahimahi's 1500 bytes of IP and
        the Ethernet header.
        """
        bits = len(self.opportunities_ms) * _PACKET_BITS
        return bits * 1000 // self.opportunities_ms[-1]


def read_text_of(path: Path) -> str:
    """Return the text of a trace.

    Raises
    ------
    QuantityError
        If the file cannot be read.
    """
    try:
        return read_text(path, TRACE_BYTES)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise QuantityError(f'trace "{path}": {reason[0].lower()}{reason[1:]}') from None
    except ValueError:
        raise QuantityError(f'trace "{path}": not a text file') from None


def read_trace(path: Path) -> LinkTrace:
    """Read a trace from a file.

    Raises
    ------
    QuantityError
        If the file cannot be read, is empty, or does not consist of whole milliseconds in order.
    """
    return parse(read_text_of(path), str(path))


def parse(text: str, source: str) -> LinkTrace:
    """Parse the text of the trace `source`; raises like `read_trace`."""
    times: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.strip()
        if not written:
            continue
        # int() would also accept "1_0" and non-Latin digits.
        if not (written.isascii() and written.isdigit() and len(written) <= 10):
            raise QuantityError(
                f'trace "{source}", line {number}: {quoted(written)} is not a whole number of '
                "milliseconds"
            )
        time = int(written)
        if time > _LARGEST_MS:
            raise QuantityError(f'trace "{source}", line {number}: {time} ms is too large')
        if times and time < times[-1]:
            raise QuantityError(
                f'trace "{source}", line {number}: {time} ms comes after {times[-1]} ms — times '
                "never decrease"
            )
        times.append(time)
    if not times:
        raise QuantityError(f'trace "{source}": empty — it needs at least one line')
    if times[-1] == 0:
        raise QuantityError(f'trace "{source}": the last time is 0 ms — it is the trace\'s length')
    return LinkTrace(tuple(times))


def recording(text: str, source: str, step_s: float) -> Recording:
    """Convert opportunities to rates over steps of `step_s`; raises like `read_trace`."""
    import numpy as np

    from jostle.scenario.traces.recording import Column, Recording, check_steps

    trace = parse(text, source)
    length_ms = trace.opportunities_ms[-1]
    step_ms = max(1, round(step_s * 1e3))
    check_steps(length_ms / step_ms, source)
    edges = np.append(np.arange(0, length_ms, step_ms), length_ms).astype(np.float64)
    # An opportunity at the very end counts for the last step, and one at 0 for the first.
    counts, _ = np.histogram(trace.opportunities_ms, edges)
    seconds = edges / 1e3
    rates = counts * _PACKET_BITS / np.diff(seconds)
    return Recording(
        source=source,
        format="Mahimahi",
        start_s=seconds[:-1],
        end_s=seconds[1:],
        columns=(Column("rate", "rate", rates),),
        opportunities_ms=trace.opportunities_ms,
        notes=(f"opportunities are of {PACKET_BYTES} bytes, counted in steps of {step_ms} ms",),
    )


def of_rates(rates: TraceExtract) -> Iterator[int]:
    """Yield the milliseconds at which a link of these rates has sent another full-sized packet.

    Raises
    ------
    QuantityError
        If there are too many opportunities.
    """
    packets = float((rates.values * rates.lasting_s).sum()) / _PACKET_BITS
    if not packets <= _MOST_OPPORTUNITIES:
        raise QuantityError(
            f"it carries {packets:.3g} packets: at most {_MOST_OPPORTUNITIES} are written — choose "
            "a part by --from and --to"
        )
    carried_bits = 0.0
    given = 0
    for at_s, rate_bps, lasting_s in zip(rates.time_s, rates.values, rates.lasting_s, strict=True):
        until_bits = carried_bits + rate_bps * lasting_s
        # Rounding may shift the last bit of a packet beyond its step.
        while rate_bps > 0 and (given + 1) * _PACKET_BITS <= until_bits * (1 + 1e-12):
            given += 1
            yield int((at_s + (given * _PACKET_BITS - carried_bits) / rate_bps) * 1e3 + 0.5)
        carried_bits = until_bits


def lines(opportunities_ms: Iterable[int]) -> str:
    """Return opportunities in the file format."""
    return "".join(f"{at}\n" for at in opportunities_ms)
