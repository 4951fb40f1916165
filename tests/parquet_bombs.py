"""Parquet files that are small and claim, or become, much: written byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PLAIN, RLE_DICTIONARY, DELTA_BYTE_ARRAY = 0, 8, 7
UNCOMPRESSED, GZIP, ZSTD = 0, 2, 6
INT64, DOUBLE, TEXT, FIXED = 2, 5, 6, 7
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12

Struct = list[tuple[int, int, Any]]
"""Fields: number, kind of value, value."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def compact(fields: Struct) -> bytes:
    """Write a structure in Thrift's compact protocol."""
    out, last = bytearray(), 0
    for number, kind, value in fields:
        out += bytes([(number - last) << 4 | kind])
        out += _value(kind, value)
        last = number
    return bytes(out) + b"\0"


def _value(kind: int, value: Any) -> bytes:
    if kind in {I32, I64}:
        return varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind == STRUCT:
        return compact(value)
    of, items = value
    return bytes([0xF0 | of]) + varint(len(items)) + b"".join(_value(of, item) for item in items)


def zstd_zeros(length: int) -> bytes:
    """A frame of Zstandard: four bytes for each 128 kB of zeros."""
    frame = b"\x28\xb5\x2f\xfd" + b"\xa0" + length.to_bytes(4, "little")
    block = 1 << 17
    blocks = [block] * (length // block) + ([length % block] if length % block else [])
    for at, size in enumerate(blocks):
        head = size << 3 | 1 << 1 | (at == len(blocks) - 1)
        frame += head.to_bytes(3, "little") + b"\0"
    return frame


@dataclass
class Page:
    """A page: what is written of it, and what its header says."""

    content: bytes
    values: int
    encoding: int = PLAIN
    dictionary: bool = False
    length: int | None = None

    def written(self) -> bytes:
        length = len(self.content) if self.length is None else self.length
        about: Struct = [(1, I32, self.values), (2, I32, self.encoding)]
        if not self.dictionary:
            about += [(3, I32, 3), (4, I32, 3)]
        header: Struct = [
            (1, I32, 2 if self.dictionary else 0),
            (2, I32, length),
            (3, I32, len(self.content)),
            (7 if self.dictionary else 5, STRUCT, about),
        ]
        return compact(header) + self.content


@dataclass
class Column:
    """A column of one row group."""

    name: str
    pages: Sequence[Page]
    kind: int = TEXT
    codec: int = UNCOMPRESSED
    schema: Struct = field(default_factory=list)
    """More fields of its schema, by number."""


def equal_texts(name: str, rows: int, text: bytes = b"x") -> Column:
    """A column of equal texts: a dictionary of one, and one run of its index."""
    dictionary = Page(len(text).to_bytes(4, "little") + text, 1, dictionary=True)
    return Column(
        name, [dictionary, Page(b"\x01" + varint(rows << 1) + b"\0", rows, RLE_DICTIONARY)]
    )


def parquet(
    columns: Sequence[Column],
    rows: int,
    *,
    claimed_rows: int | None = None,
    groups: int = 1,
    overlapping: bool = False,
) -> bytes:
    """Write a file of columns, each whole in one row group, or in several that share its pages."""
    content = bytearray(b"PAR1")
    chunks: list[Struct] = []
    for column in columns:
        begin = 4 if overlapping else len(content)
        dictionary = column.pages[0].written() if column.pages[0].dictionary else b""
        pages = b"".join(page.written() for page in column.pages)
        if begin == len(content):
            content += pages
        meta: Struct = [
            (1, I32, column.kind), (2, LIST, (I32, [PLAIN])),
            (3, LIST, (BINARY, [column.name.encode()])), (4, I32, column.codec), (5, I64, rows),
            (6, I64, len(pages)), (7, I64, len(pages)), (9, I64, begin + len(dictionary)),
        ]  # fmt: skip
        if dictionary:
            meta.append((11, I64, begin))
        chunks.append([(2, I64, begin), (3, STRUCT, meta)])
    leaves = [
        sorted(
            [(1, I32, c.kind), (3, I32, 0), (4, BINARY, c.name.encode()), *c.schema]
            + [(6, I32, 0)] * (c.kind == TEXT)
        )
        for c in columns
    ]
    schema = [[(4, BINARY, b"schema"), (5, I32, len(columns))], *leaves]
    group: Struct = [(1, LIST, (STRUCT, chunks)), (2, I64, len(content)), (3, I64, rows)]
    claimed = rows * groups if claimed_rows is None else claimed_rows
    footer = compact([
        (1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, claimed),
        (4, LIST, (STRUCT, [group] * groups)),
    ])  # fmt: skip
    return bytes(content) + footer + len(footer).to_bytes(4, "little") + b"PAR1"
