"""A segment's folder: written under another name, synced, renamed; verified before use.

`manifest.json` contains the SHA-256 of every other file, and the SHA-256 of the manifest is the
folder's name. So any change of a segment invalidates its name.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from jostle.backends.base import RUN_ID_DIGITS, hashed_around
from jostle.backends.record_tables import TABLES
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.untrusted_files import STORED_BYTES, read_bytes
from jostle.store import parquet_files
from jostle.store.disk import (
    NOT_OURS,
    DamagedError,
    digest_of,
    json_bytes,
    partial_folder,
    versions,
)
from jostle.store.parquet_layout import LayoutError
from jostle.store.segments.packing import MEASURES, RUNS, rows_of

if TYPE_CHECKING:
    import polars as pl

FORMAT = "jostle.segment/2"
READABLE = ("jostle.segment/1", FORMAT)
"""Formats of segments that are read; measures of the first have other names."""
FOLDER = "segments"
"""Folder of a store's segments."""
MANIFEST = "manifest.json"
MOST_RUNS = range(10_001)
"""Valid numbers of runs in a segment; the store writes a thousand."""
_NAME = re.compile(r"[0-9a-f]{64}")
_COLUMNS = {"run", "backend", "backend_version", "spec"} | {rows_of(kind) for kind in TABLES}


class RunNames(Sequence[str]):
    """Names of runs, which in one text take a third of their memory.

    Parameters
    ----------
    names
        The names.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._text = "".join(names)

    def __len__(self) -> int:
        return len(self._text) // RUN_ID_DIGITS

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...

    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[at] for at in range(len(self))[row]]
        return self.name(range(len(self))[row])

    def name(self, row: int) -> str:
        """Return the name of a run, whose row is valid."""
        return self._text[row * RUN_ID_DIGITS : (row + 1) * RUN_ID_DIGITS]

    def is_at(self, row: int, name: str) -> bool:
        """Return whether a run has a name."""
        return len(name) == RUN_ID_DIGITS and self._text.startswith(name, row * RUN_ID_DIGITS)


@dataclass(frozen=True)
class Segment:
    """A verified segment.

    Attributes
    ----------
    folder
        Path of its folder.
    runs
        Names of its runs, in the order of its rows.
    made_by
        Backend and version of each run.
    begins
        Table of series → first row of each run, and the end of the last one.
    versions
        Versions of the packages that wrote it.
    has_measures
        Whether it has measures with the names of this version.
    """

    folder: Path
    runs: RunNames
    made_by: tuple[tuple[str, str], ...]
    begins: Mapping[str, tuple[int, ...]]
    versions: Mapping[str, str]
    has_measures: bool

    @cached_property
    def name(self) -> str:
        """Name of the segment: a digest of its contents."""
        return self.folder.name

    def schema(self, table: str) -> Mapping[str, pl.DataType]:
        """Return the columns of a table."""
        return parquet_files.schema(self.path(table))

    def path(self, table: str) -> Path:
        """Return the file of a table."""
        return self.folder / f"{table}.parquet"

    def decoded_bytes(self) -> int:
        """Check that all tables can be read, and return their size in memory."""
        paths = [self.path(table) for table in (RUNS, MEASURES, *TABLES)]
        return sum(parquet_files.checked(path).decoded_bytes for path in paths if path.exists())

    def texts(self) -> dict[str, list[str]]:
        """Return the specifications (`spec`) and summaries (`summary`) of its runs."""
        rows = range(len(self.runs), len(self.runs) + 1)
        return parquet_files.lists(self.path(RUNS), ("spec", "summary"), rows=rows)

    def measures(self, keys: Sequence[str], heads: Sequence[str]) -> pl.DataFrame:
        """Read some measures and columns that name rows; measures of later versions are null."""
        import polars as pl

        path = self.path(MEASURES)
        found = parquet_files.read(path, [*heads, *keys], may_lack=keys)
        kinds = dict.fromkeys(heads, pl.String()) | dict.fromkeys(keys, pl.Float64())
        if dict(found.schema) == kinds:
            return found
        numbers = (pl.col(key) if key in found.columns else pl.lit(None).alias(key) for key in keys)
        with parquet_files.polars_errors():
            texts = (pl.col(head).cast(pl.String) for head in heads)
            return found.select(*texts, *(number.cast(pl.Float64) for number in numbers))

    def read(self, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Read one of its tables; see `parquet_files.read`."""
        rows = len(self.runs) if table == RUNS else self.begins.get(table, (None,))[-1]
        expected = None if rows is None else range(rows, rows + 1)
        return parquet_files.read(self.path(table), columns, rows=expected)


def names(root: Path) -> Iterator[str]:
    """Yield the names of the segments of a store.

    Raises
    ------
    OSError
        When the folder cannot be read.
    """
    try:
        with os.scandir(root / FOLDER) as entries:
            found = sorted(entry.name for entry in entries if _NAME.fullmatch(entry.name))
    except FileNotFoundError:
        return
    yield from found


def write(root: Path, tables: Mapping[str, pl.DataFrame]) -> tuple[Path, bool]:
    """Write a segment, unless it exists; return its folder, and whether it is new.

    Parameters
    ----------
    root
        The store.
    tables
        See `packing.SegmentTables`.

    Raises
    ------
    OSError
        When it cannot be written; then it does not exist.
    """
    with OpenFolder.at(root) as store, partial_folder(store, "segment") as partial:
        digests, rows = {}, {}
        for name in tables:
            content, rows[name] = _written(name, tables[name])
            digests[f"{name}.parquet"] = hashlib.sha256(content).hexdigest()
            partial.content.write_new(f"{name}.parquet", content, synced=True)
        manifest = json_bytes(
            {
                "format": FORMAT,
                "runs": rows[RUNS],
                "sha256": digests,
                "versions": versions(),
            }
        )
        partial.content.write_new(MANIFEST, manifest, synced=True)
        partial.content.sync()
        name = hashlib.sha256(manifest).hexdigest()
        with store.folder(FOLDER, make=True) as segments:
            try:
                partial.publish(segments, name)
            except OSError as error:
                # Another process was faster; its segment is the same unless it is damaged.
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                    raise
                return root / FOLDER / name, False
            segments.sync()
        store.sync()
    return root / FOLDER / name, True


def files_of_manifest(content: bytes) -> list[str]:
    """Return the files in a manifest whose names are valid for a segment."""
    known = {f"{name}.parquet" for name in (RUNS, MEASURES, *TABLES)}
    try:
        return sorted(known.intersection(json.loads(content)["sha256"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def run_names(folder: Path) -> tuple[list[str], bool]:
    """Return the names of a segment's runs, unverified, and whether it has series.

    Raises
    ------
    DamagedError, OSError
        When they cannot be read.
    """
    try:
        columns = ["run", rows_of("flows")]
        found = parquet_files.lists(folder / f"{RUNS}.parquet", columns, rows=MOST_RUNS)
        return [str(run) for run in found["run"]], None not in found[rows_of("flows")]
    except (ValueError, KeyError) as error:
        raise DamagedError("its runs cannot be read") from error


def verified(folder: Path) -> Segment:
    """Verify a segment: every file, and the name of every run.

    Raises
    ------
    DamagedError
        When it does not match its name.
    OSError
        When it may not be read.
    """
    try:
        content = read_bytes(folder / MANIFEST, STORED_BYTES)
        if hashlib.sha256(content).hexdigest() != folder.name:
            raise DamagedError(f"{MANIFEST} is not what was written")
        manifest: Mapping[str, Any] = json.loads(content)
        digests: Mapping[str, str] = manifest["sha256"]
        known = {f"{name}.parquet" for name in (RUNS, MEASURES, *TABLES)}
        if manifest["format"] not in READABLE or not known >= digests.keys() >= {f"{RUNS}.parquet"}:
            raise DamagedError(f"{MANIFEST} is not one of this version")
        for name, digest in digests.items():
            if digest_of(folder / name) != digest:
                raise DamagedError(f"{name} is not what was written")
        return _segment(folder, manifest)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise DamagedError(f"{Path(str(error.filename)).name} is missing") from error
    except OSError as error:
        if error.errno not in NOT_OURS:
            raise
        raise DamagedError(f"{Path(str(error.filename)).name}: {error.strerror}") from error
    except LayoutError as error:
        raise DamagedError(f"{RUNS}.parquet: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError("it is not readable") from error


def _segment(folder: Path, manifest: Mapping[str, Any]) -> Segment:
    """Return a segment whose files have been verified; checks that all runs match their names."""
    there = {name.removesuffix(".parquet") for name in manifest["sha256"]}
    count = manifest["runs"]
    if not isinstance(count, int) or count not in MOST_RUNS:
        shown = count if isinstance(count, int) else "no number of"
        raise DamagedError(f"{MANIFEST} has {shown} runs, of at most {MOST_RUNS[-1]}")
    rows = range(count, count + 1)
    found = parquet_files.lists(folder / f"{RUNS}.parquet", sorted(_COLUMNS), rows=rows)
    runs = found["run"]
    # One pair for all runs: each row of a column is a separate text.
    made_by: list[tuple[str, str]] = []
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for pair in zip(found["backend"], found["backend_version"], strict=True):
        made_by.append(known.setdefault(pair, pair))
    from jostle._core import names_of_specs

    around = [hashed_around(*pair) for pair in made_by]
    if names_of_specs(found["spec"], around) != runs:
        raise DamagedError("it holds the specification of another run")
    begins = {}
    for kind in TABLES:
        lengths = found[rows_of(kind)]
        if (kind in there) != (None not in lengths):
            raise DamagedError(f"{kind}.parquet and the runs do not belong together")
        if kind in there:
            begins[kind] = (0, *accumulate(map(int, lengths)))
    return Segment(
        folder,
        RunNames(runs),
        tuple(made_by),
        begins,
        {str(name): str(version) for name, version in manifest["versions"].items()},
        manifest["format"] == FORMAT and MEASURES in there,
    )


def _written(name: str, frame: pl.DataFrame) -> tuple[bytes, int]:
    """Return a table as a file, and its number of rows."""
    if name == RUNS:
        return parquet_files.content_of(frame), frame.height
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=True)
    return buffer.getvalue(), frame.height
