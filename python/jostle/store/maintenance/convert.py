"""Conversion of a store of earlier versions, with a folder per run, to segments."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from jostle.backends import canonical_json
from jostle.errors import StoreError
from jostle.safe_io.open_folder import OpenFolder
from jostle.store.disk import discard, store_error
from jostle.store.run_folder import StoredRun, has_captures
from jostle.store.segments.packing import PackedRun, SegmentTables
from jostle.store.store import Store, folder_names
from jostle.store.writer import MOST_BYTES, MOST_RUNS

if TYPE_CHECKING:
    import polars as pl


def convert(store: Store, told: Callable[[int], object] = lambda _runs: None) -> tuple[int, int]:
    """Write runs that have folders into segments, and remove the folders.

    Runs with captures keep their folders. A folder is removed after its run has been found in a
    segment, so an interruption loses no data.

    Parameters
    ----------
    store
        The store.
    told
        Called with the number of runs that were converted so far.

    Returns
    -------
    tuple of int
        Number of converted runs, and number of runs that keep their folders.

    Raises
    ------
    StoreError
        When the store cannot be read or written.
    """
    converted = left = 0
    waiting: list[PackedRun] = []
    size_bytes = 0
    for name in sorted(folder_names(store.root)):
        run = store.get(name)
        if not isinstance(run, StoredRun):
            continue  # Damaged, and moved aside.
        if run.captures:
            left += 1
            continue
        waiting.append(_packed(run))
        size_bytes += waiting[-1].size_bytes
        if len(waiting) >= MOST_RUNS or size_bytes >= MOST_BYTES:
            converted += _move(store, waiting)
            waiting, size_bytes = [], 0
            told(converted)
    return converted + _move(store, waiting), left


def runs_with_captures(store: Store) -> list[SegmentTables]:
    """Return a segment's tables of each run that keeps its folder because it has captures.

    Raises
    ------
    StoreError
        When a run cannot be read.
    """
    names = sorted(name for name in folder_names(store.root) if has_captures(store.root / name))
    runs = map(store.get, names)
    return [SegmentTables([_packed(run)]) for run in runs if isinstance(run, StoredRun)]


def _packed(run: StoredRun) -> PackedRun:
    tables: dict[str, pl.DataFrame] = {"flows": run.flows, "links": run.links}
    tables["internals"] = run.internals
    for name, frame in (("acks", run.acks), ("transfers", run.transfers)):
        if frame is not None:
            tables[name] = frame
    made = run.provenance
    return PackedRun(
        name=run.run_id,
        backend=made["backend"],
        backend_version=made["backend_version"],
        seed=run.spec["seed"],
        spec=canonical_json(run.spec),
        summary=canonical_json(run.summary),
        tables=tables,
    )


def _move(store: Store, runs: list[PackedRun]) -> int:
    if not runs:
        return 0
    names = [run.name for run in runs]
    store.put_all(runs)
    there = store.find_in_segments(names)
    if missing := [name for name in names if name not in there]:
        raise StoreError(f"cannot store run {missing[0]}: what is written there does not last")
    try:
        with OpenFolder.at(store.root) as root:
            for name in names:
                with suppress(FileNotFoundError):  # Another process has done it.
                    discard(root, name)
    except OSError as error:
        raise store_error(store.root, error) from error
    return len(names)
