"""The store: a folder of immutable run folders, named by run id.

A run folder holds `spec.json`, `summary.json`, `provenance.json`, `flows.parquet`,
`links.parquet`, `internals.parquet`, for some runs `acks.parquet`,
`transfers.parquet` and `captures/*.pcapng`, and
`manifest.json` with the SHA-256 of each of them. These files are the same, byte for byte, for the
same run. `timing.json` (how long the run took here) stands beside them and outside the manifest.

Beside them `.plans` says which runs belong together (`plans.py`); `.damaged` holds what was moved
aside.

A folder is written under another name, synced, then renamed: a run is there whole or not at all.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import io
import json
import math
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jostle.backends import run_id
from jostle.backends.captures import files
from jostle.errors import StoreError, StoreFullError, brief
from jostle.foreign_files import STORED_BYTES, open_regular, read_json
from jostle.locked_folders import Partial, remove_abandoned
from jostle.running.plans import PLANS

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import RunRecord, Spec

FORMAT = "jostle.run/1"
_MANIFEST = "manifest.json"
_TIMING = "timing.json"
_PARTIAL = ".partial"
_DAMAGED = ".damaged"
_ALWAYS = {
    "spec.json", "summary.json", "provenance.json",
    "flows.parquet", "links.parquet", "internals.parquet",
}  # fmt: skip
# What is read of a run whose series are not asked for.
_TOLD = {"spec.json", "summary.json", "provenance.json"}
_CAPTURES = "captures"
_FRAMES = ("flows", "links", "internals", "acks", "transfers")
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# What `open_regular` and `read_bytes` refuse: a pipe, a device, more than a store ever writes.
_NOT_OURS = {errno.EINVAL, errno.EFBIG, errno.ELOOP, errno.ENXIO}


class _DamagedError(Exception):
    """A run folder does not hold what its manifest says."""


class StoredRun:
    """A run in a store. Its summary is in memory, its series are read when asked for."""

    def __init__(self, folder: Path, summary: Mapping[str, Any]) -> None:
        self.folder = folder
        self.summary = summary

    @property
    def run_id(self) -> str:
        """Name of the run and of its folder."""
        return self.folder.name

    @property
    def spec(self) -> Spec:
        """What was run."""
        return cast("Spec", read_json(self.folder / "spec.json", STORED_BYTES))

    @property
    def provenance(self) -> Mapping[str, str]:
        """Versions of what produced the run."""
        return cast("Mapping[str, str]", read_json(self.folder / "provenance.json", STORED_BYTES))

    @property
    def flows(self) -> pl.DataFrame:
        """Series of the flows."""
        return self._frame("flows")

    @property
    def links(self) -> pl.DataFrame:
        """Series of the links."""
        return self._frame("links")

    @property
    def internals(self) -> pl.DataFrame:
        """Internal quantities of the controllers."""
        return self._frame("internals")

    @property
    def acks(self) -> pl.DataFrame | None:
        """Every ACK that reached a sender, if it was recorded."""
        return self._frame("acks") if (self.folder / "acks.parquet").exists() else None

    @property
    def transfers(self) -> pl.DataFrame | None:
        """Every transfer of flows that are many connections, if there are any."""
        there = (self.folder / "transfers.parquet").exists()
        return self._frame("transfers") if there else None

    @property
    def captures(self) -> Mapping[str, Path]:
        """Host → pcapng file with the headers of its packets, if they were captured."""
        return files(self.folder / _CAPTURES)

    def _frame(self, name: str) -> pl.DataFrame:
        import polars as pl

        try:
            return pl.read_parquet(self.folder / f"{name}.parquet")
        except (OSError, pl.exceptions.PolarsError) as error:
            why = brief(str(error))
            raise StoreError(f"run {self.run_id}: {name}.parquet cannot be read: {why}") from error


def read_stored(root: Path, run_id: str) -> StoredRun:
    """Look a run up without writing anything, as a reader of somebody's store does.

    Raises
    ------
    StoreError
        When it is not there, not whole, or may not be read.
    """
    return StoredRun(root / run_id, _read(root / run_id, whole=True))


def read_summary(root: Path, run_id: str) -> Mapping[str, Any]:
    """Look up the summary of a run alone, which is held against its name as that of a whole run is.

    Its series are not looked at, which takes most of the time.

    Raises
    ------
    StoreError
        As for `read_stored`.
    """
    return _read(root / run_id, whole=False)


def _read(folder: Path, *, whole: bool) -> Mapping[str, Any]:
    try:
        return _verified_summary(folder, whole=whole)
    except _DamagedError as damage:
        raise StoreError(f"run {folder.name} cannot be used: {damage}") from damage
    except OSError as error:
        raise _store_error(folder, error) from error


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

    def __init__(
        self, root: str | os.PathLike[str], warn: Callable[[str], object] = warnings.warn
    ) -> None:
        self.root = Path(root)
        self._warn = warn
        try:
            for name in (_PARTIAL, _DAMAGED, PLANS):
                if (self.root / name).is_symlink():
                    raise StoreError(f"{self.root / name} is a symbolic link: a store has none")
            self._prepare()
            os.listdir(self.root)
        except OSError as error:
            raise _store_error(self.root, error) from error

    def _prepare(self) -> None:
        """Make what is not there and clear what others left; a store that is read-only can be read.

        Whoever puts a run into one is told then.
        """
        partial = self.root / _PARTIAL
        try:
            partial.mkdir(parents=True, exist_ok=True)
            with Partial(partial, "probe"):
                pass
            remove_abandoned(partial)
        except OSError as error:
            if error.errno not in _READ_ONLY or not self.root.is_dir():
                raise

    def __getstate__(self) -> dict[str, Any]:
        # Who is warned is asked for in the process that made the store; others warn as Python does.
        return {"root": self.root, "_warn": warnings.warn}

    def __contains__(self, run_id: str) -> bool:
        """Whether a run of that name was stored; `get` also checks that it is whole."""
        return (self.root / run_id).exists()

    def get(self, run_id: str) -> StoredRun | None:
        """Look up a run; a damaged one is moved aside and counts as absent.

        Raises
        ------
        StoreError
            When the run is there but may not be read.
        """
        folder = self.root / run_id
        if not folder.exists():
            return None
        try:
            return StoredRun(folder, _verified_summary(folder))
        except _DamagedError as damage:
            self._move_aside(folder, str(damage))
            return None
        except OSError as error:
            raise _store_error(folder, error) from error

    def put(self, record: RunRecord) -> StoredRun:
        """Store a run, unless another process has stored it meanwhile.

        Raises
        ------
        StoreFullError
            When there is no room for it.
        StoreError
            When the folder cannot be written.
        """
        folder = self.root / record.run_id
        try:
            with Partial(self.root / _PARTIAL, record.run_id) as partial:
                digests = _take_captures(record, partial / _CAPTURES)
                for name, content in self._files(record, digests).items():
                    _write_synced(partial / name, content)
                # Nobody relies on it: it need not outlive a power cut.
                (partial / _TIMING).write_bytes(_json_bytes({"wall_s": record.wall_s}))
                _sync_folder(partial)
                return self._publish(partial, folder)
        except OSError as error:
            raise _store_error(self.root, error) from error

    def _publish(self, partial: Path, folder: Path) -> StoredRun:
        # A rename onto a folder that has content fails; then another writer was faster, and its
        # run is the same as ours, unless it is damaged and `get` moves it out of the way.
        for _ in range(3):
            try:
                partial.rename(folder)
                _sync_folder(self.root)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            stored = self.get(folder.name)
            if stored is not None:
                return stored
        raise StoreError(f"cannot store run {folder.name}: what is written there does not last")

    def _files(self, record: RunRecord, captures: Mapping[str, str]) -> dict[str, bytes]:
        contents = {
            "spec.json": _json_bytes(record.spec),
            "summary.json": _json_bytes(record.summary),
            "provenance.json": _json_bytes(_provenance(record)),
        }
        for name in _FRAMES:
            frame: pl.DataFrame | None = getattr(record, name)
            if frame is not None:
                contents[f"{name}.parquet"] = _parquet_bytes(frame)
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        contents[_MANIFEST] = _json_bytes({"format": FORMAT, "sha256": digests | {**captures}})
        return contents

    def _move_aside(self, folder: Path, why: str) -> None:
        aside = self.root / _DAMAGED / f"{folder.name}-{uuid.uuid4().hex[:8]}"
        try:
            aside.parent.mkdir(exist_ok=True)
            folder.rename(aside)
        except FileNotFoundError:
            return  # Another process has done it.
        except OSError as error:
            raise _store_error(folder, error) from error
        self._warn(f"run {folder.name} in the store is damaged ({why}): moved to {aside}")


def _verified_summary(folder: Path, *, whole: bool = True) -> Mapping[str, Any]:
    """Summary of a run that is what its name and its manifest say; its series, too, if `whole`."""
    try:
        manifest = read_json(folder / _MANIFEST, STORED_BYTES)
        digests: dict[str, str] = manifest["sha256"]
        if not digests.keys() >= _ALWAYS:
            raise _DamagedError(f"{_MANIFEST} does not list every file")
        for name, digest in digests.items():
            if ".." in Path(name).parts or Path(name).is_absolute():
                raise _DamagedError(f"{_MANIFEST} lists files of other places")
            if (whole or name in _TOLD) and _digest(folder / name) != digest:
                raise _DamagedError(f"{name} is not what was written")
        summary: object = read_json(folder / "summary.json", STORED_BYTES)
        spec = read_json(folder / "spec.json", STORED_BYTES)
        made = read_json(folder / "provenance.json", STORED_BYTES)
        named = run_id(spec, made["backend"], made["backend_version"])
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise _DamagedError(f"{Path(str(error.filename)).name} is missing") from error
    except OSError as error:
        if error.errno not in _NOT_OURS:
            raise
        raise _DamagedError(f"{Path(str(error.filename)).name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _DamagedError(f"{_MANIFEST} is not readable") from error
    # Digests say that files belong together, the name that they are of this run.
    if named != folder.name:
        raise _DamagedError("it holds the specification of another run")
    if not isinstance(summary, dict) or not _is_summary_of(summary, spec):
        raise _DamagedError("summary.json is not a summary of that run")
    return summary


def _is_summary_of(summary: Mapping[str, Any], spec: Spec) -> bool:
    """Whether a summary has an entry for every flow, link and phase, with nothing but numbers.

    What 0.1.0 wrote has no groups.
    """
    try:
        phases = {phase["name"] for phase in spec["phases"]}
        for kind in ("flows", "links"):
            if [one["name"] for one in summary[kind]] != [one["name"] for one in spec[kind]]:
                return False
        for kind in ("flows", "groups", "links"):
            for one in summary.get(kind, ()):
                measured = one["phases"]
                values = [value for phase in measured.values() for value in phase.values()]
                if set(measured) != phases or not all(map(_is_measure, values)):
                    return False
        return set(summary["fairness"]) == set(summary["totals"]) == phases
    except (AttributeError, KeyError, TypeError, RecursionError):
        return False


def _is_measure(value: object) -> bool:
    """Whether it is a number, none, or numbers by name or in a row, such as those of reasons."""
    match value:
        case float():
            return math.isfinite(value)
        case None | int():
            return not isinstance(value, bool)
        case dict():
            return all(map(_is_measure, value.values()))
        case list():
            return all(map(_is_measure, value))
    return False


def _take_captures(record: RunRecord, folder: Path) -> dict[str, str]:
    """Move a record's captures into a folder; return their digests."""
    digests = {}
    if record.captured is not None:
        folder.mkdir()
        for path in record.captures.values():
            moved = Path(shutil.move(path, folder / path.name))
            digests[f"{folder.name}/{path.name}"] = _digest(moved)
            with moved.open("rb") as file:
                os.fsync(file.fileno())
        _sync_folder(folder)
    return digests


def _digest(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _provenance(record: RunRecord) -> dict[str, str]:
    # Nothing here may depend on the host or the hour: the file is compared between machines.
    return {
        "format": FORMAT,
        "run_id": record.run_id,
        "backend": record.backend,
        "backend_version": record.backend_version,
        **_versions(),
    }


@functools.cache
def _versions() -> dict[str, str]:
    # Looking them up reads files; a sweep asks for every run.
    return {name: metadata.version(name) for name in ("jostle", "polars")}


def _json_bytes(value: object) -> bytes:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    return buffer.getvalue()


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _store_error(path: Path, error: OSError) -> StoreError:
    if error.errno in _NO_ROOM:
        return StoreFullError(
            f"no room in the store {path} ({error.strerror}): free some space and run the same "
            "command again; every finished run is kept"
        )
    return StoreError(f"cannot use the store {path}: {error.strerror or error}")
