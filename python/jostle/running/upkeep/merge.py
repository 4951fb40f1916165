"""Tidying up: small segments become larger ones, and what nobody needs goes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import StoreError, brief
from jostle.locks import LockFile, still_locked
from jostle.open_folder import OpenFolder
from jostle.running.disk import DamagedError, discard, store_error
from jostle.running.segments import folder as folders
from jostle.running.segments.content import MEASURES, RUNS, SCOPES
from jostle.running.segments.folder import Segment
from jostle.running.store import DAMAGED, Store
from jostle.running.writer import MOST_RUNS

if TYPE_CHECKING:
    import polars as pl

_LOCK = ".lock"
"""File of a store that is locked while it is tidied up."""
_SMALL = MOST_RUNS // 2
"""Segments with fewer runs are merged."""
_MOST_BYTES = 64_000_000
"""Of the files that become one segment."""
_MOST_DECODED_BYTES = 256_000_000
"""Of their tables in memory: equal runs take a thousand times the size of their files."""


@dataclass
class Tidied:
    """What was done.

    Attributes
    ----------
    before, after
        Segments.
    twice
        Runs that were stored more than once, and are now stored less often.
    freed_bytes
        How much smaller the store is.
    """

    before: int = 0
    after: int = 0
    twice: int = 0
    freed_bytes: int = 0


def tidy_up(store: Store, *, damaged: bool = False) -> Tidied:
    """Merge small segments, and leave out what is stored twice.

    Others may read and write meanwhile: what replaces segments is there before they go. Nothing is
    lost if it is interrupted.

    Parameters
    ----------
    store
        The store.
    damaged
        Whether what was moved aside is removed.

    Raises
    ------
    StoreError
        When the store cannot be written or locked, or is being tidied up already.
    """
    done = Tidied()
    try:
        size_bytes = _size(store.root)
        with _alone(store.root):
            segments = whole_segments(store)
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


def whole_segments(store: Store) -> list[Segment]:
    """All segments of a store that are what they should be; others are moved aside."""
    found = []
    for name in folders.names(store.root):
        try:
            found.append(folders.verified(store.root / folders.FOLDER / name))
        except DamagedError as damage:
            store.move_segment_aside(store.root / folders.FOLDER / name, str(damage))
    return found


def each_once(segments: list[Segment]) -> dict[str, set[str]]:
    """Segment → those of its runs that are to be found there: each run once, with series if any."""
    place: dict[str, Segment] = {}
    for segment in segments:
        for run in segment.runs:
            known = place.setdefault(run, segment)
            # What lies in the larger one stays, so that the smaller one may go.
            if _worth(segment) > _worth(known):
                place[run] = segment
    kept: dict[str, set[str]] = {segment.name: set() for segment in segments}
    for run, segment in place.items():
        kept[segment.name].add(run)
    return kept


def _worth(segment: Segment) -> tuple[bool, int, str]:
    return "flows" in segment.begins, len(segment.runs), segment.name


def _groups(segments: list[Segment], kept: dict[str, set[str]]) -> Iterator[list[Segment]]:
    """Segments that become one: of one form, and small or with runs that are elsewhere."""
    alike: dict[tuple[object, ...], list[Segment]] = {}
    for segment in segments:
        runs = len(kept[segment.name])
        if runs < _SMALL or runs < len(segment.runs):
            alike.setdefault(_form(segment), []).append(segment)
    for every in alike.values():
        group: list[Segment] = []
        limits = MOST_RUNS, _MOST_BYTES, _MOST_DECODED_BYTES
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
    """Tell what segments that can be merged have in common: tables, their columns and types."""
    tables = (RUNS, MEASURES, *segment.begins)
    return tuple((name, tuple(segment.schema(name).items())) for name in tables)


def _replace(store: Store, group: list[Segment], kept: dict[str, set[str]]) -> None:
    if len(group) == 1 and len(kept[group[0].name]) == len(group[0].runs):
        return
    names = {segment.name for segment in group}
    if any(kept[name] for name in names):
        made, _ = folders.write(store.root, merged(group, kept))
        # What replaces others has to be what it should be before they go.
        folders.verified(made)
        names.discard(made.name)
    with OpenFolder.at(store.root) as root, root.folder(folders.FOLDER) as inside:
        for name in names:
            discard(root, name, of=inside)


def merged(group: list[Segment], kept: dict[str, set[str]]) -> dict[str, pl.DataFrame]:
    """Put segments together: the tables that their runs would have had if written together."""
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


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    with OpenFolder.at(root) as folder:
        lock = LockFile.take(folder, _LOCK, wait_s=None, of=str(root))
        if lock is None:
            raise StoreError(still_locked(folder, _LOCK, f"the store {root}"))
    try:
        yield
    finally:
        lock.release()


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
