"""Files that nobody ever sees half of."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from jostle.errors import InputError, brief

__all__ = ["replace_file", "replaced"]


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it: see `replaced`.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    with replaced(path) as partial:
        partial.write_bytes(content)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Write a file, in whatever way, so that nobody ever sees half of it.

    What a symbolic link points to is replaced, and not the link. What is no file, as ``/dev/null``
    or a named pipe, is written to: a file in its place would take it away from everybody else.

    Parameters
    ----------
    path
        Where the file is to be.

    Yields
    ------
    Path
        Where to write it. It takes its place at the end of the context, unless that raises.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            yield path
            return
        # `Path.resolve` of links in a circle raises what is no OSError.
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
