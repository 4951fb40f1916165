"""Atomic file writes: readers see the old or the new content, never a part."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from jostle.errors import InputError, brief

__all__ = ["atomic_writer", "write_atomically"]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically; see `atomic_writer`.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with atomic_writer(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def atomic_writer(path: Path) -> Iterator[Path]:
    """Yield a path for writing a file that is published atomically.

    If the path is a symbolic link, its target is replaced. A path that is not a regular file, such
    as ``/dev/null`` or a named pipe, is written directly, so that it is not replaced by a file.

    Parameters
    ----------
    path
        Path of the file.

    Yields
    ------
    Path
        Path to write to. It is renamed at the end of the context, unless an exception is raised.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            yield path
            return
        # `Path.resolve` raises an error that is not an OSError for circular links.
        target = Path(os.path.realpath(path))
        partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        try:
            yield partial
            partial.replace(target)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()
    except OSError as error:
        told = error.strerror or brief(str(error))
        raise InputError(f"cannot write {path}: {told}") from error
