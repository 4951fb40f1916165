"""Index of runs by segment, which avoids opening every segment of a large store.

It is a cache. If it is missing, damaged or wrong, it is rebuilt from the segments. Its entries are
verified against the segment before a run is used.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.safe_io.open_folder import OpenFolder
from jostle.store import parquet_files

if TYPE_CHECKING:
    import polars as pl

FILE = ".index.parquet"
"""File name in the folder of a store."""
_FEW = 32
"""Number of segments that are opened each time instead of being indexed."""


def columns() -> dict[str, type[pl.DataType]]:
    """Return the columns of the file: run, segment, row in the segment, whether it has series."""
    import polars as pl

    return {"run": pl.String, "segment": pl.String, "row": pl.UInt32, "series": pl.Boolean}


def read(root: Path) -> pl.DataFrame | None:
    """Read the index of a store; None if there is no usable one."""
    try:
        frame = parquet_files.read(root / FILE)
    except (OSError, ValueError):
        return None
    return frame if dict(frame.schema) == columns() and not _has_nulls(frame) else None


def _has_nulls(frame: pl.DataFrame) -> bool:
    return any(frame.null_count().row(0)) if frame.height else False


def is_worth_writing(known: int, new: int) -> bool:
    """Return whether the index should be rewritten for a number of segments that are not in it."""
    return new >= max(_FEW, known // 10)


def write(root: Path, frame: pl.DataFrame) -> None:
    """Write the index of a store, if the store is writable."""
    with (
        contextlib.suppress(OSError),
        OpenFolder.at(root) as store,
        store.replacing(FILE) as file,
    ):
        frame.write_parquet(file, compression="zstd")


def remove(root: Path) -> None:
    """Remove the index of a store after it was found to be wrong."""
    with contextlib.suppress(OSError), OpenFolder.at(root) as store:
        store.remove(FILE)
