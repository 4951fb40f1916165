"""Files that somebody else wrote: regular ones, and no larger than what is expected there.

A path in a scenario, a study or a store may name a device that never ends, a pipe that nobody
writes to, or a file larger than memory. `read_bytes` refuses them before anything is read.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final

__all__ = [
    "GUEST_BYTES",
    "MODULE_BYTES",
    "SCENARIO_BYTES",
    "STORED_BYTES",
    "TABLE_BYTES",
    "TEXT_BYTES",
    "TRACE_BYTES",
    "open_regular",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_text",
]

_MB: Final = 10**6
SCENARIO_BYTES: Final = 1 * _MB
"""Of a scenario, a study or a link file: what a person wrote, or a small program."""
TEXT_BYTES: Final = 4 * _MB
"""Of a text that a page shows."""
MODULE_BYTES: Final = 4 * _MB
"""Of a module in Python."""
TABLE_BYTES: Final = 16 * _MB
"""Of a file that is a parameter, such as Remy's tables, whose largest has some 100 kB."""
TRACE_BYTES: Final = 32 * _MB
"""Of a link trace: a minute at 1 Gbit/s has 27 MB."""
STORED_BYTES: Final = 256 * _MB
"""Of a JSON file in a store: a specification holds the link traces and tables of its run."""

TREE_BYTES: Final = 1000 * _MB
"""Of memory for what a JSON text holds: two characters may be an object of a hundred bytes."""

GUEST_BYTES: Final = 2000 * _MB
"""Of a file that a guest leaves: samples each millisecond of an hour, of a few flows."""


# Without O_NONBLOCK, opening a pipe waits for somebody who writes to it. Windows has neither pipes
# among its files nor descriptors that others inherit, but turns ends of lines without O_BINARY.
_AS_IT_IS: Final = sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file for reading, if it is a regular one.

    Raises
    ------
    OSError
        If it cannot be opened, or is none: a folder, a device, a pipe. `strerror` says what.
    ValueError
        If the path holds a null character.
    """
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def read_bytes(path: str | Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most `most_bytes`.

    Raises
    ------
    OSError
        If it cannot be read, is no regular file, or is larger. `strerror` says what.
    ValueError
        If the path holds a null character.
    """
    with open_regular(path) as file:
        # What a file system tells of a size need not be true (those in /proc have none): read one
        # byte more than is accepted, and no more than that.
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > most_bytes else _read_up_to(file, most_bytes + 1)
    if max(size, len(content)) > most_bytes:
        message = f"Larger than {most_bytes // _MB} MB, the most that is read here"
        raise OSError(errno.EFBIG, message, str(path))
    return content


def read_json(path: str | Path, most_bytes: int) -> Any:
    """Return what a regular file of at most `most_bytes` holds in JSON.

    Raises
    ------
    OSError
        As `read_bytes`.
    ValueError
        As `parse_json`, and if it has numbers that JSON has not (NaN).
    """
    return parse_json(read_bytes(path, most_bytes), parse_constant=_refused)


def parse_json(
    text: str | bytes,
    most_bytes: int = TREE_BYTES,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """Return what a text holds in JSON.

    Parameters
    ----------
    text
        The text, in UTF-8 if it is bytes.
    most_bytes
        Of memory for what it holds, estimated from above before it is read.
    parse_constant
        Makes a value of NaN or Infinity; a float if absent.

    Raises
    ------
    ValueError
        If it is not JSON, nests too deeply, or would take more memory.
    """
    if _tree_bytes(text) > most_bytes:
        most = most_bytes // _MB
        raise ValueError(f"too many values: they would take more than {most} MB of memory")
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _tree_bytes(text: str | bytes) -> int:
    """Estimate the memory that the values of a JSON text take, from above."""
    # CPython 3.11: an object with a key has 232 bytes, a list with a value 88, a number 32.
    if isinstance(text, str):
        values = text.count(",") * 60 + text.count("{") * 250 + text.count("[") * 100
    else:
        values = text.count(b",") * 60 + text.count(b"{") * 250 + text.count(b"[") * 100
    return values + len(text)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _read_up_to(file: BinaryIO, most_bytes: int) -> bytes:
    """Read in pieces: `read` makes room for all that it is asked for, however little there is."""
    pieces = []
    while most_bytes > 0 and (piece := file.read(min(most_bytes, _MB))):
        pieces.append(piece)
        most_bytes -= len(piece)
    return b"".join(pieces)


def read_text(path: str | Path, most_bytes: int) -> str:
    """Return the text of a regular file in UTF-8; a line ends with a line feed.

    Raises
    ------
    OSError
        As `read_bytes`.
    ValueError
        As `read_bytes`, and `UnicodeDecodeError` if it is not UTF-8.
    """
    text = read_bytes(path, most_bytes).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")
