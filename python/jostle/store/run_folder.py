"""A run in a separate folder, named by its run id.

It contains `spec.json`, `summary.json`, `provenance.json`, `flows.parquet`, `links.parquet`,
`internals.parquet`, for some runs `acks.parquet`, `transfers.parquet` and `captures/*.pcapng`, and
`manifest.json` with the SHA-256 of each of them. For the same run, these files are identical byte
by byte. `timing.json` (the duration of the run on this machine) is not in the manifest.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jostle.backends import run_id
from jostle.backends.capture_files import capture_files
from jostle.backends.record_tables import TABLES
from jostle.errors import StoreError, brief
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.untrusted_files import STORED_BYTES, read_json
from jostle.store import parquet_files
from jostle.store.disk import NOT_OURS, DamagedError, digest_of, json_bytes, versions
from jostle.store.summary_check import is_summary_of

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import RunRecord, Spec

FORMAT = "jostle.run/2"
_MANIFEST = "manifest.json"
_TIMING = "timing.json"
_ALWAYS = {
    "spec.json", "summary.json", "provenance.json",
    "flows.parquet", "links.parquet", "internals.parquet",
}  # fmt: skip
# Files that are read for a run without its series.
_TOLD = {"spec.json", "summary.json", "provenance.json"}
_CAPTURES = "captures"


class StoredRun:
    """A run in a store. Its summary is in memory; its series are read on demand."""

    def __init__(self, folder: Path, summary: Mapping[str, Any]) -> None:
        self.folder = folder
        self.summary = summary

    @property
    def run_id(self) -> str:
        """Name of the run and of its folder."""
        return self.folder.name

    @property
    def spec(self) -> Spec:
        """Specification of the run."""
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
        """Every transfer of flows with `arrivals`, if there are any."""
        there = (self.folder / "transfers.parquet").exists()
        return self._frame("transfers") if there else None

    @property
    def captures(self) -> Mapping[str, Path]:
        """Host → pcapng file with the headers of its packets, if they were captured."""
        return capture_files(self.folder / _CAPTURES)

    def _frame(self, name: str) -> pl.DataFrame:
        try:
            return parquet_files.read(self.folder / f"{name}.parquet")
        except (OSError, ValueError) as error:
            why = brief(str(error))
            raise StoreError(f"run {self.run_id}: {name}.parquet cannot be read: {why}") from error


def has_captures(folder: Path) -> bool:
    """Return whether a run's folder contains captures, without reading the run."""
    return (folder / _CAPTURES).is_dir()


def verified_summary(folder: Path, *, whole: bool = True) -> Mapping[str, Any]:
    """Return a run's summary after verification of the manifest; with `whole`, of series, too."""
    try:
        manifest = read_json(folder / _MANIFEST, STORED_BYTES)
        digests: dict[str, str] = manifest["sha256"]
        if not digests.keys() >= _ALWAYS:
            raise DamagedError(f"{_MANIFEST} does not list every file")
        for name, digest in digests.items():
            if ".." in Path(name).parts or Path(name).is_absolute():
                raise DamagedError(f"{_MANIFEST} lists files of other places")
            if (whole or name in _TOLD) and digest_of(folder / name) != digest:
                raise DamagedError(f"{name} is not what was written")
        summary: object = read_json(folder / "summary.json", STORED_BYTES)
        spec = read_json(folder / "spec.json", STORED_BYTES)
        made = read_json(folder / "provenance.json", STORED_BYTES)
        named = run_id(spec, made["backend"], made["backend_version"])
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise DamagedError(f"{Path(str(error.filename)).name} is missing") from error
    except OSError as error:
        if error.errno not in NOT_OURS:
            raise
        raise DamagedError(f"{Path(str(error.filename)).name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{_MANIFEST} is not readable") from error
    # The manifest verifies the files; the run id verifies that they belong to this run.
    if named != folder.name:
        raise DamagedError("it holds the specification of another run")
    if not is_summary_of(summary, spec):
        raise DamagedError("summary.json is not a summary of that run")
    return summary


def fill(folder: OpenFolder, record: RunRecord) -> None:
    """Write the files of a run into a folder.

    Raises
    ------
    OSError
        When they cannot be written.
    """
    digests = _take_captures(record, folder)
    for name, content in _files(record, digests).items():
        folder.write_new(name, content, synced=True)
    # Not synced, because it may be lost at a power failure.
    folder.write_new(_TIMING, json_bytes({"wall_s": record.wall_s}))
    folder.sync()


def _files(record: RunRecord, captures: Mapping[str, str]) -> dict[str, bytes]:
    contents = {
        "spec.json": json_bytes(record.spec),
        "summary.json": json_bytes(dict(record.summary)),
        "provenance.json": json_bytes(_provenance(record)),
    }
    for name in TABLES:
        frame: pl.DataFrame | None = getattr(record, name)
        if frame is not None:
            contents[f"{name}.parquet"] = _parquet_bytes(frame)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    contents[_MANIFEST] = json_bytes({"format": FORMAT, "sha256": digests | {**captures}})
    return contents


def _take_captures(record: RunRecord, folder: OpenFolder) -> dict[str, str]:
    """Move a record's captures into a folder of the run; return their digests."""
    digests = {}
    if record.captured is not None:
        with folder.new_folder(_CAPTURES) as captures:
            for path in record.captures.values():
                captures.take_in(path, path.name)
                with os.fdopen(captures.open_own_file(path.name, os.O_RDONLY), "rb") as file:
                    digest = hashlib.file_digest(file, "sha256")
                    os.fsync(file.fileno())
                digests[f"{_CAPTURES}/{path.name}"] = digest.hexdigest()
            captures.sync()
    return digests


def _provenance(record: RunRecord) -> dict[str, str]:
    # The file must not depend on host or time, because it is compared between machines.
    return {
        "format": FORMAT,
        "run_id": record.run_id,
        "backend": record.backend,
        "backend_version": record.backend_version,
        **versions(),
    }


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    return buffer.getvalue()
