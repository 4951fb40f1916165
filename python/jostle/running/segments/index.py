"""Which run is in which segment: a file that saves opening every segment of a large store.

It is a cache: where it is missing, damaged or wrong it is made anew from the segments, and what it
says is held against the segment before a run is used.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.open_folder import OpenFolder
from jostle.running import parquet_files

if TYPE_CHECKING:
    import polars as pl

FILE = ".index.parquet"
"""In the folder of a store."""
_FEW = 32
"""Segments that are opened each time rather than written down."""


def columns() -> dict[str, type[pl.DataType]]:
    """Columns of the file: the run, its segment's name, its row there, whether it has series."""
    import polars as pl

    return {"run": pl.String, "segment": pl.String, "row": pl.UInt32, "series": pl.Boolean}


def read(root: Path) -> pl.DataFrame | None:
    """Read the index of a store; None if there is none that can be used."""
    try:
        frame = parquet_files.read(root / FILE)
    except (OSError, ValueError):
        return None
    return frame if dict(frame.schema) == columns() and not _has_nulls(frame) else None


def _has_nulls(frame: pl.DataFrame) -> bool:
    return any(frame.null_count().row(0)) if frame.height else False


def is_worth_writing(known: int, new: int) -> bool:
    """Whether so many segments that are not in the index are worth writing it anew."""
    return new >= max(_FEW, known // 10)


def write(root: Path, frame: pl.DataFrame) -> None:
    """Write the index of a store, if that can be written to."""
    with (
        contextlib.suppress(OSError),
        OpenFolder.at(root) as store,
        store.replacing(FILE) as file,
    ):
        frame.write_parquet(file, compression="zstd")


def remove(root: Path) -> None:
    """Remove the index of a store: it was wrong."""
    with contextlib.suppress(OSError), OpenFolder.at(root) as store:
        store.remove(FILE)
