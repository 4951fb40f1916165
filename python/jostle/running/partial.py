"""Folders that are being written, and what is left of those whose writer was killed.

A folder that is being written is locked by its writer (`flock`), and the lock ends with the
process, however that ends. So what is not locked is abandoned, whatever the clocks say.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

__all__ = ["Partial", "remove_abandoned"]

_NAME: Final = re.compile(r"[0-9a-z]+-[0-9a-f]{32}")
"""What `Partial` calls its folders: nothing else is ever removed."""


class Partial:
    """A new folder below `parent`, removed in the end with what is still in it.

    Parameters
    ----------
    parent
        An existing folder.
    name
        What the folder's name begins with: lower-case letters and digits.

    Raises
    ------
    OSError
        When it cannot be made.
    """

    def __init__(self, parent: Path, name: str) -> None:
        self.parent = parent
        self.path = parent / f"{name}-{uuid.uuid4().hex}"
        self._lock = -1

    def __enter__(self) -> Path:
        # Whoever cleans up waits until the new folder is locked.
        with _Locked(self.parent, fcntl.LOCK_SH):
            self.path.mkdir()
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            # Where folders cannot be locked (some network file systems), none is ever removed.
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Renamed, it is no longer here.
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the folders below `parent` that `Partial` made in processes that were killed.

    Links are not followed, nor removed. If another process is cleaning up or beginning to write,
    or folders cannot be locked here, nothing is removed.

    Raises
    ------
    OSError
        When `parent` is a link, or cannot be read.
    """
    with _Locked(parent, fcntl.LOCK_EX | fcntl.LOCK_NB) as locked:
        if not locked:
            return
        for folder in parent.iterdir():
            if _NAME.fullmatch(folder.name) and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # A file, a link, or gone meanwhile.
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


class _Locked:
    """Holds a lock on a folder; true if it was to be had."""

    def __init__(self, folder: Path, how: int) -> None:
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._how = how

    def __enter__(self) -> bool:
        try:
            fcntl.flock(self._descriptor, self._how)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
