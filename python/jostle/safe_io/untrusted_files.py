"""Reading of untrusted files: regular files only, up to a maximum size.

A path in a scenario, a study or a store may refer to an endless device, a pipe without a writer, or
a file larger than memory. `read_bytes` rejects them before it reads anything. It also rejects the
outputs of the present command, which would replace its own inputs.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Final

from jostle.errors import InputError

__all__ = [
    "GUEST_BYTES",
    "MODULE_BYTES",
    "SCENARIO_BYTES",
    "STORED_BYTES",
    "TABLE_BYTES",
    "TEXT_BYTES",
    "TRACE_BYTES",
    "malformed",
    "open_regular",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_text",
    "reserved_outputs",
]

_MB: Final = 10**6
SCENARIO_BYTES: Final = 1 * _MB
"""Maximum size of a scenario, a study or a link file."""
TEXT_BYTES: Final = 4 * _MB
"""Maximum size of a text that a page shows."""
MODULE_BYTES: Final = 4 * _MB
"""Maximum size of a Python module."""
TABLE_BYTES: Final = 16 * _MB
"""Maximum size of a file parameter, such as Remy's tables, the largest of which has 100 kB."""
TRACE_BYTES: Final = 32 * _MB
"""Maximum size of a link trace: one minute at 1 Gbit/s has 27 MB."""
STORED_BYTES: Final = 256 * _MB
"""Maximum size of a JSON file in a store: a specification contains link traces and tables."""

TREE_BYTES: Final = 1000 * _MB
"""Maximum memory for the values of a JSON text: two characters may be an object of 100 bytes."""

GUEST_BYTES: Final = 2000 * _MB
"""Maximum size of a guest's file: samples of a few flows each millisecond for an hour."""

_OUTPUTS: Final[list[str]] = []


def malformed(error: Exception) -> str:
    """Say what a reader found wrong in a document, without names of Python's types."""
    if isinstance(error, KeyError):
        return f"`{error.args[0]}` is missing"
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return str(error)
    if isinstance(error, ArithmeticError):
        return "a number is too large"
    return "a value is missing or of another type"


@contextmanager
def reserved_outputs(paths: Iterable[str]) -> Iterator[None]:
    """Refuse to read any of these files, which a command will write, inside the context."""
    added = list(paths)
    _OUTPUTS.extend(added)
    try:
        yield
    finally:
        for path in added:
            _OUTPUTS.remove(path)


def _refuse_output(opened: os.stat_result) -> None:
    """Check a file that was opened for reading.

    Raises
    ------
    InputError
        If it is an output of the present command.
    """
    for path in tuple(_OUTPUTS):
        try:
            is_output = os.path.samestat(os.stat(path), opened)
        except (OSError, ValueError):
            continue
        if is_output:
            raise InputError(
                f"-o would replace {path}, which this command reads — write to another file"
            )


# Without O_NONBLOCK, opening a pipe waits for a writer. Windows has neither named pipes in its
# file system nor inherited descriptors, but without O_BINARY it converts line ends.
_AS_IT_IS: Final = sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def open_regular(path: str | Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises
    ------
    OSError
        If it cannot be opened, or is a folder, a device or a pipe; see `strerror`.
    ValueError
        If the path contains a null character.
    InputError
        If it is an output of the present command.
    """
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    try:
        status = os.fstat(descriptor)
        _refuse_output(status)
        mode = status.st_mode
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
        If it cannot be read, is not a regular file, or is larger; see `strerror`.
    ValueError
        If the path contains a null character.
    """
    with open_regular(path) as file:
        # The size reported by a file system may be wrong (files in /proc have none): read up to one
        # byte more than is accepted.
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > most_bytes else _read_up_to(file, most_bytes + 1)
    if max(size, len(content)) > most_bytes:
        message = f"Larger than {most_bytes // _MB} MB, the most that is read here"
        raise OSError(errno.EFBIG, message, str(path))
    return content


def read_json(path: str | Path, most_bytes: int) -> Any:
    """Parse a regular JSON file of at most `most_bytes`.

    Raises
    ------
    OSError
        Like `read_bytes`.
    ValueError
        Like `parse_json`, and if it contains constants that JSON does not allow (NaN).
    """
    return parse_json(read_bytes(path, most_bytes), parse_constant=_refused)


def parse_json(
    text: str | bytes,
    most_bytes: int = TREE_BYTES,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """Parse JSON text.

    Parameters
    ----------
    text
        The text, in UTF-8 if it is bytes.
    most_bytes
        Maximum memory for its values, estimated from above before parsing.
    parse_constant
        Function that converts NaN or Infinity to a value; by default they become floats.

    Raises
    ------
    ValueError
        If the text is not JSON, nests too deeply, or needs more memory.
    """
    if _tree_bytes(text) > most_bytes:
        most = most_bytes // _MB
        raise ValueError(f"too many values: they would take more than {most} MB of memory")
    try:
        return json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _tree_bytes(text: str | bytes) -> int:
    """Return an upper estimate of the memory of a JSON text's values."""
    # CPython 3.11: an object with one key takes 232 bytes, a list with one value 88, a number 32.
    if isinstance(text, str):
        values = text.count(",") * 60 + text.count("{") * 250 + text.count("[") * 100
    else:
        values = text.count(b",") * 60 + text.count(b"{") * 250 + text.count(b"[") * 100
    return values + len(text)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _read_up_to(file: BinaryIO, most_bytes: int) -> bytes:
    """Read in chunks, because `read` allocates memory for the complete requested size."""
    pieces = []
    while most_bytes > 0 and (piece := file.read(min(most_bytes, _MB))):
        pieces.append(piece)
        most_bytes -= len(piece)
    return b"".join(pieces)


def read_text(path: str | Path, most_bytes: int) -> str:
    """Return the text of a regular UTF-8 file, with line feeds as line ends.

    Raises
    ------
    OSError
        Like `read_bytes`.
    ValueError
        Like `read_bytes`, and `UnicodeDecodeError` if it is not UTF-8.
    """
    text = read_bytes(path, most_bytes).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")
