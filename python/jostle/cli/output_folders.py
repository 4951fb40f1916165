"""Output folders: created and checked for write access before anything runs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from jostle.errors import InputError


def make_folder(folder: str | Path | None) -> None:
    """Create an output folder, if one is given, and check that it is writable."""
    if folder is None:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
    import tempfile

    try:
        # Permission bits do not show all restrictions of a file system, so write a file.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write into the folder {folder}: {error.strerror}") from error


def make_folder_of(file: str | None) -> None:
    """Create the folder of an output file, if one is given, and check that it is writable."""
    if file is None:
        return
    make_folder(Path(file).parent)
    if Path(file).is_dir():
        raise InputError(f"cannot write {file}: {os.strerror(errno.EISDIR)}")
