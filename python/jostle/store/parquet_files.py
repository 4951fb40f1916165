"""Every read of a Parquet file: that file alone, under any name, and within bounds.

Polars and DuckDB expand `*`, `?`, `[…]` and `~` in a path, and take some for an address; a file
that is opened here has no path. Before anything is decoded, `parquet_layout` says what it makes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from jostle.safe_io.untrusted_files import open_regular
from jostle.store.parquet_columns import uncompressed_columns
from jostle.store.parquet_layout import Layout, LayoutError, measure

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "checked",
    "content_of",
    "lists",
    "polars_errors",
    "read",
    "read_content",
    "scan",
    "schema",
    "small_lists",
]

_LEAST_BYTES: Final = 256_000_000
"""Memory that every file may take: a segment has 64 MB, or more if one run does."""
_BYTES_PER_BYTE: Final = 500
"""How much more for each byte of a file: 5,000,000 rows of a flow that is idle have 310."""
_MOST_LISTED_BYTES: Final = 1_000_000
"""Larger files are read faster by Polars, including its import."""
_MOST_LISTED_ROWS: Final = 100_000
_MOST_SCHEMAS: Final = 100
"""Number of schemas whose types are kept."""
_known_types: Final[dict[bytes, dict[str, pl.DataType]]] = {}
_SHORT_DICTIONARY_BYTES: Final = 100_000
"""A text of a shorter one may be in all rows that another reader takes at a time."""


def read(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    rows: range | None = None,
    may_lack: Sequence[str] = (),
) -> pl.DataFrame:
    """Read a file, or some of its columns.

    Parameters
    ----------
    path
        A regular file.
    columns
        Names; all if None.
    rows
        How many it may have.
    may_lack
        Columns that it may lack, which are then left out.

    Raises
    ------
    OSError
        When it cannot be read, or is no regular file.
    ValueError
        When it is not Parquet as the store writes it, has other columns or rows, or would take
        more memory than a file of its size may.
    """
    with open_regular(path) as file, _mapped(file) as content:
        layout = _check(content, rows, columns)
        return _decoded(file, columns, content, layout, may_lack=may_lack)


def read_content(
    content: bytes, columns: Sequence[str], *, rows: range | None = None
) -> pl.DataFrame:
    """Read some columns of a file in memory; see `read`."""
    layout = _check(content, rows, columns)
    return _decoded(io.BytesIO(content), columns, content, layout)


def lists(path: Path, columns: Sequence[str], *, rows: range | None = None) -> dict[str, list[Any]]:
    """Read some columns of a file as lists; see `read`."""
    with open_regular(path) as file, _mapped(file) as content:
        layout = _check(content, rows, columns)
        found = _small_lists(content, layout, columns)
        if found is not None:
            return found
        return _decoded(file, columns, content, layout).to_dict(as_series=False)


def small_lists(
    path: Path, columns: Sequence[str], *, rows: range | None = None
) -> dict[str, list[Any]] | None:
    """Read some columns without Polars; None if the file is large or compressed; see `read`."""
    with open_regular(path) as file, _mapped(file) as content:
        if len(content) > _MOST_LISTED_BYTES:
            return None
        return _small_lists(content, _check(content, rows, columns), columns)


def _small_lists(
    content: bytes | mmap, layout: Layout, columns: Sequence[str]
) -> dict[str, list[Any]] | None:
    if len(content) > _MOST_LISTED_BYTES or layout.rows > _MOST_LISTED_ROWS:
        return None
    found = uncompressed_columns(content, columns)
    texts = chain.from_iterable((found or {}).values())
    _check_texts(sum(len(text) for text in texts if isinstance(text, str)), content)
    return found


def content_of(frame: pl.DataFrame) -> bytes:
    """Return a table as a file, compressed unless it is small; see `lists`."""
    small = frame.estimated_size() <= _MOST_LISTED_BYTES // 2
    buffer = io.BytesIO()
    kind: Literal["uncompressed", "zstd"] = "uncompressed" if small else "zstd"
    # Statistics would hold copies of long texts, which no query compares.
    frame.write_parquet(buffer, compression=kind, statistics=False)
    return buffer.getvalue()


def schema(path: Path) -> dict[str, pl.DataType]:
    """Names and types of a file's columns; see `read`."""
    with open_regular(path) as file, _mapped(file) as content:
        return _types(file, _check(content, None))


def checked(path: Path) -> Layout:
    """See that another reader can read a file, and what it makes; see `read`."""
    import polars as pl

    with open_regular(path) as file, _mapped(file) as content:
        layout = _check(content, None)
        if layout.dictionary_bytes > _SHORT_DICTIONARY_BYTES:
            texts = [name for name, kind in _types(file, layout).items() if kind == pl.String]
            _decoded(file, texts, content, layout)
        return layout


def scan(path: Path) -> pl.LazyFrame:
    """Read a file later, when a query needs it; see `read`."""
    import polars as pl

    checked(path)
    schema(path)
    # Absolute, so that it begins with neither `~` nor the scheme of an address.
    return pl.scan_parquet(os.path.abspath(path), glob=False, hive_partitioning=False)


@contextmanager
def _mapped(file: BinaryIO) -> Iterator[bytes | mmap]:
    if os.fstat(file.fileno()).st_size == 0:
        yield b""
        return
    with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        yield content


def _most_bytes(content: bytes | mmap) -> int:
    """How much memory a file may take."""
    return _LEAST_BYTES + _BYTES_PER_BYTE * len(content)


def _check(
    content: bytes | mmap, rows: range | None, columns: Sequence[str] | None = None
) -> Layout:
    """See that a file, or some of its columns, can be read."""
    layout = measure(content, columns)
    if rows is not None and layout.rows not in rows:
        expected = f"{rows[0]}" if len(rows) == 1 else f"at most {rows[-1]}"
        raise LayoutError(f"it has {layout.rows} rows instead of {expected}")
    if layout.decoded_bytes > _most_bytes(content):
        raise LayoutError(
            f"its {len(content)} bytes become {layout.decoded_bytes / 1e6:.0f} MB in memory, of "
            f"at most {_most_bytes(content) / 1e6:.0f} MB"
        )
    return layout


def _types(file: BinaryIO, layout: Layout) -> dict[str, pl.DataType]:
    """Names and types of columns: an Arrow schema in a file may make others than Parquet's."""
    import polars as pl

    # The tables of a store have few schemas, and reading one takes as long as a column.
    known = _known_types.get(layout.schema)
    if known is not None:
        return known
    file.seek(0)
    with polars_errors():
        types = dict(pl.read_parquet_schema(file))
    for name, kind in types.items():
        if not (kind.is_numeric() or kind in {pl.String, pl.Boolean, pl.Null}):
            raise LayoutError(f"its column {name[:100]} is neither numbers nor texts")
    if len(_known_types) >= _MOST_SCHEMAS:
        _known_types.clear()
    _known_types[layout.schema] = types
    return types


def _decoded(
    file: BinaryIO,
    columns: Sequence[str] | None,
    content: bytes | mmap,
    layout: Layout,
    *,
    may_lack: Sequence[str] = (),
) -> pl.DataFrame:
    import polars as pl

    known = _types(file, layout)
    if columns is not None and may_lack:
        lacking = {name for name in may_lack if name not in known}
        columns = [name for name in columns if name not in lacking]
    file.seek(0)
    with polars_errors():
        frame = pl.read_parquet(file, columns=None if columns is None else list(columns))
    # Equal texts are one in the frame, and many in Python.
    texts = frame.select(pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    _check_texts(sum(total or 0 for total in texts.row(0)) if texts.width else 0, content)
    return frame


def _check_texts(length: int, content: bytes | mmap) -> None:
    most = _most_bytes(content)
    if length > most:
        raise LayoutError(f"its texts have {length} characters, of at most {most}")


@contextmanager
def polars_errors() -> Iterator[None]:
    """Turn errors of Polars into ValueError."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(str(error)) from error
