"""Files that nobody ever sees half of."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from jostle.errors import InputError


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise InputError(f"cannot write {path}: {error.strerror}") from error
