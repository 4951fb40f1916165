"""Compaction of a store: merges small segments and removes unnecessary files."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import StoreError, brief
from jostle.safe_io.folder_lock import locked_file
from jostle.safe_io.open_folder import OpenFolder
from jostle.store.disk import DamagedError, discard, store_error
from jostle.store.segments import folder as folders
from jostle.store.segments.folder import Segment
from jostle.store.segments.packing import MEASURES, RUNS, SCOPES
from jostle.store.store import DAMAGED, Store
from jostle.store.writer import MOST_BYTES, MOST_RUNS

if TYPE_CHECKING:
    import polars as pl

_LOCK = ".lock"
"""Lock file of a store during compaction."""
_SMALL = MOST_RUNS // 2
"""Segments with fewer runs are merged."""
"""Largest total size of files that are merged into one segment."""
_MOST_DECODED_BYTES = 256_000_000
"""Largest size of their tables in memory: equal runs may expand a thousandfold."""


@dataclass
class CompactionReport:
    """Result of a compaction.

    Attributes
    ----------
    before, after
        Number of segments.
    twice
        Number of runs whose duplicates were removed.
    freed_bytes
        Reduction of the store's size.
    """

    before: int = 0
    after: int = 0
    twice: int = 0
    freed_bytes: int = 0


def compact_store(store: Store, *, damaged: bool = False) -> CompactionReport:
    """Merge small segments, and remove duplicates of runs.

    Other processes may read and write at the same time, because new segments are written before old
    ones are removed. An interruption loses no data.

    Parameters
    ----------
    store
        The store.
    damaged
        Whether damaged items that were moved aside are removed.

    Raises
    ------
    StoreError
        When the store cannot be written or locked, or another compaction is active.
    """
    done = CompactionReport()
    try:
        size_bytes = _size(store.root)
        with (
            OpenFolder.at(store.root) as folder,
            locked_file(
                folder, _LOCK, str(store.root), lambda text: StoreError(f"the store {text}")
            ),
        ):
            segments = intact_segments(store)
            done.before = len(segments)
            kept = each_once(segments)
            done.twice = sum(len(s.runs) for s in segments) - sum(map(len, kept.values()))
            for group in _groups(segments, kept):
                _replace(store, group, kept)
            done.after = len(list(folders.names(store.root)))
            if damaged:
                with OpenFolder.at(store.root) as root:
                    root.remove_tree(DAMAGED)
        done.freed_bytes = size_bytes - _size(store.root)
    except OSError as error:
        raise store_error(store.root, error) from error
    except ValueError as error:
        text = f"cannot merge segments of the store {store.root}: {brief(str(error))}"
        raise StoreError(text) from error
    return done


def intact_segments(store: Store) -> list[Segment]:
    """Return all intact segments of a store; damaged ones are moved aside."""
    found = []
    for name in folders.names(store.root):
        try:
            found.append(folders.verified(store.root / folders.FOLDER / name))
        except DamagedError as damage:
            store.move_segment_aside(store.root / folders.FOLDER / name, str(damage))
    return found


def each_once(segments: list[Segment]) -> dict[str, set[str]]:
    """Assign each run to one segment, preferably with series: segment → its runs."""
    place: dict[str, Segment] = {}
    for segment in segments:
        for run in segment.runs:
            known = place.setdefault(run, segment)
            # Prefer the larger segment, so that the smaller one can be removed.
            if _worth(segment) > _worth(known):
                place[run] = segment
    kept: dict[str, set[str]] = {segment.name: set() for segment in segments}
    for run, segment in place.items():
        kept[segment.name].add(run)
    return kept


def _worth(segment: Segment) -> tuple[bool, int, str]:
    return "flows" in segment.begins, len(segment.runs), segment.name


def _groups(segments: list[Segment], kept: dict[str, set[str]]) -> Iterator[list[Segment]]:
    """Yield groups to merge: equal tables, and small or with runs that are in other segments."""
    alike: dict[tuple[object, ...], list[Segment]] = {}
    for segment in segments:
        runs = len(kept[segment.name])
        if runs < _SMALL or runs < len(segment.runs):
            alike.setdefault(_form(segment), []).append(segment)
    for every in alike.values():
        group: list[Segment] = []
        limits = MOST_RUNS, MOST_BYTES, _MOST_DECODED_BYTES
        taken: tuple[int, ...] = (0, 0, 0)
        for segment in every:
            more = len(kept[segment.name]), _size(segment.folder), segment.decoded_bytes()
            together = tuple(map(sum, zip(taken, more, strict=True)))
            if group and any(map(operator.gt, together, limits)):
                yield group
                group, together = [], more
            group.append(segment)
            taken = together
        yield group


def _form(segment: Segment) -> tuple[object, ...]:
    """Return a key that is equal for segments that can be merged: tables, columns and types."""
    tables = (RUNS, MEASURES, *segment.begins)
    return tuple((name, tuple(segment.schema(name).items())) for name in tables)


def _replace(store: Store, group: list[Segment], kept: dict[str, set[str]]) -> None:
    if len(group) == 1 and len(kept[group[0].name]) == len(group[0].runs):
        return
    names = {segment.name for segment in group}
    if any(kept[name] for name in names):
        made, _ = folders.write(store.root, merged(group, kept))
        # Verify the new segment before the old ones are removed.
        folders.verified(made)
        names.discard(made.name)
    with OpenFolder.at(store.root) as root, root.folder(folders.FOLDER) as inside:
        for name in names:
            discard(root, name, of=inside)


def merged(group: list[Segment], kept: dict[str, set[str]]) -> dict[str, pl.DataFrame]:
    """Merge segments into the tables of a single segment with their runs."""
    import polars as pl

    tables = {}
    for name in (RUNS, MEASURES, *group[0].begins):
        parts = [
            segment.read(name).filter(pl.col("run").is_in(list(kept[segment.name])))
            for segment in group
        ]
        order: list[pl.Expr | str] = ["run"]
        if name == MEASURES:
            places = {scope: at for at, scope in enumerate(SCOPES)}
            order.insert(0, pl.col("scope").replace_strict(places))
        tables[name] = pl.concat(parts).sort(*order, maintain_order=True)
    return tables


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
