"""Recorded rates, delays and losses: converts a column of a file to steps of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jostle.run_spec import CapacitySpec, LossStep, RateStep, TraceCapacity
from jostle.scenario.models import RecordedSeries
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import LARGEST, PACKET_BYTES, QuantityError
from jostle.scenario.resolve.trace_files import TraceFiles

if TYPE_CHECKING:
    from jostle.scenario.traces.recording import Quantity, Recording, TraceExtract

__all__ = ["recorded_delay", "recorded_loss", "recorded_rate"]

_PER_ONE: Final = 10**9
"""Resolution of probabilities: number of steps between 0 and 1."""
_MOST_STEPS: Final = 1_000_000
"""Maximum number of steps of a link in a run, which take 300 MB."""


def recorded_rate(
    given: RecordedSeries, files: TraceFiles, duration_ns: int, path: KeyPath, report: Report
) -> tuple[CapacitySpec, int, int] | None:
    """Return the capacity, the mean and the largest rate (bit/s); None if a problem was reported.

    A complete file of delivery opportunities is not converted to rates.
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
    listed: list[RateStep] = [{"at_ns": at, "rate_bps": rate} for at, rate in steps]
    return {"kind": "steps", "steps": listed}, max(1, round(mean_bps)), peak_bps


def recorded_delay(
    given: RecordedSeries, files: TraceFiles, duration_ns: int, path: KeyPath, report: Report
) -> tuple[list[tuple[int, int]], int] | None:
    """Return the delay steps (ns) and the median delay (ns); None if a problem was reported."""
    from jostle.scenario.traces.trace_summary import quantiles

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
    given: RecordedSeries, files: TraceFiles, duration_ns: int, path: KeyPath, report: Report
) -> list[LossStep]:
    """Return the loss probability over time as steps; empty if a problem was reported."""
    try:
        recording = files.recording(given.file, tuple(given.where.items()))
        whole = _cut(given, recording, "loss")
        steps = _steps(whole, given.scale * _PER_ONE, duration_ns, recording.source)
    except QuantityError as error:
        report.add(path, str(error))
        return []
    return [{"at_ns": at, "probability": min(1.0, value / _PER_ONE)} for at, value in steps]


def _opportunities(
    given: RecordedSeries, files: TraceFiles, recording: Recording
) -> tuple[CapacitySpec, int, int]:
    parts = ("from_", "to", "scale", "gaps")
    changed = next((key for key in parts if key in given.model_fields_set), None)
    if changed is not None:
        hint = "`jostle link convert` makes a table of it"
        message = f'"{changed.rstrip("_")}" is not of delivery opportunities — {hint}'
        raise QuantityError(f'trace "{recording.source}": {message}')
    trace = files.trace(given.file)
    capacity: TraceCapacity = {
        "kind": "trace",
        "opportunities_ms": list(trace.opportunities_ms),
        "opportunity_bytes": PACKET_BYTES,
    }
    return capacity, trace.mean_rate_bps, trace.mean_rate_bps


def _cut(given: RecordedSeries, recording: Recording, quantity: Quantity) -> TraceExtract:
    from jostle.scenario.traces.recording import cut

    column = recording.column(quantity, given.column)
    to_s = None if given.to is None else given.to / 1e9
    return cut(recording, column, given.gaps, given.from_ / 1e9, to_s)


def _steps(
    whole: TraceExtract, factor: float, duration_ns: int, source: str
) -> list[tuple[int, int]]:
    """Repeat an extract until the end of the run."""
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
