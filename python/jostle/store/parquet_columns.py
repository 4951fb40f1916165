"""Columns of uncompressed Parquet files as lists, without the import of Polars, which takes 0.15 s.

The store does not compress tables of a few runs, so that looking up a run starts fast. `measure` of
`parquet_layout` has checked the pages of a file before; values are checked here.

Encodings are from parquet-format 2.11 (`Encodings.md`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from mmap import mmap
from typing import Any, Final

from jostle.store.parquet_layout import LayoutError, byte_range, read_footer, read_structure

__all__ = ["uncompressed_columns"]

_BOOLEAN, _INT32, _TEXT = 0, 1, 6
"""Physical types of the columns that are read; the store writes no negative INT32."""
_UNCOMPRESSED: Final = 0
_OPTIONAL: Final = 1
_DATA, _DICTIONARY = 0, 2
"""Kinds of pages."""
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
"""Encodings."""
_MOST_WIDTH: Final = 32
_SHORT: Final = "a page ends in a value"


def uncompressed_columns(
    content: bytes | mmap, names: Sequence[str]
) -> dict[str, list[Any]] | None:
    """Return columns by name; None if they are compressed or of another kind.

    Raises
    ------
    LayoutError
        When a column is missing or damaged.
    """
    try:
        return _columns(content, read_footer(content)[0], names)
    except LayoutError:
        raise
    except UnicodeDecodeError as error:
        raise LayoutError("a text is not UTF-8") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise LayoutError("its footer or a page is damaged") from error


def _columns(
    content: bytes | mmap, footer: Mapping[int, Any], names: Sequence[str]
) -> dict[str, list[Any]] | None:
    schema = {column[4]: at for at, column in enumerate(footer[2][1:])}
    found: dict[str, list[Any]] = {}
    for name in names:
        at = schema.get(name.encode())
        if at is None:
            raise LayoutError(f"it has no column {name}")
        optional = footer[2][1 + at].get(3) == _OPTIONAL
        found[name] = []
        for group in footer.get(4, []):
            chunk = group[1][at][3]
            if chunk[4] != _UNCOMPRESSED or chunk[1] not in (_BOOLEAN, _INT32, _TEXT):
                return None
            for page in _pages(content, chunk, optional=optional):
                if page is None:
                    return None
                found[name] += page
    return found


def _pages(
    content: bytes | mmap, chunk: Mapping[int, Any], *, optional: bool
) -> Iterator[list[Any] | None]:
    """Yield the values of the data pages of a column; None for an encoding that is not read."""
    at, end = byte_range(chunk)
    words: list[Any] = []
    while at < end:
        header, at = read_structure(content, at)
        page = content[at : at + header[3]]
        at += header[3]
        if header[1] == _DICTIONARY:
            words = _plain(page, chunk[1], header[7][1])
            continue
        if header[1] != _DATA:
            yield None
            continue
        count, encoding = header[5][1], header[5][2]
        there = [1] * count
        if optional:
            length = int.from_bytes(page[:4], "little")
            there = _runs(page[4 : 4 + length], 1, count)
            page = page[4 + length :]
        present = sum(there)
        if encoding == _PLAIN:
            values = iter(_plain(page, chunk[1], present))
        elif encoding == _RLE_DICTIONARY:
            # A page without values may lack the width of its numbers.
            numbers = _runs(page[1:], page[0], present) if present else []
            values = iter([words[number] for number in numbers])
        elif encoding == _RLE and chunk[1] == _BOOLEAN:
            values = iter([bool(bit) for bit in _runs(page[4:], 1, present)])
        else:
            yield None
            continue
        yield [next(values) if bit else None for bit in there]


def _plain(page: bytes, kind: int, count: int) -> list[Any]:
    if kind == _INT32:
        return list(struct.unpack_from(f"<{count}I", page))
    if kind == _BOOLEAN:
        return [bool(page[at >> 3] >> (at & 7) & 1) for at in range(count)]
    texts = []
    at = 0
    for _ in range(count):
        (length,) = struct.unpack_from("<I", page, at)
        at += 4 + length
        if at > len(page):
            raise LayoutError(_SHORT)
        texts.append(page[at - length : at].decode("utf-8"))
    return texts


def _runs(page: bytes, width: int, count: int) -> list[int]:
    """Decode numbers of `width` bits: repeated ones, and groups of eight packed ones."""
    if width > _MOST_WIDTH:
        raise LayoutError(f"a number has {width} bits")
    found: list[int] = []
    size = (width + 7) // 8
    at = 0
    while len(found) < count:
        head = shift = 0
        while True:
            byte = page[at]
            at += 1
            head |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if head & 1:
            end = at + (head >> 1) * width
            if end > len(page):
                raise LayoutError(_SHORT)
            mask = (1 << width) - 1
            for _ in range(min(head >> 1, (count - len(found) + 7) // 8)):
                eight = int.from_bytes(page[at : at + width], "little")
                found += [eight >> number * width & mask for number in range(8)]
                at += width
            at = end
        else:
            if at + size > len(page):
                raise LayoutError(_SHORT)
            number = int.from_bytes(page[at : at + size], "little")
            at += size
            if not head:
                raise LayoutError("a run of numbers is empty")
            found += [number] * min(head >> 1, count - len(found))
    return found[:count]
