"""A store on object storage (S3, Google Cloud Storage, Azure), with a local copy.

Segments are first written to the local copy, as in any store. Then their tables are uploaded, and
the manifest last. A segment is visible to others when its manifest exists, which is created once
and never replaced. Segments of others are downloaded when one of their runs is requested, and
verified like local ones.
"""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.errors import InputError, StoreError, brief
from jostle.safe_io.open_folder import OpenFolder
from jostle.store import parquet_files
from jostle.store.disk import DamagedError, discard, partial_folder, store_error
from jostle.store.segments import folder as folders
from jostle.store.segments.packing import RUNS, rows_of
from jostle.store.store import Store
from jostle.store.stored_plans import PLANS, plan_names

if TYPE_CHECKING:
    from obstore.store import ObjectStore

    from jostle.backends import Run, RunRecord
    from jostle.store.run_folder import StoredRun

T = TypeVar("T")
_SHARED = ".shared"
"""Folder with the names of segments that are also on the object storage."""
_AT_ONCE = 8
"""Number of parallel downloads."""


def is_url(where: str | os.PathLike[str]) -> bool:
    """Return whether a store is on object storage."""
    return isinstance(where, str) and "://" in where


def open_store(
    where: str | os.PathLike[str], warn: Callable[[str], object] = warnings.warn
) -> Store:
    """Open a store in a folder or on object storage.

    Raises
    ------
    StoreError
        When it cannot be used.
    """
    return SharedStore(str(where), warn) if is_url(where) else Store(where, warn)


class Bucket:
    """The objects of a store.

    Parameters
    ----------
    url
        ``s3://BUCKET/PREFIX``, ``gs://…`` or ``az://…``. Credentials, region and endpoint are taken
        from the environment (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``, …).

    Raises
    ------
    InputError
        When obstore is not installed, or there is no such kind of storage.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @functools.cached_property
    def _objects(self) -> ObjectStore:
        try:
            from obstore.store import from_url
        except ImportError as error:
            text = 'obstore is not installed: pip install "jostle[object-storage]"'
            raise InputError(text) from error
        return self._translate_errors(lambda: from_url(self.url))

    def segments(self) -> set[str]:
        """Return the names of the complete segments on the object storage."""
        import obstore

        pages = self._translate_errors(lambda: list(obstore.list(self._objects, folders.FOLDER)))
        paths = [one["path"].split("/") for page in pages for one in page]
        return {path[-2] for path in paths if path[-1] == folders.MANIFEST and len(path) > 1}

    def plans(self) -> list[str]:
        """Return the names of the plans."""
        import obstore

        pages = self._translate_errors(lambda: list(obstore.list(self._objects, PLANS)))
        return [one["path"].rpartition("/")[2] for page in pages for one in page]

    def get(self, path: str) -> bytes:
        """Download an object.

        Raises
        ------
        FileNotFoundError
            When it does not exist.
        """
        import obstore

        return self._translate_errors(lambda: bytes(obstore.get(self._objects, path).bytes()))

    def put(self, path: str, content: bytes, *, once: bool = False) -> None:
        """Upload an object; with `once`, unless it exists."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        def write() -> None:
            try:
                mode: Any = "create" if once else "overwrite"
                obstore.put(self._objects, path, content, mode=mode)
            except AlreadyExistsError:
                # The name is a digest of the content, so the existing object is the same.
                return

        self._translate_errors(write)

    def _translate_errors(self, ask: Callable[[], T]) -> T:
        from obstore.exceptions import BaseError

        try:
            return ask()
        except FileNotFoundError:
            raise
        except (BaseError, OSError, ValueError) as error:
            text = str(error).partition("\n")[0]
            raise StoreError(f"cannot use the store {self.url}: {brief(text)}") from error

    def push(self, segment: Path) -> None:
        """Upload a segment: its tables, then its manifest, which is created once."""
        content = {path.name: path.read_bytes() for path in segment.iterdir() if path.is_file()}
        manifest = content.pop(folders.MANIFEST)
        for name, one in sorted(content.items()):
            self.put(f"{folders.FOLDER}/{segment.name}/{name}", one)
        self.put(f"{folders.FOLDER}/{segment.name}/{folders.MANIFEST}", manifest, once=True)

    def pull(self, name: str, root: Path) -> None:
        """Download a segment into a store's folder, without verification, which its reader does."""
        place = f"{folders.FOLDER}/{name}"
        manifest = self.get(f"{place}/{folders.MANIFEST}")
        files = folders.files_of_manifest(manifest)
        with OpenFolder.at(root) as store, partial_folder(store, "fetched") as partial:
            for file in files:
                try:
                    partial.content.write_new(file, self.get(f"{place}/{file}"), synced=True)
                except FileNotFoundError:
                    continue  # Then it is damaged, and will be found to be.
            partial.content.write_new(folders.MANIFEST, manifest, synced=True)
            partial.content.sync()
            with store.folder(folders.FOLDER, make=True) as segments:
                if not segments.has(name):
                    partial.publish(segments, name)

    def runs(self, name: str) -> tuple[frozenset[str], bool]:
        """Return the names of a segment's runs, unverified, and whether it has series."""
        columns = ["run", rows_of("flows")]
        try:
            content = self.get(f"{folders.FOLDER}/{name}/{RUNS}.parquet")
            frame = parquet_files.read_content(content, columns, rows=folders.MOST_RUNS)
        except (FileNotFoundError, ValueError):
            return frozenset(), False  # It is of no use.
        return frozenset(frame["run"]), frame[rows_of("flows")].null_count() == 0


class SharedStore(Store):
    """A store on object storage, with a local copy.

    Parameters
    ----------
    url
        See `Bucket`.
    warn
        As for `Store`.
    """

    takes_captures = False

    def __init__(self, url: str, warn: Callable[[str], object] = warnings.warn) -> None:
        self.url = url
        self._bucket = Bucket(url)
        self._elsewhere: dict[str, tuple[frozenset[str], bool]] = {}
        super().__init__(copy_of(url), warn)

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[Any, ...]]:
        return SharedStore, (self.url,)

    def find(self, runs: Iterable[str], *, series: bool) -> dict[str, Run]:
        """Look up runs, including runs that others have stored; see `Store.find`."""
        wanted = list(runs)
        self._fetch(set(wanted), series=series)
        return super().find(wanted, series=series)

    def count(self, runs: Collection[str]) -> int:
        """Return the number of given runs that are stored; see `Store.count`."""
        self._fetch(set(runs), series=False)
        return super().count(runs)

    def put(self, record: RunRecord) -> StoredRun:
        """Raise an error: captures are stored in run folders, which need a file system."""
        del record
        raise StoreError("captures need a store on a file system: give --store a folder")

    def share_plan(self, plan: Path | None) -> None:
        """Upload the file of a plan."""
        if plan is not None and plan.is_file():
            self._bucket.put(f"{PLANS}/{plan.name}", plan.read_bytes())

    def _share(self, segment: Path) -> None:
        self._bucket.push(segment)
        self._mark(segment.name)

    def _mark(self, name: str) -> None:
        with OpenFolder.below(self.root, _SHARED, make=True) as shared:
            shared.replace(name, b"")

    def _fetch(self, wanted: set[str], *, series: bool) -> None:
        """Download segments with wanted runs, and synchronise both sides."""
        try:
            there = self._bucket.segments()
            here = set(folders.names(self.root))
            shared = self.root / _SHARED
            for name in here - there:
                if (shared / name).exists():
                    self._forget(name)
                else:
                    # The process was killed, or had no connection.
                    self._share_if_intact(name)
            unknown = sorted(there - here - self._elsewhere.keys())
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                self._elsewhere |= zip(
                    unknown, threads.map(self._bucket.runs, unknown), strict=True
                )
                needed = [
                    name
                    for name in sorted(there - here)
                    for runs, has_series in [self._elsewhere[name]]
                    if not runs.isdisjoint(wanted) and (has_series or not series)
                ]
                for name, _ in zip(needed, threads.map(self._pull, needed), strict=True):
                    self._mark(name)
        except FileNotFoundError as error:
            raise StoreError(f"{self.url} changes while it is read: {error}") from error
        except OSError as error:
            raise store_error(self.root, error) from error

    def _forget(self, name: str) -> None:
        """Remove a segment that another user has removed from the object storage."""
        with OpenFolder.at(self.root) as root:
            with root.folder(folders.FOLDER) as segments:
                discard(root, name, of=segments)
            with root.folder(_SHARED) as shared:
                shared.remove(name)

    def _pull(self, name: str) -> None:
        self._bucket.pull(name, self.root)

    def _share_if_intact(self, name: str) -> None:
        folder = self.root / folders.FOLDER / name
        try:
            folders.verified(folder)
        except DamagedError as damage:
            self.move_segment_aside(folder, str(damage))
        else:
            self._share(folder)


def copy_of(url: str) -> Path:
    """Return the folder of a store's local copy, in the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    cache = (base if base.is_absolute() else Path.home() / ".cache") / "jostle" / "stores"
    return cache / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:32]


def push(root: Path, url: str) -> int:
    """Upload the segments and plans of a folder; return the number of new ones.

    Raises
    ------
    StoreError
        When that fails.
    """
    bucket = Bucket(url)
    new = sorted(set(folders.names(root)) - bucket.segments())
    for name in new:
        try:
            folders.verified(root / folders.FOLDER / name)
        except DamagedError as damage:
            raise StoreError(
                f"segment {name} is damaged ({damage}): nothing of it goes"
            ) from damage
        bucket.push(root / folders.FOLDER / name)
    for plan, _ in plan_names(root):
        bucket.put(f"{PLANS}/{plan}", (root / PLANS / plan).read_bytes())
    return len(new)


def pull(url: str, store: Store) -> int:
    """Download all segments and plans; return the number of new segments.

    Raises
    ------
    StoreError
        When that fails.
    """
    bucket = Bucket(url)
    try:
        new = sorted(bucket.segments() - set(folders.names(store.root)))
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for _ in threads.map(lambda name: bucket.pull(name, store.root), new):
                pass
        with OpenFolder.below(store.root, PLANS, make=True) as folder:
            known = {name for name, _ in plan_names(store.root)}
            for plan in set(bucket.plans()) - known:
                if Path(plan).name == plan:
                    folder.replace(plan, bucket.get(f"{PLANS}/{plan}"))
    except OSError as error:
        raise store_error(store.root, error) from error
    return len(new)
