"""Rates, delays and losses that were recorded: a column of a file as steps of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jostle.scenario.models import FromFile
from jostle.scenario.resolving.traces import TraceFiles
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import LARGEST, PACKET_BYTES, QuantityError

if TYPE_CHECKING:
    from jostle.scenario.traces.recording import Cut, Quantity, Recording

__all__ = ["recorded_delay", "recorded_loss", "recorded_rate"]

_PER_ONE: Final = 10**9
"""Steps of a probability, between 0 and 1."""
_MOST_STEPS: Final = 1_000_000
"""Of a link in a run: 300 MB of them."""


def recorded_rate(
    given: FromFile, files: TraceFiles, duration_ns: int, path: KeyPath, report: Report
) -> tuple[dict[str, Any], int, int] | None:
    """Return capacity, mean and largest rate (bit/s) of a run; None if something was reported.

    Delivery opportunities of a whole file stay what they are.
    """
    try:
        recording = files.recording(given.file, tuple(given.where.items()))
        if recording.opportunities_ms is not None:
            return _opportunities(given, files, recording)
        whole = _cut(given, recording, "rate")
        steps = _steps(whole, given.scale, duration_ns, recording.source)
    except QuantityError as error:
        report.add(path, str(error))
        return None
    peak_bps = max(rate for _, rate in steps)
    if peak_bps == 0:
        report.add(path, f'"{given.file}" carries nothing there')
        return None
    mean_bps = given.scale * float((whole.values * whole.lasting_s).sum()) / whole.length_s
    listed = [{"at_ns": at, "rate_bps": rate} for at, rate in steps]
    return {"kind": "steps", "steps": listed}, max(1, round(mean_bps)), peak_bps


def recorded_delay(
    given: FromFile, files: TraceFiles, duration_ns: int, path: KeyPath, report: Report
) -> tuple[list[tuple[int, int]], int] | None:
    """Return steps (ns) and the median (ns) of a run's delay; None if something was reported."""
    from jostle.scenario.traces.numbers import quantiles

    try:
        recording = files.recording(given.file, tuple(given.where.items()))
        whole = _cut(given, recording, "delay")
        steps = _steps(whole, given.scale * 1e9, duration_ns, recording.source)
    except QuantityError as error:
        report.add(path, str(error))
        return None
    (median_s,) = quantiles(whole.values, whole.lasting_s, [0.5])
    return steps, round(float(median_s) * given.scale * 1e9)


def recorded_loss(
    given: FromFile, files: TraceFiles, duration_ns: int, path: KeyPath, report: Report
) -> list[dict[str, Any]]:
    """Return steps of a run's probability of loss; none if something was reported."""
    try:
        recording = files.recording(given.file, tuple(given.where.items()))
        whole = _cut(given, recording, "loss")
        steps = _steps(whole, given.scale * _PER_ONE, duration_ns, recording.source)
    except QuantityError as error:
        report.add(path, str(error))
        return []
    return [{"at_ns": at, "probability": min(1.0, value / _PER_ONE)} for at, value in steps]


def _opportunities(
    given: FromFile, files: TraceFiles, recording: Recording
) -> tuple[dict[str, Any], int, int]:
    parts = ("from_", "to", "scale", "gaps")
    changed = next((key for key in parts if key in given.model_fields_set), None)
    if changed is not None:
        hint = "`jostle trace convert` makes a table of it"
        message = f'"{changed.rstrip("_")}" is not of delivery opportunities — {hint}'
        raise QuantityError(f'trace "{recording.source}": {message}')
    trace = files.trace(given.file)
    capacity = {
        "kind": "trace",
        "opportunities_ms": list(trace.opportunities_ms),
        "opportunity_bytes": PACKET_BYTES,
    }
    return capacity, trace.mean_rate_bps, trace.mean_rate_bps


def _cut(given: FromFile, recording: Recording, quantity: Quantity) -> Cut:
    from jostle.scenario.traces.recording import cut

    column = recording.column(quantity, given.column)
    to_s = None if given.to is None else given.to / 1e9
    return cut(recording, column, given.gaps, given.from_ / 1e9, to_s)


def _steps(whole: Cut, factor: float, duration_ns: int, source: str) -> list[tuple[int, int]]:
    """Repeat what was cut until the end of the run."""
    length_ns = max(1, round(whole.length_s * 1e9))
    at_ns = [round(float(at) * 1e9) for at in whole.time_s]
    values = [round(float(value) * factor) for value in whole.values]
    if max(values) > LARGEST:
        raise QuantityError(f'trace "{source}": its largest value is too large')
    turns = -(-duration_ns // length_ns)
    if turns * len(values) > _MOST_STEPS:
        message = f"{turns} times {len(values)} steps in a run — at most {_MOST_STEPS}"
        raise QuantityError(f'trace "{source}": {message}')
    steps: list[tuple[int, int]] = []
    for turn in range(turns):
        for at, value in zip(at_ns, values, strict=True):
            start = turn * length_ns + at
            if start >= duration_ns and steps:
                return steps
            if steps and start <= steps[-1][0]:
                continue
            if not steps or value != steps[-1][1]:
                steps.append((start, value))
    return steps
