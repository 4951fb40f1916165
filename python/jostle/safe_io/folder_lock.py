"""Locks that end with the process that holds them.

Any user who can open a file or folder can lock it (`flock`), even if only for reading. Locked files
and folders are therefore accessible only to users who may write to them:

- `LockFile`, a file of mode 0600, or 0660 in a folder that a group shares.
- `FolderLock`, a folder created with such permissions (`scratch_folder.py`). Linux and macOS lock
  the folder itself, which keeps its lock when it is renamed. Windows locks only files, and does not
  rename a folder that contains an open file: there the file `NAME.lock` next to the folder is
  locked.

A process waits for a lock for a few minutes at most, and prints a message.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.terminal_text import echo

try:
    import fcntl
except ImportError:  # Windows.
    _FOLDERS_HAVE_LOCKS = False
else:
    _FOLDERS_HAVE_LOCKS = True

__all__ = ["LOCKS_ARE_SHARED", "FolderLock", "LockFile", "locked_file", "locked_folder", "waiting"]

LOCKS_ARE_SHARED: Final = _FOLDERS_HAVE_LOCKS
"""Whether several processes can hold a shared lock."""
PATIENCE_S = 180.0
"""Maximum time that a process waits for a lock."""
SAY_AFTER_S = 2.0
"""Time after which a waiting process prints a message."""

_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK, errno.EWOULDBLOCK}
"""Error numbers that mean that another process holds the lock."""
_ASK_EVERY_S = 0.01
_PROBE_S = 0.0 if LOCKS_ARE_SHARED else 0.2
"""Time for which to retry a lock, because another process may test it at the same moment."""
_COMMAND_CHARACTERS = 80


class LockFile:
    """A lock on a file, held from `take` until `release`; other users cannot open the file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(
        cls, folder: OpenFolder, name: str, *, wait_s: float | None = 0.0, of: str = ""
    ) -> LockFile | None:
        """Lock a file, which is created if it is missing.

        Parameters
        ----------
        folder, name
            Folder of the file, and its name.
        wait_s
            Maximum time to wait for another process; `PATIENCE_S` if None.
        of
            Name of the locked resource for the message; no message is printed if empty.

        Returns
        -------
        LockFile or None
            None if another process holds it.

        Raises
        ------
        OSError
            If the file cannot be opened or locked, or is not a regular file.
        """
        until_s = time.monotonic() + (PATIENCE_S if wait_s is None else wait_s)
        while True:
            descriptor = _open_lock_file(folder, name)
            if not _lock_until(descriptor, until_s, shared=False, of=of):
                return None
            # The last holder may have removed the file, and another process created a new one.
            if os.fstat(descriptor).st_nlink:
                return cls(descriptor)
            os.close(descriptor)

    @staticmethod
    def is_locked(folder: OpenFolder, name: str) -> bool:
        """Return whether a process holds the lock, or the file system does not support locks.

        If the file belongs to another user and cannot be opened, only processes on this machine are
        detected, and only on Linux.
        found, and only on Linux.

        Raises
        ------
        OSError
            If the name is not a regular file.
        """
        try:
            descriptor = folder.open_own_file(name, os.O_RDONLY)
        except PermissionError:
            return _holder(folder.lstat(name)) is not None
        except FileNotFoundError:
            return False
        try:
            held = not _lock_until(descriptor, time.monotonic() + _PROBE_S, shared=True)
        except OSError:
            return True
        if not held:
            os.close(descriptor)
        return held

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


class FolderLock:
    """A lock on a folder, made by `take` and held until `release`."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor

    @classmethod
    def take(
        cls, folder: Path | OpenFolder, *, shared: bool = False, wait_s: float | None = 0.0
    ) -> FolderLock | None:
        """Lock an existing folder.

        Parameters
        ----------
        folder
            Folder; must not be a symbolic link.
        shared
            Whether other shared locks are allowed. On Windows, the lock is always exclusive.
        wait_s
            Maximum time to wait for another process; `PATIENCE_S` if None.

        Returns
        -------
        FolderLock or None
            None if another process or another lock of this process holds it, or folders cannot be
            locked here, as on some network file systems.

        Raises
        ------
        OSError
            If it is not a folder, or cannot be opened.
        """
        until_s = time.monotonic() + (PATIENCE_S if wait_s is None else wait_s)
        path = folder.path if isinstance(folder, OpenFolder) else folder
        descriptor = _opened(folder)
        try:
            taken = _lock_until(descriptor, until_s, shared=shared, of=str(path))
        except OSError:
            return None
        return cls(path, descriptor) if taken else None

    def rename(self, to: Path) -> Path:
        """Rename the folder, which stays locked, and return its new path."""
        if _FOLDERS_HAVE_LOCKS:
            self._folder = self._folder.rename(to)
            return self._folder
        before = self._descriptor, self._folder
        descriptor = os.open(_beside(to), os.O_RDWR | os.O_CREAT)
        try:
            _try_lock(descriptor, shared=False)
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
        """Release the lock."""
        os.close(self._descriptor)
        if not _FOLDERS_HAVE_LOCKS:
            _forget(self._folder)


@contextlib.contextmanager
def locked_file(
    folder: OpenFolder, name: str, of: str, refused: Callable[[str], Exception]
) -> Iterator[None]:
    """Hold the lock of a file, which is released at the latest when this process ends.

    Parameters
    ----------
    folder, name, of
        See `LockFile.take`; another process has `PATIENCE_S` to release it.
    refused
        Returns the error if it does not, from a message with the holder and advice.
    """
    lock = LockFile.take(folder, name, wait_s=None, of=of)
    if lock is None:
        raise refused(still_locked(folder, name, of))
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def locked_folder(folder: Path, refused: Callable[[str], Exception]) -> Iterator[None]:
    """Hold the lock of a folder that may be missing or replaced: a file with its name next to it.

    `refused` is as for `locked_file`.
    """
    with (
        OpenFolder.at(folder.parent, make=True) as parent,
        locked_file(parent, f"{folder.name}.lock", str(folder), refused),
    ):
        yield


def still_locked(folder: OpenFolder, name: str, of: str) -> str:
    """Return a message that a lock is held, with its holder and advice."""
    holder = _holder(folder.lstat(name))
    if holder is None:
        holder = f"a process that is not visible here (it has {folder.path / name} open)"
    return (
        f"{of} is still locked after {PATIENCE_S:g} s, by {holder}: wait until that process ends, "
        "or end it, then give the same command again"
    )


def waiting(of: str, status: os.stat_result) -> None:
    """Print that this process waits for a lock, and which process holds it if known."""
    holder = _holder(status)
    # Ignore errors: a failed message must not stop runs.
    with contextlib.suppress(OSError):
        echo(f"waiting for the lock of {of}" + (f", held by {holder}" if holder else ""), err=True)


def _holder(status: os.stat_result) -> str | None:
    """Return the process that holds a lock; None if it is not visible."""
    # "1: FLOCK  ADVISORY  WRITE 708 08:01:13548 0 EOF": the device in hexadecimal, the inode in
    # decimal digits (proc_locks(5)). Lines of waiting processes have "->" as second word.
    if not hasattr(os, "major"):
        return None
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    place = f"{device}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text("ascii").splitlines()
        found = [words[4] for line in lines if place == (words := line.split())[5]]
    except (OSError, ValueError, IndexError):
        return None
    # Processes of another PID namespace have the number 0 or -1.
    for process in (word for word in found if int(word) > 0):
        try:
            arguments = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0")
            command = arguments.replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            command = ""
        if len(command) > _COMMAND_CHARACTERS:
            command = f"{command[:_COMMAND_CHARACTERS]} …"
        return f"process {process} ({command})" if command else f"process {process}"
    return None


def _open_lock_file(folder: OpenFolder, name: str) -> int:
    """Open a lock file, with access only for users who may write to its folder."""
    descriptor = folder.open_own_file(name, os.O_RDWR | os.O_CREAT, 0o600)
    mode = 0o660 if folder.is_shared else 0o600
    if _FOLDERS_HAVE_LOCKS:
        status = os.fstat(descriptor)
        if stat.S_IMODE(status.st_mode) != mode and status.st_uid == os.geteuid():
            os.fchmod(descriptor, mode)
    return descriptor


def _beside(folder: Path) -> Path:
    """Return the path of the lock file next to a folder."""
    return folder.with_name(f"{folder.name}.lock")


def _forget(folder: Path) -> None:
    # On Windows this fails if another process has opened the file to lock it.
    with contextlib.suppress(OSError):
        _beside(folder).unlink()


def _opened(folder: Path | OpenFolder) -> int:
    if _FOLDERS_HAVE_LOCKS:
        if isinstance(folder, OpenFolder):
            return folder.open_again()
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    path = folder.path if isinstance(folder, OpenFolder) else folder
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    return os.open(_beside(path), os.O_RDWR | os.O_CREAT)


def _lock_until(descriptor: int, until_s: float, *, shared: bool, of: str = "") -> bool:
    """Lock a descriptor, waiting until `until_s`; close it on failure."""
    say_s = time.monotonic() + SAY_AFTER_S
    try:
        while not _try_lock(descriptor, shared=shared):
            now_s = time.monotonic()
            if now_s >= until_s:
                break
            if of and now_s >= say_s:
                waiting(of, os.fstat(descriptor))
                say_s = float("inf")
            time.sleep(_ASK_EVERY_S)
        else:
            return True
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return False


def _try_lock(descriptor: int, *, shared: bool) -> bool:
    """Lock a descriptor; return False if another process holds it, OSError if it is impossible."""
    try:
        if _FOLDERS_HAVE_LOCKS:
            how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        else:
            # The type stubs exist on Windows only.
            windows: Any = importlib.import_module("msvcrt")
            os.lseek(descriptor, 0, os.SEEK_SET)
            # Use the non-blocking mode, because the blocking mode gives up after 10 s.
            windows.locking(descriptor, windows.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True
