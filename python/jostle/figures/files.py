"""Files that nobody ever sees half of."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from jostle.errors import InputError


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it.

    What a symbolic link points to is replaced, and not the link. What is no file, as ``/dev/null``
    or a named pipe, is written to: a file in its place would take it away from everybody else.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        path = path.resolve()
    except OSError as error:
        raise _unwritable(path, error) from error
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot write {path}: {error.strerror}")
