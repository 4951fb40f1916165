"""The store: finished runs, none of which ever changes.

    RUN/            a run with captures, or of earlier versions (`run_folder.py`)
    segments/…/     many runs together (`segments/`)
    .index.parquet  which run is in which segment (`segments/index.py`)
    .plans/         which runs belong together (`plans.py`)
    .damaged/       what was not what it should be, moved aside
    .partial/       what is being written

Everything is written under another name, synced, then renamed: it is there whole or not at all.
"""

from __future__ import annotations

import errno
import os
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import StoreError
from jostle.locked_folders import remove_abandoned
from jostle.open_folder import OpenFolder
from jostle.running.disk import PARTIAL, DamagedError, partial_folder, store_error
from jostle.running.run_folder import StoredRun, fill, verified_summary
from jostle.running.segments import folder as segment_folders
from jostle.running.segments.content import PackedRun, segment_tables
from jostle.running.segments.reading import SegmentRun, Segments

if TYPE_CHECKING:
    from jostle.backends import Run, RunRecord
    from jostle.locked_folders import Partial

DAMAGED = ".damaged"
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_RUN_ID_DIGITS = 32


class Reader:
    """A store that is only read: nothing is moved aside, a damaged run is an error.

    Parameters
    ----------
    root
        The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._damaged: dict[Path, str] = {}
        self._segments = Segments(root, self._damaged.__setitem__)

    def names(self) -> frozenset[str]:
        """Names of all runs, as they stand there.

        Raises
        ------
        StoreError
            When the folder cannot be read.
        """
        return frozenset(folder_names(self.root)) | self._segments.names()

    def changed(self) -> tuple[int, ...]:
        """Tell one state of the store from another: runs are there that were not.

        Raises
        ------
        StoreError
            When the folder cannot be read.
        """
        try:
            places = [self.root, self.root / segment_folders.FOLDER]
            return tuple(place.stat().st_mtime_ns for place in places if place.exists())
        except OSError as error:
            raise store_error(self.root, error) from error

    def get(self, run_id: str) -> Run:
        """Look a run up.

        Raises
        ------
        StoreError
            When it is not there, not whole, or may not be read.
        """
        found = None if self._has_folder(run_id) else self._in_segment(run_id, series=True)
        return found or StoredRun(self.root / run_id, self._of_folder(run_id, whole=True))

    def summary(self, run_id: str) -> Mapping[str, Any]:
        """Look up the summary of a run alone, held against its name as that of a whole run is.

        The series of a run with a folder are not looked at, which takes most of the time.

        Raises
        ------
        StoreError
            As for `get`.
        """
        found = None if self._has_folder(run_id) else self._in_segment(run_id, series=False)
        return self._of_folder(run_id, whole=False) if found is None else found.summary

    def _has_folder(self, run_id: str) -> bool:
        return (self.root / run_id).exists()

    def _in_segment(self, run_id: str, *, series: bool) -> SegmentRun | None:
        for wanted in (True, False) if series else (False,):
            found = self._segments.find([run_id], series=wanted).get(run_id)
            if found is not None:
                return found
        for path, why in self._damaged.items():
            raise StoreError(f"run {run_id} cannot be used: segment {path.name}: {why}")
        return None

    def _of_folder(self, run_id: str, *, whole: bool) -> Mapping[str, Any]:
        try:
            return verified_summary(self.root / run_id, whole=whole)
        except DamagedError as damage:
            raise StoreError(f"run {run_id} cannot be used: {damage}") from damage
        except OSError as error:
            raise store_error(self.root / run_id, error) from error


class Store:
    """A folder of runs.

    Parameters
    ----------
    root
        The folder; made if it is not there.
    warn
        Told about damaged runs that were moved aside.

    Raises
    ------
    StoreError
        When the folder cannot be made, read or written.
    """

    takes_captures = True
    """Whether runs with captures can be stored."""

    def __init__(
        self, root: str | os.PathLike[str], warn: Callable[[str], object] = warnings.warn
    ) -> None:
        self.root = Path(root)
        self._warn = warn
        self._segments = Segments(self.root, self.move_segment_aside, keeps_index=True)
        try:
            self._prepare()
            with os.scandir(self.root) as entries:
                links = [Path(entry) for entry in entries if entry.is_symlink()]
            for link in links:
                if link.name.startswith(".") or link.name == segment_folders.FOLDER:
                    raise StoreError(f"{link} is a symbolic link: a store has none")
        except OSError as error:
            raise store_error(self.root, error) from error

    def _prepare(self) -> None:
        """Make what is not there and clear what others left; a store that is read-only can be read.

        Whoever puts a run into one is told then.
        """
        try:
            with OpenFolder.at(self.root, make=True) as root, partial_folder(root, "probe"):
                pass
            with OpenFolder.below(self.root, PARTIAL) as partial:
                remove_abandoned(partial)
        except OSError as error:
            if error.errno not in _READ_ONLY or not self.root.is_dir():
                raise

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[Any, ...]]:
        # Who is warned is asked for in the process that made the store; others warn as Python does.
        return Store, (self.root,)

    def __contains__(self, run_id: str) -> bool:
        """Whether a run of that name was stored; `get` also checks that it is whole."""
        return self.count([run_id]) == 1

    def count(self, runs: Collection[str]) -> int:
        """How many runs of those names were stored; `find` also checks that they are whole."""
        return len(set(runs) & (set(folder_names(self.root)) | self._segments.names()))

    def get(self, run_id: str) -> Run | None:
        """Look up a run; a damaged one is moved aside and counts as absent.

        Raises
        ------
        StoreError
            When the run is there but may not be read.
        """
        return self.find([run_id], series=False).get(run_id)

    def find(self, runs: Iterable[str], *, series: bool) -> dict[str, Run]:
        """Look runs up by name; damaged ones are moved aside and count as absent.

        Parameters
        ----------
        runs
            Their names.
        series
            Whether runs of which only the summary was kept count as absent, too.

        Returns
        -------
        dict
            Those that are there, by name.

        Raises
        ------
        StoreError
            When one is there but may not be read.
        """
        wanted = list(dict.fromkeys(runs))
        folders = folder_names(self.root) if len(wanted) > 1 else wanted
        found: dict[str, Run] = {}
        for run in set(folders).intersection(wanted):
            stored = self._of_folder(run)
            if stored is not None:
                found[run] = stored
        left = [run for run in wanted if run not in found]
        found.update(self._segments.find(left, series=series))
        return found

    def find_in_segments(self, runs: Iterable[str]) -> dict[str, SegmentRun]:
        """Look runs up in segments alone; see `find`."""
        return self._segments.find(runs, series=False)

    def _of_folder(self, run_id: str) -> StoredRun | None:
        folder = self.root / run_id
        if not folder.exists():
            return None
        try:
            return StoredRun(folder, verified_summary(folder))
        except DamagedError as damage:
            self._move_aside(folder, f"run {run_id}", str(damage))
            return None
        except OSError as error:
            raise store_error(folder, error) from error

    def put(self, record: RunRecord) -> StoredRun:
        """Store a run in a folder of its own, unless another process has stored it meanwhile.

        Raises
        ------
        StoreFullError
            When there is no room for it.
        StoreError
            When the folder cannot be written.
        """
        folder = self.root / record.run_id
        try:
            with OpenFolder.at(self.root) as root, partial_folder(root, record.run_id) as partial:
                fill(partial.content, record)
                return self._publish(partial, root, folder)
        except OSError as error:
            raise store_error(self.root, error) from error

    def put_all(self, runs: Sequence[PackedRun]) -> None:
        """Store runs together: one segment for all that have the same tables.

        Raises
        ------
        StoreFullError
            When there is no room for them.
        StoreError
            When the folder cannot be written.
        """
        alike: dict[tuple[object, ...], list[PackedRun]] = {}
        for run in runs:
            alike.setdefault(run.form, []).append(run)
        try:
            for group in alike.values():
                self._put_segment(group)
        except OSError as error:
            raise store_error(self.root, error) from error

    def _put_segment(self, runs: Sequence[PackedRun]) -> None:
        tables = segment_tables(runs)
        for _ in range(3):
            folder, new = segment_folders.write(self.root, tables)
            if new:
                self._share(folder)
                return
            try:
                segment_folders.verified(folder)
            except DamagedError as damage:
                self.move_segment_aside(folder, str(damage))
            else:
                self._share(folder)
                return
        raise StoreError(f"cannot store {len(runs)} runs: what is written there does not last")

    def _share(self, segment: Path) -> None:
        """Let others know of a segment that was written; here they see it already."""

    def share_plan(self, plan: Path | None) -> None:
        """Let others know of a plan that was carried out; here they see it already."""

    def _publish(self, partial: Partial, root: OpenFolder, folder: Path) -> StoredRun:
        # A rename onto a folder that has content fails; then another writer was faster, and its
        # run is the same as ours, unless it is damaged and is moved out of the way.
        for _ in range(3):
            try:
                partial.publish(root, folder.name)
                root.sync()
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            stored = self._of_folder(folder.name)
            if stored is not None:
                return stored
        raise StoreError(f"cannot store run {folder.name}: what is written there does not last")

    def move_segment_aside(self, folder: Path, why: str) -> None:
        """Move a damaged segment out of the way, and say so."""
        self._move_aside(folder, f"segment {folder.name[:12]}", why)

    def _move_aside(self, folder: Path, what: str, why: str) -> None:
        aside = self.root / DAMAGED / f"{folder.name}-{uuid.uuid4().hex[:8]}"
        inside = folder.parent.relative_to(self.root).parts
        try:
            with (
                OpenFolder.below(self.root, *inside) as parent,
                OpenFolder.below(self.root, DAMAGED, make=True) as damaged,
            ):
                parent.move(folder.name, damaged, aside.name)
        except FileNotFoundError:
            return  # Another process has done it.
        except OSError as error:
            raise store_error(folder, error) from error
        self._warn(f"{what} in the store is damaged ({why}): moved to {aside}")


def folder_names(root: Path) -> list[str]:
    """Names of the runs that have folders."""
    try:
        return [name for name in os.listdir(root) if len(name) == _RUN_ID_DIGITS]
    except OSError as error:
        raise store_error(root, error) from error
