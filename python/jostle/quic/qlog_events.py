"""Events of qlog files of any implementation.

The parser is lenient, because stacks write several versions: draft-00 to draft-02
(draft-marx-qlog-main-schema), 0.3, 0.4 and later drafts of draft-ietf-quic-qlog-main-schema. A file
is one JSON document, one event per line, or a JSON text sequence (RFC 7464). In draft-00 and
draft-01 an event is a list, whose fields `event_fields` names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any, Final

from jostle.safe_io.untrusted_files import malformed, parse_json

# Record separator of JSON text sequences (RFC 7464).
_SEPARATOR: Final = b"\x1e"
_AROUND: Final = _SEPARATOR + b"\r\n \0"
_MAX_LINE_BYTES: Final = 1 << 20
MAX_BYTES: Final = 4 * 10**9
"""Maximum size of an unpacked file, because compressed zeros can expand without limit."""
MAX_DOCUMENT_BYTES: Final = 128 * 10**6
"""Maximum size of a single JSON document, which is loaded into memory."""
_MAX_TREE_BYTES: Final = 600 * 10**6
"""Maximum memory for the objects of such a document."""
_LEAST_LINE_BYTES: Final = 100
"""Minimum size with which a line counts, because each line takes time."""
CALENDAR_MS: Final = 1e12
"""Times in ms above this value (the year 2001) count from 1970, others from the start."""
_MOST_MS: Final = 1e18
"""Maximum time in ms, about 30 million years, which can still be converted to ns."""
_WRONG: Final = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
"""Exceptions raised by objects that do not have the form of qlog."""

METRICS: Final = {
    "srtt_s": ("smoothed_rtt", 1e-3),
    "rtt_min_s": ("min_rtt", 1e-3),
    "cwnd_bytes": ("congestion_window", 1.0),
    "ssthresh_bytes": ("ssthresh", 1.0),
    "in_flight_bytes": ("bytes_in_flight", 1.0),
    "pacing_rate_bps": ("pacing_rate", 1.0),
}
"""qlog name and factor by quantity. Times in qlog are in ms."""
OTHER_METRICS: Final = {"cwnd": "congestion_window", "current_cwnd": "congestion_window"}
"""Names of these quantities in draft-00 and draft-01, and in mvfst's logs of draft-00."""
METRICS_UPDATED: Final = (
    "metrics_updated", "recovery_metrics_updated", "metric_update", "congestion_metric_update",
)  # fmt: skip
"""Names of the event with these quantities: before and since draft -09 of the events, and two of
mvfst."""
NO_THRESHOLD: Final = 2.0**62
"""Value of ssthresh from which it counts as not set by the stack."""


_KNOWN: Final = re.compile(r"draft-0[0-2]\b.*|0\.[34]\b.*|urn:ietf:params:qlog:.*")
"""Values of `qlog_version` and `file_schema` that are read."""
_READ: Final = "draft-00 to draft-02, 0.3, 0.4 and the schemas of the IETF's drafts are read"
_MEASURED: Final = ("packet_sent", "packet_received", *METRICS_UPDATED)
_UNITS: Final = {"ms": 1.0, "us": 1e-3}
"""Time units of a trace in ms."""


@dataclass(frozen=True)
class Trace:
    """Metadata of a connection's trace.

    Attributes
    ----------
    number
        Index of the trace in the file.
    about
        `title`, `vantage_point` and `common_fields`, if present.
    """

    number: int
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """An event: time in ms of the log's clock, name without category, and data.

    Times within the data are in `unit_ms`.
    """

    time_ms: float
    name: str
    data: Mapping[str, Any]
    trace: Trace
    group: str = ""
    unit_ms: float = 1.0


def events(
    file: BufferedIOBase,
    file_name: str,
    marks: Collection[bytes] = (),
    most_bytes: int = MAX_BYTES,
) -> Iterator[Event]:
    """Yield the events of a file in file order.

    Parameters
    ----------
    file
        File, read from its current position to its end.
    file_name
        Name of the file for error messages.
    marks
        Byte strings of which each relevant line contains at least one; other lines are not parsed.
        If empty, all lines are parsed.
    most_bytes
        Maximum size of the file; a line counts with at least 100 bytes.

    Raises
    ------
    ValueError
        If the file is not qlog; the message gives the location.
    """
    lines = _records(file, file_name)
    first, _ = next(lines, (b"", 1))
    try:
        header = _object(parse_json(first, _MAX_TREE_BYTES), file_name, 1)
    except ValueError:
        # The generator has read ahead only if the file is a sequence, which has a header.
        header = _document(first, file, file_name, min(most_bytes, MAX_DOCUMENT_BYTES))
    if not any(key in header for key in ("qlog_version", "file_schema", "traces", "trace")):
        raise ValueError(f"{file_name}: no qlog: it says no version, schema or trace")
    version = str(header.get("qlog_version") or header.get("file_schema") or "none")[:80]
    found = _events(header, lines, file_name, marks, most_bytes)
    if _KNOWN.fullmatch(version) or version == "none":
        yield from found
        return
    message = f"{file_name}: qlog of version {version} is not read: {_READ}"
    measured = False
    try:
        for event in found:
            measured |= event.name in _MEASURED
            yield event
    except ValueError as error:
        raise ValueError(message) from error
    if not measured:
        raise ValueError(message)


def _events(
    header: Mapping[str, Any],
    lines: Iterator[tuple[bytes, int]],
    file_name: str,
    marks: Collection[bytes],
    most_bytes: int,
) -> Iterator[Event]:
    """Yield the events of the traces in a header, then the events of the lines after it."""
    traces = header.get("traces") or [header.get("trace") or {}]
    if not isinstance(traces, list):
        raise ValueError(f"{file_name}: no qlog: its traces are no list")
    for number, about in enumerate(traces):
        clock, inside = _opened(about, f"{file_name}: no qlog: trace {number + 1}")
        for position, event in enumerate(inside, start=1):
            where = f"event {position} of trace {number + 1}"
            yield clock.event(event, Trace(number, about), f"{file_name}, {where}")
    last = Trace(len(traces) - 1, traces[-1])
    clock = _Clock(last.about)
    left = most_bytes
    for line, number in lines:
        left -= max(len(line), _LEAST_LINE_BYTES)
        if left < 0:
            most = f"{most_bytes // 10**6} MB, or lines of {_LEAST_LINE_BYTES} bytes"
            raise ValueError(f"{file_name}, line {number}: more than {most}, which is the most")
        # If times are relative to the previous event, no event can be skipped.
        if not line or (marks and not clock.deltas and not any(mark in line for mark in marks)):
            continue
        if not line.endswith((b"}", b"]")):
            # A killed program may have left an incomplete last line.
            continue
        where = f"{file_name}, line {number}"
        yield clock.event(_json(line, file_name, number), last, where)


def _records(file: BufferedIOBase, file_name: str) -> Iterator[tuple[bytes, int]]:
    """Yield lines, or records of a JSON text sequence, which may span lines, with their number."""
    sequence = False
    record, began, number = b"", 1, 0
    while line := file.readline(_MAX_LINE_BYTES):
        number += 1
        starts = line.startswith(_SEPARATOR)
        sequence |= starts and number == 1
        if not sequence:
            yield line.strip(_AROUND), number
            continue
        if starts and number > 1:
            yield record.strip(_AROUND), began
            record, began = b"", number
        record += line
        if len(record) > 2 * _MAX_LINE_BYTES:
            raise ValueError(f"{file_name}, line {began}: a record of more than 2 MB")
    if sequence:
        yield record.strip(_AROUND), began


def _document(
    first: bytes, file: BufferedIOBase, file_name: str, most_bytes: int
) -> Mapping[str, Any]:
    """Parse a single document that may span several lines, given its first line."""
    rest = file.read(most_bytes)
    if file.read(1):
        raise ValueError(
            f"{file_name}: a document of more than {most_bytes // 10**6} MB, the most that is read "
            "— write an event per line (application/qlog+json-seq)"
        )
    return _object(_json(first + rest, file_name, 1), file_name, 1)


def _opened(about: object, where: str) -> tuple[_Clock, list[Any]]:
    """Return the clock of a trace, and the events that it contains."""
    if not isinstance(about, Mapping):
        raise ValueError(f"{where} is not an object")
    inside = about.get("events") or []
    if not isinstance(inside, list):
        raise ValueError(f"{where} has events that are no list")
    try:
        return _Clock(about), inside
    except _WRONG as error:
        raise ValueError(f"{where} has no clock of qlog ({malformed(error)})") from error


class _Clock:
    """Reference time of a trace in ms, and whether times are relative to the previous event."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        common = about.get("common_fields") or {}
        configuration = about.get("configuration") or {}
        form = str(common.get("time_format", "relative"))
        reference = common.get("reference_time", 0)
        fields = about.get("event_fields") or []
        # Picoquic has them in capitals.
        self._fields = [str(field).lower() for field in fields]
        units = str(configuration.get("time_units", "ms"))
        if units not in _UNITS:
            raise ValueError(f"times in {units[:20]}, not in ms or us")
        self._unit_ms = _UNITS[units]
        if isinstance(reference, Mapping) or self._fields:
            # Since draft 10 of the main schema: an epoch and its wall-clock time. Before draft-02,
            # programs disagree about its unit, so times count from the start of the trace.
            reference = 0
        self._reference_ms = 0.0 if form == "absolute" else float(reference) * self._unit_ms
        self.deltas = (
            form in ("delta", "relative_to_previous_event") or "delta_time" in self._fields
        )
        self._group = str(common.get("group_id", ""))
        self._now_ms = 0.0

    def event(self, event: object, trace: Trace, where: str) -> Event:
        try:
            return self._event(event, trace)
        except _WRONG as error:
            raise ValueError(f"{where}: no event of qlog ({malformed(error)})") from error

    def _event(self, event: Any, trace: Trace) -> Event:
        if isinstance(event, list):
            if len(event) != len(self._fields):
                raise ValueError(f"{len(event)} values for {len(self._fields)} `event_fields`")
            event = dict(zip(self._fields, event, strict=True))
        given = next((event[key] for key in _TIMES if key in event), None)
        if given is None:
            raise KeyError("time")
        time_ms = float(given) * self._unit_ms
        self._now_ms = time_ms + (self._now_ms if self.deltas else self._reference_ms)
        if not abs(self._now_ms) <= _MOST_MS:
            raise ValueError(f"a time of {self._now_ms} ms")
        named = next((event[key] for key in _NAMES if key in event), "")
        name = str(named).rpartition(":")[2].lower()
        data = event.get("data") or {}
        if not isinstance(data, Mapping):
            raise ValueError(f"data of `{name}` is no object")
        group = str(event.get("group_id", self._group))
        return Event(self._now_ms, name, data, trace, group, self._unit_ms)


_TIMES: Final = ("time", "relative_time", "delta_time")
_NAMES: Final = ("name", "event", "event_type", "type")
"""Names of an event's time, and of its name, in all versions."""


def _json(text: bytes, name: str, line: int) -> Any:
    try:
        found = parse_json(text, _MAX_TREE_BYTES)
    except ValueError as error:
        raise ValueError(f"{name}, line {line}: no qlog: {error}") from error
    # Lists are events of draft-00 and draft-01; a header is never one.
    return found if isinstance(found, list) and line > 1 else _object(found, name, line)


def _object(found: object, name: str, line: int) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ValueError(f"{name}, line {line}: no qlog: not an object")
    return found
