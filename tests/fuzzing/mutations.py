"""Damage to files, drawn at random: of their structure where it is known, else of their bytes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
import subprocess
import tomllib
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["MOST_BYTES", "mutate"]

MOST_BYTES: Final = 10**6
"""Of a mutated file: the cost of a smaller one must be small."""
_PLAIN_BYTES: Final = 8 * MOST_BYTES
"""Of what is compressed into such a file."""

_NUMBERS: Final = (
    0, -1, 1, 7, 255, 65_536, 2**31, 2**32 - 1, 2**53, 2**63, 2**64, -(2**63), 10**30, 10**400,
    0.5, -0.0, 1e-300, 1e15, 1e18, 1e300, -1e300, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_TEXTS: Final = (
    "", " ", "a", "0", "-1", "nan", "1e999", "1e-999", "true", "null", "\n", "a\nerror: b",
    "\x1b[31m", "\u202e", "\ud7ff", "\U0001f600", "\x00", "%s", "{}", "[red]", "../../etc/hostname",
    "/dev/zero", "http://[", "1 ms", "-1 ms", "1e30 s", "1 Gbit/s", "0 Mbit/s", "100 %", "1e9 %",
    "9" * 400, "2024-01-11 10:06:39", "9999-12-31T23:59:59Z", "a.b.c", "flows.*.rtt", "x" * 5_000,
)  # fmt: skip
_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_HOLE: Final = "\ue000hole\ue000"
"""Place of a value that is put in as text, as deeply nested ones are."""

Node = dict[str, Any] | list[Any]


def mutate(draw: random.Random, content: bytes, form: str, others: Sequence[bytes] = ()) -> bytes:
    """Damage a file.

    Parameters
    ----------
    draw
        Where all chance comes from.
    content
        A file that its reader takes.
    form
        `toml`, `json`, `lines` of JSON, `text` or `bytes`; with `+gz` or `+zst` what is inside is
        damaged or, less often, the compressed file.
    others
        Further files of the same kind, from which pieces are taken.
    """
    form, _, packing = form.partition("+")
    if packing and draw.random() < 0.8:
        plain = mutate(draw, _unpacked(content, packing), form, others)
        if draw.random() < 0.05:
            plain = _grown(draw, plain, _PLAIN_BYTES)
        return _packed(plain, packing)[:MOST_BYTES]
    if packing:
        form = "bytes"
    for _ in range(1 + int(draw.expovariate(0.7))):
        try:
            content = _once(draw, content, form, others)
        except RecursionError:
            # It nests as deeply as can be written.
            content = _flip(draw, content, others)
    if draw.random() < 0.02:
        content = _grown(draw, content, MOST_BYTES)
    return content[:MOST_BYTES]


def _once(draw: random.Random, content: bytes, form: str, others: Sequence[bytes]) -> bytes:
    if form == "lines" and draw.random() < 0.6:
        lines = content.splitlines(keepends=True)
        at = draw.randrange(len(lines)) if lines else 0
        mark = b"\x1e" if lines and lines[at].startswith(b"\x1e") else b""
        inner = lines[at].lstrip(b"\x1e") if lines else b""
        return b"".join([*lines[:at], mark, _of_json(draw, inner), b"\n", *lines[at + 1 :]])
    if form == "json" and draw.random() < 0.75:
        return _of_json(draw, content)
    if form == "toml" and draw.random() < 0.6:
        return _of_toml(draw, content)
    if form == "bytes":
        return draw.choice(_BYTE_CHANGES)(draw, content, others)
    return draw.choice(_TEXT_CHANGES)(draw, content, others)


def _of_json(draw: random.Random, content: bytes) -> bytes:
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError):
        return _flip(draw, content, ())
    deep = _change(draw, tree)
    text = json.dumps(tree, indent=draw.choice((None, None, 1)))
    return text.replace(json.dumps(_HOLE), deep).encode("utf-8", "surrogatepass")


def _of_toml(draw: random.Random, content: bytes) -> bytes:
    try:
        tree = tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return _lines(draw, content, ())
    deep = _change(draw, tree)
    text = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in tree.items())
    return text.replace(_toml(_HOLE), deep).encode("utf-8", "surrogatepass")


def _toml(value: Any) -> str:
    """Write a value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    if value is None:
        return '""'
    return json.dumps(value) if isinstance(value, str | bool | int) else str(value)


def _change(draw: random.Random, tree: Any) -> str:
    """Change a place of a tree; return the text of its hole, if a value became one."""
    places = list(_places(tree))
    if not places:
        return "0"
    node, key = draw.choice(places)
    kind = draw.random()
    if kind < 0.45:
        node[key] = _value(draw)
    elif kind < 0.6:
        del node[key]
    elif kind < 0.75 and isinstance(node, dict):
        other = draw.choice(list(node)) if draw.random() < 0.5 else str(draw.choice(_TEXTS))
        node[other] = node.pop(key)
    elif kind < 0.85:
        there, at = draw.choice(places)
        with contextlib.suppress(LookupError):
            node[key] = json.loads(json.dumps(there[at], default=str))
    elif kind < 0.95 and isinstance(node, list):
        node[:] = [*node[:key], *[node[key]] * draw.choice((2, 3, 1000)), *node[key:]]
    else:
        node[key] = _HOLE
        depth = draw.choice((3, 90, 400, 3_000, 100_000))
        return "[" * depth + "]" * depth if draw.random() < 0.7 else "[[1], [], [[]]]"
    return "0"


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every node and key of a tree that was just read."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting and len(found) < 20_000:
        node = waiting.pop()
        if isinstance(node, dict | list):
            keys = list(node) if isinstance(node, dict) else range(len(node))
            found += [(node, key) for key in keys]
            waiting += [node[key] for key in keys]
    return found


def _value(draw: random.Random) -> Any:
    kind = draw.random()
    if kind < 0.45:
        # Floats beyond a double, and ints that no text of JSON would have, are among them.
        return draw.choice(_NUMBERS)
    if kind < 0.8:
        return draw.choice(_TEXTS)
    return draw.choice((None, True, False, [], {}, [[]], [1, "a"], {"a": 1}, [None] * 50))


def _flip(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Change single bytes."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8)) if changed else 0):
        at = draw.randrange(len(changed))
        changed[at] = draw.choice((0, 0xFF, 0x7F, changed[at] ^ 1 << draw.randrange(8)))
    return bytes(changed)


def _integer(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Write a whole number over some bytes."""
    size = draw.choice((1, 2, 4, 8))
    number = draw.choice((0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1))
    written = (number % 2 ** (8 * size)).to_bytes(size, draw.choice(("little", "big")))
    at = draw.randrange(len(content) + 1)
    return content[:at] + written + content[at + size :]


def _cut(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Remove the end, or a piece."""
    start = draw.randrange(len(content) + 1)
    end = len(content) if draw.random() < 0.4 else start + draw.randrange(1, 200)
    return content[:start] + content[end:]


def _again(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Repeat a piece."""
    start = draw.randrange(len(content) + 1)
    piece = content[start : start + draw.choice((1, 4, 16, 100, 2_000))]
    return content[:start] + piece * draw.choice((1, 2, 50)) + content[start:]


def _spliced(draw: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Join two files."""
    other = draw.choice(others) if others else content
    return content[: draw.randrange(len(content) + 1)] + other[draw.randrange(len(other) + 1) :]


def _lines(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Remove, repeat, exchange or join lines."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[one : one + draw.choice((1, 2, 10))]
        case 1:
            lines[other:other] = [lines[one]] * draw.choice((1, 2, 100))
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines[one] = lines[one].rstrip(b"\r\n") + draw.choice((b"", b"\r", b" ", b"\x00"))
    return b"".join(lines)


def _number(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Replace a number of a text."""
    found = list(_NUMBER.finditer(content[:200_000]))
    if not found:
        return content
    match = draw.choice(found)
    written = str(draw.choice((*_NUMBERS[:-10], *_NUMBERS[-9:]))).encode()
    return content[: match.start()] + written + content[match.end() :]


def _inserted(draw: random.Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Insert a text."""
    at = draw.randrange(len(content) + 1)
    raw = (b"\xff\xfe", b"\xed\xa0\x80", b"\x1f\x8b", b"[" * 3_000, b"{a=" * 3_000, b'"""', b",")
    piece = draw.choice(_TEXTS).encode() if draw.random() < 0.8 else draw.choice(raw)
    return content[:at] + piece + content[at:]


def _grown(draw: random.Random, content: bytes, most: int) -> bytes:
    """Repeat a piece until the file is large."""
    start = draw.randrange(len(content) + 1)
    piece = content[start : start + draw.choice((1, 20, 200, 2_000))] or b" "
    if draw.random() < 0.5:
        begin = content.rfind(b"\n", 0, start) + 1
        piece = content[begin : content.find(b"\n", start) + 1] or piece
        start = begin
    return content[:start] + piece * ((most - len(content)) // len(piece)) + content[start:]


_Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
_BYTE_CHANGES: Final[tuple[_Change, ...]] = (
    _flip,
    _flip,
    _integer,
    _integer,
    _cut,
    _again,
    _spliced,
)
_TEXT_CHANGES: Final[tuple[_Change, ...]] = (
    _lines, _lines, _number, _number, _number, _inserted, _cut, _again, _flip, _spliced,
)  # fmt: skip


def _unpacked(content: bytes, packing: str) -> bytes:
    if packing == "gz":
        return gzip.GzipFile(fileobj=io.BytesIO(content)).read()
    return _zstd(content, "-dq")


def _packed(plain: bytes, packing: str) -> bytes:
    if packing == "gz":
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return packer.compress(plain) + packer.flush()
    return _zstd(plain, "-q")


def _zstd(content: bytes, option: str) -> bytes:
    return subprocess.run(["zstd", option], input=content, capture_output=True, check=True).stdout
