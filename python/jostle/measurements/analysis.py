"""Measures captures with the engine and returns a ResultSet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from jostle.backends.base import canonical_json
from jostle.backends.engine_record import EngineRecord, run_record
from jostle.errors import InputError, RunCancelledError
from jostle.measurements import tool_logs
from jostle.measurements.measurement_folder import measured_files
from jostle.measurements.unknown_values import Unknown, without_unknown
from jostle.results import ConditionRun, ResultSet
from jostle.results.finished_runs import CAPTURE
from jostle.safe_io.untrusted_files import open_regular
from jostle.scenario.parsing.quantities import parse_span

if TYPE_CHECKING:
    from jostle.run_spec import RunSpec
    from jostle.store.store import Store

FLOWS: Final = 20
"""Default number of flows that are measured."""
INTERVAL: Final = "100 ms"
"""Default sampling interval."""
READINGS: Final = 2
"""Number of times that each file is read."""

_SUFFIXES: Final = (".pcap", ".pcapng", ".cap")
_PACKED: Final = ("", ".gz", ".zst")

Told = Callable[[int], bool]
"""Receives the number of bytes read, counting each read of a file; returns whether to stop."""


def analyze(
    paths: Sequence[str | os.PathLike[str]],
    *,
    flows: int = FLOWS,
    interval: str = INTERVAL,
    store: Store | None = None,
    told: Told | None = None,
) -> ResultSet:
    """Measure captures; see `jostle.analyze`."""
    from jostle import _core

    files = files_of(paths)
    interval_ns = _interval(interval)
    if flows < 1:
        raise InputError(f"{flows} flows: at least 1 is measured")
    version = f"{_core.ENGINE_VERSION.partition('+')[0]}+{_core.PCAP_ANALYSIS_VERSION}"
    results: list[ConditionRun] = []
    conditions: list[dict[str, str]] = []
    notes: list[str] = []
    # Compute digests while the engine reads: both use the same pages of the page cache.
    with ThreadPoolExecutor(1) as beside:
        digests = {file: beside.submit(_digest, file) for file in files}
        try:
            found = _captures(files, flows, interval_ns, told) + _logs(files, interval_ns)
        except BaseException:
            for digest in digests.values():
                digest.cancel()
            raise
        for condition, one in enumerate(found):
            spec = one.spec
            spec["measured"] = [
                {"name": file.name, "sha256": digests[file].result()} for file in one.files
            ]
            record = run_record(one.record, cast("RunSpec", spec), CAPTURE, version, wall_s=0.0)
            record = without_unknown(record, one.unknown)
            run = record if store is None else store.put(record)
            results.append(ConditionRun(condition, 0, run))
            name = " + ".join(file.name for file in one.files)
            conditions.append({"capture": name} if len(found) > 1 else {})
            notes += one.notes
    measured = ResultSet(
        _title(files), CAPTURE, version, conditions=_apart(conditions), results=results
    )
    measured.said = tuple(dict.fromkeys(notes))
    measured.sources = tuple(file for file in files if not tool_logs.is_log(file))
    return measured


@dataclass(frozen=True)
class _AnalyzedGroup:
    """The engine's results for files that belong together."""

    files: Sequence[Path]
    spec: dict[str, Any]
    record: EngineRecord
    notes: Sequence[str] = ()
    unknown: Mapping[str, Collection[Unknown]] = field(default_factory=dict)


def _captures(
    files: Sequence[Path], flows: int, interval_ns: int, told: Told | None
) -> list[_AnalyzedGroup]:
    from jostle import _core

    captures = [file for file in files if not tool_logs.is_log(file)]
    if not captures:
        return []
    try:
        found = _core.analyze_captures(
            captures, flows=flows, interval_ns=interval_ns, progress_callback=told
        )
    except _core.CancelledError as error:
        raise RunCancelledError(str(error)) from error
    except (ValueError, OSError) as error:
        raise InputError(str(error)) from error
    return [
        _AnalyzedGroup(
            [captures[at] for at in one.files], json.loads(one.spec), one.record, one.notes
        )
        for one in found
    ]


def _logs(files: Sequence[Path], interval_ns: int) -> list[_AnalyzedGroup]:
    """Measure logs of other tools, one file per record, in bins no shorter than given."""
    import numpy as np

    from jostle import _core

    found = []
    for path in filter(tool_logs.is_log, files):
        log = tool_logs.read(path)
        log.spec["interval_ns"] = max(log.spec["interval_ns"], interval_ns)
        text = canonical_json({**log.spec, "measured": []})
        times = np.array(log.times_ns, dtype=np.int64)
        try:
            record = _core.record_of_samples(text, times, log.flows, [])
        except (ValueError, OverflowError) as error:
            raise InputError(f"{path}: not what can be measured ({error})") from error
        notes = [f"{path.name}: {note}" for note in log.notes]
        found.append(_AnalyzedGroup([path], log.spec, record, notes, log.unknown))
    return found


def files_of(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the captures that paths name: files, and all captures in folders, sorted by name.

    For a folder that `jostle measure` wrote, these are its logs and captures.

    Raises
    ------
    InputError
        When there is no such file or folder, or no capture in a folder.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.exists():
                raise InputError(f"{path}: there is no such file")
            found.append(path)
            continue
        measured = measured_files(path)
        if measured is not None:
            found += measured
            continue
        inside = sorted(one for one in path.iterdir() if _is_capture(one))
        if not inside:
            raise InputError(f"{path}: no capture ({', '.join(_SUFFIXES)}) is in this folder")
        found += inside
    if not found:
        raise InputError("no captures are given")
    return list(dict.fromkeys(found))


def _is_capture(path: Path) -> bool:
    named = any(path.name.endswith(s + packed) for s in _SUFFIXES for packed in _PACKED)
    return named and path.is_file()


def _interval(given: str) -> int:
    try:
        interval_ns = parse_span(given)
    except ValueError as error:
        raise InputError(f"interval: {error}") from error
    if interval_ns < 1:
        raise InputError(f"interval: {given} is no time")
    return interval_ns


def _digest(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _title(files: Sequence[Path]) -> str:
    if len(files) == 1:
        return f"Capture {files[0].name}"
    return f"{len(files)} captures"


def _apart(conditions: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Add a number to conditions with equal names."""
    seen: dict[str, int] = {}
    apart = []
    for condition in conditions:
        name = condition.get("capture", "")
        seen[name] = seen.get(name, 0) + 1
        more = f" ({seen[name]})" if seen[name] > 1 else ""
        apart.append({"capture": name + more} if condition else condition)
    return apart
