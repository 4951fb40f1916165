"""Whether everything in a store is what was written there. Nothing is changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from jostle.errors import StoreError
from jostle.running.disk import DamagedError, store_error
from jostle.running.parquet_layout import LayoutError
from jostle.running.plans import plan_names, read_plan
from jostle.running.run_folder import verified_summary
from jostle.running.segments import folder as folders
from jostle.running.segments.content import RUNS
from jostle.running.store import folder_names
from jostle.running.summaries import is_summary_of


@dataclass
class Findings:
    """What a check has found.

    Attributes
    ----------
    segments, folders, plans
        How many there are.
    in_segments
        Runs in segments that are whole; one that is in several counts each time.
    damaged
        What cannot be used → why.
    """

    segments: int = 0
    folders: int = 0
    plans: int = 0
    in_segments: int = 0
    damaged: dict[Path, str] = field(default_factory=dict)


def check(root: Path) -> Findings:
    """Check every file of every run, and every plan.

    Raises
    ------
    StoreError
        When the store may not be read.
    """
    found = Findings()
    try:
        for name in folders.names(root):
            path = root / folders.FOLDER / name
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
    """Check a segment beyond what a reader does: summaries, and whose rows the series are."""
    segment = folders.verified(path)
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
