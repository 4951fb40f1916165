"""Check of a store's integrity, without changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from jostle.errors import StoreError
from jostle.store.disk import DamagedError, store_error
from jostle.store.parquet_layout import LayoutError
from jostle.store.run_folder import verified_summary
from jostle.store.segments import folder
from jostle.store.segments.packing import RUNS
from jostle.store.store import folder_names
from jostle.store.stored_plans import plan_names, read_plan
from jostle.store.summary_check import is_summary_of


@dataclass
class IntegrityReport:
    """Result of a check.

    Attributes
    ----------
    segments, folders, plans
        Their numbers.
    in_segments
        Number of runs in intact segments; a run in several segments counts several times.
    damaged
        Path of a damaged item → reason.
    """

    segments: int = 0
    folders: int = 0
    plans: int = 0
    in_segments: int = 0
    damaged: dict[Path, str] = field(default_factory=dict)


def check(root: Path) -> IntegrityReport:
    """Check every file of every run, and every plan.

    Raises
    ------
    StoreError
        When the store may not be read.
    """
    found = IntegrityReport()
    try:
        for name in folder.names(root):
            path = root / folder.FOLDER / name
            found.segments += 1
            try:
                found.in_segments += _segment(path)
            except DamagedError as damage:
                found.damaged[path] = str(damage)
        for name in sorted(folder_names(root)):
            found.folders += 1
            try:
                verified_summary(root / name)
            except DamagedError as damage:
                found.damaged[root / name] = str(damage)
    except OSError as error:
        raise store_error(root, error) from error
    for name, _ in plan_names(root):
        found.plans += 1
        try:
            read_plan(root, name)
        except StoreError as error:
            found.damaged[root / ".plans" / name] = str(error)
    return found


def _segment(path: Path) -> int:
    """Check the summaries and series of a segment, in addition to the checks of a reader."""
    segment = folder.verified(path)
    try:
        segment.decoded_bytes()
        texts = segment.read(RUNS, ["spec", "summary"])
        for run, spec, summary in zip(segment.runs, texts["spec"], texts["summary"], strict=True):
            if not is_summary_of(json.loads(summary), json.loads(spec)):
                raise DamagedError(f"the summary of run {run} is not one of that run")
        for kind, begins in segment.begins.items():
            owners = segment.read(kind, ["run"])["run"]
            lengths = zip(segment.runs, begins, begins[1:], strict=False)
            if any((owners[begin:end] != run).any() for run, begin, end in lengths):
                raise DamagedError(f"{kind}.parquet has rows of other runs")
    except LayoutError as error:
        raise DamagedError(f"a table of it cannot be read: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedError("it is not readable") from error
    return len(segment.runs)
