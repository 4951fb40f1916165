"""Parsers for the output of measurement tools: iperf3 and irtt (JSON), ping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from jostle.safe_io.untrusted_files import parse_json
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces.ping_output import parse_ping
from jostle.scenario.traces.recording import MOST_STEPS, Column, Floats, Recording, checked, spans

__all__ = ["of_json", "of_ping"]

_SAID: Final = 80
"""Maximum number of characters quoted from an iperf3 error message."""


def of_json(text: str, source: str) -> Recording:
    """Parse the output of `iperf3 --json` or `irtt client -o`.

    Raises
    ------
    QuantityError
        If the text is neither, or is incomplete.
    """
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        message = f"not JSON ({error.msg})"
        raise QuantityError(f'trace "{source}", line {error.lineno}: {message}') from None
    except ValueError as error:
        raise QuantityError(f'trace "{source}": not JSON ({error})') from None
    try:
        if isinstance(document, dict) and document.get("round_trips"):
            return _irtt(document, source)
        if isinstance(document, dict) and document.get("intervals"):
            return _iperf3(document, source)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        if isinstance(error, QuantityError):
            raise
        raise QuantityError(f'trace "{source}": not as iperf3 or irtt write it: {error}') from None
    said = document.get("error") if isinstance(document, dict) else None
    reason = (
        f"iperf3 says {str(said)[:_SAID]!r}" if said else "it has no intervals and no round trips"
    )
    hint = "JSON is read as `iperf3 --json` and `irtt client -o` write it"
    raise QuantityError(f'trace "{source}": {reason} — {hint}')


def _iperf3(document: Mapping[str, Any], source: str) -> Recording:
    """Return the intervals of a test: the sum of its streams, and TCP's RTT."""
    kept = [one for one in document["intervals"] if not one["sum"].get("omitted")]
    if not kept:
        raise QuantityError(f'trace "{source}": every interval is omitted (`iperf3 -O`)')
    start_s = np.array([float(one["sum"]["start"]) for one in kept])
    end_s = np.array([float(one["sum"]["end"]) for one in kept])
    # The interval times restart at 0 after the omitted intervals.
    restart = np.flatnonzero(np.diff(start_s) <= 0)
    if restart.size:
        raise QuantityError(f'trace "{source}": interval {restart[0] + 2} is not after the last')
    columns = [Column("rate", "rate", _of(kept, "sum", "bits_per_second"))]
    back = "sum_bidir_reverse"
    if all(back in one for one in kept):
        columns.append(Column("reverse", "rate", _of(kept, back, "bits_per_second")))
    if any("lost_percent" in one["sum"] for one in kept):
        columns.append(Column("loss", "loss", _of(kept, "sum", "lost_percent") / 100))
    rtt_us = np.array([_mean([s["rtt"] for s in one["streams"] if s.get("rtt")]) for one in kept])
    if not np.isnan(rtt_us).all():
        columns.append(Column("rtt", "delay", rtt_us / 1e6))
    end_s[:-1] = np.minimum(end_s[:-1], start_s[1:])
    shift_s = start_s[0]
    named = tuple(checked(column, source) for column in columns)
    return Recording(source, "iperf3", start_s - shift_s, end_s - shift_s, named)


def _of(intervals: Sequence[Mapping[str, Any]], table: str, key: str) -> Floats:
    values = [one[table].get(key) for one in intervals]
    return np.array([np.nan if value is None else float(value) for value in values])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _irtt(document: Mapping[str, Any], source: str) -> Recording:
    """Return the RTTs of a test, with one-way delays if the clocks are synchronised."""
    trips = sorted(document["round_trips"], key=lambda trip: int(trip["seqno"]))
    interval_s = float(document["config"]["params"]["interval"]) / 1e9
    first = int(trips[0]["seqno"])
    start_s = np.array([float(int(trip["seqno"]) - first) for trip in trips]) * interval_s
    lost = np.array([trip["lost"] not in ("false", False) for trip in trips])

    def delay(key: str) -> Floats:
        found = [trip.get("delay", {}).get(key) for trip in trips]
        return np.array([np.nan if ns is None else float(ns) / 1e9 for ns in found])

    columns = [Column("rtt", "delay", np.where(lost, np.nan, delay("rtt")))]
    for name, key in (("up", "send"), ("down", "receive")):
        values = np.where(lost, np.nan, delay(key))
        # If the clocks differ by more than the one-way delay, one direction is negative.
        if not np.isnan(values).all() and np.nanmin(values) >= 0:
            columns.append(Column(name, "delay", values))
    columns.append(Column("loss", "loss", lost.astype(np.float64)))
    return _probed(start_s, columns, source, "irtt", ())


def of_ping(text: str, source: str) -> Recording:
    """Convert the output of ping: the RTT of each probe, or its loss.

    Raises
    ------
    QuantityError
        If the text contains no reply, or is damaged.
    """
    try:
        log = parse_ping(text.splitlines(), MOST_STEPS)
    except ValueError as error:
        raise QuantityError(f'trace "{source}": {error}') from None
    if log is None:
        hint = 'lines as "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.3 ms" are read'
        raise QuantityError(f'trace "{source}": no reply — {hint}')
    rtt_s = np.full(log.sent, np.nan)
    rtt_s[list(log.replies)] = [reply.rtt_ms / 1e3 for reply in log.replies.values()]
    note = "pings are taken to be 1 s apart: `ping -D` prints when"
    if log.is_timed:
        note = f"pings are {log.interval_s:.3g} s apart by their time stamps"
    columns = [
        Column("rtt", "delay", rtt_s),
        Column("loss", "loss", np.isnan(rtt_s).astype(np.float64)),
    ]
    start_s = np.arange(log.sent, dtype=np.float64) * log.interval_s
    return _probed(start_s, columns, source, "ping", (note,))


def _probed(
    start_s: Floats, columns: Sequence[Column], source: str, name: str, notes: tuple[str, ...]
) -> Recording:
    end_s, _ = spans(start_s)
    named = tuple(checked(column, source) for column in columns)
    return Recording(source, name, start_s, end_s, named, notes=notes)
