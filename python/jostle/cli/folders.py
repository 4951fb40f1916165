"""Folders that results go to: made, and seen to be writable, before anything runs."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from jostle.errors import InputError


def make_folder(folder: str | Path | None) -> None:
    """Make a folder that results go to, if one is given, and see that they can."""
    if folder is None:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
    try:
        # Permissions do not tell what a file system allows.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write into the folder {folder}: {error.strerror}") from error


def make_folder_of(file: str | None) -> None:
    """Make the folder of a file that is to be written, if one is given, and see that it can be."""
    if file is None:
        return
    make_folder(Path(file).parent)
    if Path(file).is_dir():
        raise InputError(f"cannot write {file}: {os.strerror(errno.EISDIR)}")
