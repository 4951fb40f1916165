"""Locks on folders, which end with the process that holds them, however that ends.

Linux and macOS lock a folder itself (`flock`), which keeps its lock when it is renamed. Windows
locks files alone, and renames no folder in which one is open: there the file `NAME.lock` beside a
folder stands for it.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import stat
import time
from pathlib import Path
from typing import Any, Final

try:
    import fcntl
except ImportError:  # Windows.
    _FOLDERS_HAVE_LOCKS = False
else:
    _FOLDERS_HAVE_LOCKS = True

__all__ = ["LOCKS_ARE_SHARED", "FolderLock"]

LOCKS_ARE_SHARED: Final = _FOLDERS_HAVE_LOCKS
"""Whether several may have a lock that they ask for as shared."""

_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK, errno.EWOULDBLOCK}
"""What systems say where another has the lock."""
_ASK_EVERY_S = 0.01


class FolderLock:
    """A lock on a folder, made by `take` and held until `release`."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor

    @classmethod
    def take(
        cls, folder: Path, *, shared: bool = False, wait_s: float | None = 0.0
    ) -> FolderLock | None:
        """Lock an existing folder.

        Parameters
        ----------
        folder
            No symbolic link.
        shared
            Beside others who lock it so. On Windows nobody else has it, all the same.
        wait_s
            How long to wait for whoever has it, in seconds of real time; without end if None.

        Returns
        -------
        FolderLock or None
            None if another process, or another lock of this one, has it, or folders cannot be
            locked here, as on some network file systems.

        Raises
        ------
        OSError
            When it is no folder, or cannot be opened.
        """
        until_s = None if wait_s is None else time.monotonic() + wait_s
        descriptor = _opened(folder)
        try:
            while not _locked(descriptor, shared, block=until_s is None):
                if until_s is not None and time.monotonic() >= until_s:
                    os.close(descriptor)
                    return None
                time.sleep(_ASK_EVERY_S)
        except OSError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(folder, descriptor)

    def rename(self, to: Path) -> Path:
        """Rename the folder, which stays locked; returns where it is."""
        if _FOLDERS_HAVE_LOCKS:
            self._folder = self._folder.rename(to)
            return self._folder
        before = self._descriptor, self._folder
        descriptor = os.open(_beside(to), os.O_RDWR | os.O_CREAT)
        try:
            _locked(descriptor, shared=False, block=False)
            self._folder.rename(to)
        except BaseException:
            os.close(descriptor)
            _forget(to)
            raise
        self._descriptor, self._folder = descriptor, to
        os.close(before[0])
        _forget(before[1])
        return to

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)
        if not _FOLDERS_HAVE_LOCKS:
            _forget(self._folder)


def _beside(folder: Path) -> Path:
    """Name the file that stands for a folder."""
    return folder.with_name(f"{folder.name}.lock")


def _forget(folder: Path) -> None:
    # Windows refuses where another process has it open, who may be about to lock it.
    with contextlib.suppress(OSError):
        _beside(folder).unlink()


def _opened(folder: Path) -> int:
    if _FOLDERS_HAVE_LOCKS:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    return os.open(_beside(folder), os.O_RDWR | os.O_CREAT)


def _locked(descriptor: int, shared: bool, *, block: bool) -> bool:
    """Lock what is open; false if another has it, OSError if it cannot be locked."""
    try:
        if _FOLDERS_HAVE_LOCKS:
            how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, how if block else how | fcntl.LOCK_NB)
        else:
            # Its types are there on Windows alone.
            windows: Any = importlib.import_module("msvcrt")
            os.lseek(descriptor, 0, os.SEEK_SET)
            # What waits gives up after ten seconds.
            windows.locking(descriptor, windows.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
