"""The store: finished runs, which never change.

    RUN/            a run with captures, or of earlier versions (`run_folder.py`)
    segments/…/     many runs together (`segments/`)
    .index.parquet  index of runs by segment (`segments/index.py`)
    .plans/         runs of each plan (`stored_plans.py`)
    .damaged/       damaged items, moved aside
    .partial/       files that are being written

Everything is written under another name, synced, then renamed, so that writes are atomic.
"""

from __future__ import annotations

import errno
import os
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jostle.backends.base import RUN_ID_DIGITS
from jostle.errors import StoreError
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import remove_abandoned
from jostle.store.disk import PARTIAL, DamagedError, partial_folder, store_error
from jostle.store.run_folder import StoredRun, fill, verified_summary
from jostle.store.segments import folder as segment_folders
from jostle.store.segments.packing import PackedRun, SegmentTables
from jostle.store.segments.reader import SegmentRun, Segments

if TYPE_CHECKING:
    from jostle.backends import Run, RunRecord
    from jostle.safe_io.scratch_folder import PartialFolder

DAMAGED = ".damaged"
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


class Reader:
    """Read-only access to a store: nothing is moved aside, and a damaged run is an error.

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
        """Return the names of all runs, unverified.

        Raises
        ------
        StoreError
            When the folder cannot be read.
        """
        return frozenset(folder_names(self.root)) | self._segments.names()

    def changed(self) -> tuple[int, ...]:
        """Return a value that differs between states of the store, such as after new runs.

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
        """Look up a run.

        Raises
        ------
        StoreError
            When it does not exist, is damaged, or may not be read.
        """
        found = None if self._has_folder(run_id) else self._in_segment(run_id, series=True)
        return found or StoredRun(self.root / run_id, self._of_folder(run_id, whole=True))

    def summary(self, run_id: str) -> Mapping[str, Any]:
        """Look up the summary of a run, and verify it by the run's name.

        The series of a run with a folder are not verified, because that takes most of the time.

        Raises
        ------
        StoreError
            As for `get`.
        """
        found = None if self._has_folder(run_id) else self._in_segment(run_id, series=False)
        return self._of_folder(run_id, whole=False) if found is None else found.summary

    def find_in_segments(self, runs: Iterable[str]) -> dict[str, SegmentRun]:
        """Look up runs in segments only; those that are not there, or are damaged, are left out.

        Raises
        ------
        StoreError
            When the store may not be read.
        """
        return self._segments.find(runs, series=False)

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
        The folder; created if it does not exist.
    warn
        Called for damaged runs that were moved aside.

    Raises
    ------
    StoreError
        When the folder cannot be created, read or written.
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
        """Create missing folders and remove remains of other processes.

        A read-only store can be read. Storing a run in it raises an error.
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
        # `warn` stays in the process that created the store; copies use Python's warnings.
        return Store, (self.root,)

    def __contains__(self, run_id: str) -> bool:
        """Return whether a run of that name is stored; `get` also verifies it."""
        return self.count([run_id]) == 1

    def count(self, runs: Collection[str]) -> int:
        """Return the number of given runs that are stored; `find` also verifies them."""
        return len(set(runs) & (set(folder_names(self.root)) | self._segments.names()))

    def get(self, run_id: str) -> Run | None:
        """Look up a run; a damaged one is moved aside and counts as absent.

        Raises
        ------
        StoreError
            When the run exists but may not be read.
        """
        return self.find([run_id], series=False).get(run_id)

    def find(self, runs: Iterable[str], *, series: bool) -> dict[str, Run]:
        """Look up runs by name; damaged ones are moved aside and count as absent.

        Parameters
        ----------
        runs
            Their names.
        series
            Whether runs without series also count as absent.

        Returns
        -------
        dict
            Runs that were found, by name.

        Raises
        ------
        StoreError
            When a run exists but may not be read.
        """
        wanted = list(runs)
        folders = folder_names(self.root) if len(wanted) > 1 else wanted
        found: dict[str, Run] = {}
        for run in set(folders).intersection(wanted):
            stored = self._of_folder(run)
            if stored is not None:
                found[run] = stored
        left = [run for run in wanted if run not in found] if found else wanted
        in_segments = self._segments.find(left, series=series) if left else {}
        # Of a million runs, two dictionaries take 84 MB.
        return found | in_segments if found else cast("dict[str, Run]", in_segments)

    def find_in_segments(self, runs: Iterable[str]) -> dict[str, SegmentRun]:
        """Look up runs in segments only; see `find`."""
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
        """Store a run in a separate folder, unless another process has stored it meanwhile.

        Raises
        ------
        StoreFullError
            When there is not enough space.
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
        """Store runs together, with one segment for all runs with equal tables.

        Raises
        ------
        StoreFullError
            When there is not enough space.
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
        tables = SegmentTables(runs)
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
        """Share a written segment with other machines; a store in a folder needs no action."""

    def share_plan(self, plan: Path | None) -> None:
        """Share the file of a plan with other machines; a store in a folder needs no action."""

    def _publish(self, partial: PartialFolder, root: OpenFolder, folder: Path) -> StoredRun:
        # A rename onto a non-empty folder fails: another writer was faster, and its run is the
        # same as ours, unless it is damaged and is moved aside.
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
        """Move a damaged segment aside, and warn."""
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
    """Return the names of the runs that have folders."""
    try:
        return [name for name in os.listdir(root) if len(name) == RUN_ID_DIGITS]
    except OSError as error:
        raise store_error(root, error) from error
