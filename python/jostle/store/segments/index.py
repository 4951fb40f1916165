"""Index of runs by segment, which avoids opening every segment of a large store.

It is a cache. If it is missing, damaged or wrong, it is rebuilt from the segments. Its entries are
verified against the segment before a run is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from jostle.safe_io.open_folder import OpenFolder
from jostle.store import parquet_files

if TYPE_CHECKING:
    import polars as pl

Entry = tuple[str, str, int, bool]
"""A run, its segment, its row there, and whether the segment has series."""
FILE = ".index.parquet"
"""File name in the folder of a store."""
_FEW = 32
"""Number of segments that are opened each time instead of being indexed."""


def columns() -> dict[str, type[pl.DataType]]:
    """Return the columns of the file: run, segment, row in the segment, whether it has series."""
    import polars as pl

    return {"run": pl.String, "segment": pl.String, "row": pl.UInt32, "series": pl.Boolean}


def read(root: Path, present: Collection[str]) -> list[Entry] | pl.DataFrame | None:
    """Read the entries of some segments; None if there is no usable index.

    A small index becomes a list, without the import of Polars.
    """
    path = root / FILE
    try:
        listed = parquet_files.small_lists(path, ("run", "segment", "row", "series"))
        if listed is not None:
            entries = list(zip(*listed.values(), strict=True))
            return [one for one in entries if one[1] in present] if _all_valid(entries) else None
        frame = parquet_files.read(path)
    except (OSError, ValueError):
        return None
    if dict(frame.schema) != columns() or (frame.height and any(frame.null_count().row(0))):
        return None
    import polars as pl

    return frame.filter(pl.col("segment").is_in(list(present)))


def _all_valid(entries: Sequence[tuple[object, ...]]) -> TypeGuard[list[Entry]]:
    return {tuple(map(type, entry)) for entry in entries} <= {(str, str, int, bool)}


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
        file.write(parquet_files.content_of(frame))


def remove(root: Path) -> None:
    """Remove the index of a store after it was found to be wrong."""
    with contextlib.suppress(OSError), OpenFolder.at(root) as store:
        store.remove(FILE)
