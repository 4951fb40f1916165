"""How much a Parquet file takes once it is decoded, from its footer and the headers of its pages.

A few bytes can encode a billion equal rows or a page of a gigabyte, and the sizes in a footer need
not be true. `measure` therefore adds up the numbers that readers use: rows of row groups, and the
length of every page. It accepts the part of the format that the store writes: columns without
lists or structures, Zstandard, and encodings whose decoded length is known beforehand.

Field numbers are from parquet-format 2.11 (`parquet.thrift`), in Thrift's compact protocol.
"""

from __future__ import annotations

import marshal
from collections.abc import Container, Mapping
from dataclasses import dataclass
from mmap import mmap
from typing import Any, Final

__all__ = ["Layout", "LayoutError", "byte_range", "measure", "read_footer", "read_structure"]

_MAGIC: Final = b"PAR1"
_MOST_FOOTER_BYTES: Final = 4_000_000
"""A row group of measures takes 20 kB of it, and has a quarter of a million rows."""
_TAIL_BYTES: Final = 8
"""Length of the footer, and the magic number."""
_MOST_COLUMNS: Final = 1_000
_MOST_NUMBERS_BYTES: Final = 64_000_000
"""Of a page of numbers, which are copied out of it; Polars writes pages of 1 MB."""
_MOST_TEXT_BYTES: Final = 2**31 - 1
"""Of a page of texts, as the format has it: one text may be a specification with traces."""
_SHORT_HEADER_BYTES: Final = 1_000
"""Length of most headers of pages; a header may contain two long texts."""

# Bytes of a value in memory by physical type: BOOLEAN, INT32, INT64, FLOAT, DOUBLE, and BYTE_ARRAY,
# whose values are views into pages. INT96 and FIXED_LEN_BYTE_ARRAY are never written.
_WIDTHS: Final = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8, 6: 16}
_TEXT: Final = 6
_CODECS: Final = {0, 6}
"""UNCOMPRESSED and ZSTD."""
_REPEATED: Final = 2
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
"""Kinds of pages."""
_ENCODINGS: Final = {0, 2, 3, 5, 6, 8}
"""PLAIN, the dictionary's, RLE, DELTA_BINARY_PACKED and DELTA_LENGTH_BYTE_ARRAY.

With DELTA_BYTE_ARRAY, a text repeats the beginning of the one before: a megabyte makes terabytes.
"""
_LENGTH_BYTES: Final = 4
"""Of the length that is in front of each text of a dictionary; numbers take no fewer."""


class LayoutError(ValueError):
    """A file is not Parquet as the store writes it."""


@dataclass(frozen=True)
class Layout:
    """Size of a file when it is read.

    Attributes
    ----------
    rows
        How many there are.
    decoded_bytes
        Memory of all columns, without what is only needed while they are decoded.
    dictionary_bytes
        Of the longest dictionary of texts: each of them may be in every row.
    schema
        Key that is equal for files with columns of equal names and types.
    """

    rows: int
    decoded_bytes: int
    dictionary_bytes: int
    schema: bytes


def measure(content: bytes | mmap, columns: Container[str] | None = None) -> Layout:
    """Measure a file, or what is decoded to read some of its columns.

    Raises
    ------
    LayoutError
        When it is not Parquet as the store writes it.
    """
    try:
        footer, end = read_footer(content)
        kinds = _kinds(footer[2])
        names = [column[4].decode() for column in footer[2][1:]]
        groups = footer.get(4, [])
        rows = sum(group[3] for group in groups)
        if rows != footer[3] or any(group[3] < 0 for group in groups):
            raise LayoutError("its row groups do not have the rows of its footer")
        _check_ranges(groups, end)
        decoded = longest = 0
        for group in groups:
            for kind, name, chunk in zip(kinds, names, group[1], strict=True):
                if chunk[3][1] != kind:
                    raise LayoutError("a column is of another kind than its schema says")
                if columns is not None and name not in columns:
                    continue
                values = group[3] * _WIDTHS[kind]
                pages, dictionary = _pages_bytes(content, chunk[3], group[3])
                # Texts are views into their pages; numbers are copied out of them.
                decoded += values + pages if kind == _TEXT else max(values, pages)
                longest = max(longest, dictionary if kind == _TEXT else 0)
    except LayoutError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise LayoutError("its footer is damaged") from error
    # The second field may contain Arrow's types of the columns.
    return Layout(rows, decoded, longest, marshal.dumps((footer[2], footer.get(5))))


def read_footer(content: bytes | mmap) -> tuple[Mapping[int, Any], int]:
    """Return the footer, and where it begins."""
    end = len(content) - _TAIL_BYTES
    length = int.from_bytes(content[end : end + 4], "little")
    if content[-len(_MAGIC) :] != _MAGIC or not 0 < length <= end - len(_MAGIC):
        raise LayoutError("it is not Parquet")
    if length > _MOST_FOOTER_BYTES:
        raise LayoutError(f"its footer has {length} bytes, of at most {_MOST_FOOTER_BYTES}")
    return read_structure(content[end - length : end], 0)[0], end - length


def _kinds(schema: list[Mapping[int, Any]]) -> list[int]:
    """Physical type of each column; there are no columns in columns."""
    columns = schema[1:]
    if len(columns) > _MOST_COLUMNS:
        raise LayoutError(f"it has {len(columns)} columns, of at most {_MOST_COLUMNS}")
    if schema[0][5] != len(columns) or any(
        column.get(5) or column.get(3) == _REPEATED or column[1] not in _WIDTHS
        for column in columns
    ):
        raise LayoutError("it has columns of other kinds than numbers and texts")
    return [column[1] for column in columns]


def byte_range(column: Mapping[int, Any]) -> tuple[int, int]:
    """Where the pages of a column begin and end."""
    begin = column.get(11) or column[9]
    return begin, begin + column[7]


def _check_ranges(groups: list[Mapping[int, Any]], end: int) -> None:
    """See that no page belongs to two columns: a small file would be read many times."""
    before = len(_MAGIC)
    for begin, after in sorted(byte_range(chunk[3]) for group in groups for chunk in group[1]):
        if not before <= begin <= after <= end:
            raise LayoutError("its columns overlap")
        before = after


def _pages_bytes(content: bytes | mmap, column: Mapping[int, Any], rows: int) -> tuple[int, int]:
    """Return the uncompressed length of all pages of a column of a row group, and of dictionaries.

    Pages are read one after another, as readers do.
    """
    if column[4] not in _CODECS:
        raise LayoutError("it is compressed by another codec than Zstandard")
    at, end = byte_range(column)
    if column[9] < at or column.get(10):
        raise LayoutError("its pages are in another order")
    most_bytes = _MOST_TEXT_BYTES if column[1] == _TEXT else _MOST_NUMBERS_BYTES
    values = decoded = dictionaries = 0
    while at < end:
        header, at = read_structure(content, at)
        kind, length, compressed = header[1], header[2], header[3]
        if not 0 <= length <= most_bytes or compressed < 0:
            raise LayoutError(f"a page has {length} bytes, of at most {most_bytes}")
        decoded += length
        at += compressed
        if kind == _DICTIONARY:
            if not 0 <= header[7][1] * _LENGTH_BYTES <= length:
                raise LayoutError("a dictionary has more values than bytes")
            dictionaries += length
            continue
        page, encoding = (header[8], 4) if kind == _DATA_V2 else (header[5], 2)
        if kind not in {_DATA, _DATA_V2} or page[encoding] not in _ENCODINGS or page[1] < 0:
            raise LayoutError("it has an encoding that the store does not write")
        values += page[1]
    if at != end or values != rows:
        raise LayoutError("a column does not have a value for each row")
    return decoded, dictionaries


def read_structure(content: bytes | mmap, at: int) -> tuple[dict[int, Any], int]:
    """Read fields of Thrift's compact protocol by number, and say where they end.

    Raises IndexError where the bytes end.
    """
    from jostle._core import thrift_structure

    for size in (_SHORT_HEADER_BYTES, len(content)):
        part = content[at : at + size]
        try:
            fields, length = thrift_structure(part)
        except ValueError as error:
            raise LayoutError(str(error)) from error
        except IndexError:
            if at + size >= len(content):
                raise
        else:
            return fields, at + length
    raise IndexError("the bytes end")
