"""Scratch folders, and removal of those whose writer was killed.

The writer of a folder holds a lock on it (`folder_lock.py`), which ends with the process. Unlocked
folders are therefore abandoned, regardless of clocks. Other users cannot open the folder, so they
cannot lock it; a group can if it shares the store.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from jostle.safe_io.folder_lock import LOCKS_ARE_SHARED, FolderLock
from jostle.safe_io.open_folder import OpenFolder

__all__ = ["PartialFolder", "TemporaryFolder", "remove_abandoned", "temporary_folder"]

_NAME: Final = re.compile(r"[0-9a-z]+-[0-9a-f]{32}")
"""Names of the folders of `PartialFolder`; no others are removed."""
_UNNAMED: Final = re.compile(rf"\.{_NAME.pattern}")
"""Names of new folders of `PartialFolder` until they are locked."""
_CONTENT: Final = "content"
_ATTEMPTS: Final = 100
"""Number of attempts to create a folder before its parent counts as removed."""
_TEMPORARY: Final = re.compile(r"jostle-[a-z]+-[0-9a-f]{32}")
"""Names of the folders of `TemporaryFolder`."""


class PartialFolder:
    """A new private folder below `parent`, which is removed with its remaining content at the end.

    Parameters
    ----------
    parent
        Parent folder, which must stay open.
    name
        Beginning of the folder's name: lower-case letters and digits.

    Attributes
    ----------
    content
        Subfolder with default permissions, for the content.

    Raises
    ------
    OSError
        If the folder cannot be created.
    """

    def __init__(self, parent: OpenFolder, name: str) -> None:
        self._parent = parent
        self._name = f"{name}-{uuid.uuid4().hex}"
        self._lock: FolderLock | None = None

    def __enter__(self) -> PartialFolder:
        # The final name is set after the lock. Before that, another process may consider the folder
        # abandoned, and remove it.
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                self._make(f".{self._name}")
                return self
        raise FileNotFoundError(
            errno.ENOENT, os.strerror(errno.ENOENT), str(self._parent.path / self._name)
        )

    def _make(self, unnamed: str) -> None:
        self._folder, self._lock = self._parent.new_folder(unnamed, 0o700), None
        try:
            # If folders cannot be locked (some network file systems), none is ever removed.
            self._lock = FolderLock.take(self._folder, wait_s=None)
            if self._lock is None or LOCKS_ARE_SHARED:
                self._parent.move(unnamed, self._parent, self._name)
            else:
                self._lock.rename(self._parent.path / self._name)
        except BaseException:
            self._close()
            raise
        self._folder.path = self._parent.path / self._name

    @cached_property
    def content(self) -> OpenFolder:
        """Subfolder for the content; see the class."""
        return self._folder.new_folder(_CONTENT)

    def publish(self, to: OpenFolder, name: str) -> None:
        """Move the content to its final place; raise OSError if other content is there.

        Another writer of the same content may have been faster.
        """
        self._folder.move(_CONTENT, to, name)

    def __exit__(self, *_error: object) -> None:
        if "content" in self.__dict__:
            self.content.close()
        self._parent.remove_tree(self._name)
        self._close()

    def _close(self) -> None:
        self._folder.close()
        if self._lock is not None:
            self._lock.release()


def remove_abandoned(parent: OpenFolder) -> None:
    """Remove the folders of `PartialFolder` below `parent` whose process was killed.

    Links are neither followed nor removed. If another process cleans up, or folders cannot be
    locked here, nothing is removed.

    Raises
    ------
    OSError
        If `parent` cannot be read.
    """
    # Earlier versions hold this lock until their new folder is locked.
    lock = FolderLock.take(parent)
    if lock is None:
        return
    try:
        for name in parent.names():
            if _NAME.fullmatch(name) and _is_abandoned(parent, name):
                parent.remove_tree(name)
            elif _UNNAMED.fullmatch(name) and _is_abandoned(parent, name):
                # The folder is empty. If it was renamed in the meantime, its old name is gone.
                with suppress(OSError):
                    parent.remove_empty(name)
    finally:
        lock.release()


def _is_abandoned(parent: OpenFolder, name: str) -> bool:
    try:
        with parent.folder(name) as folder:
            lock = FolderLock.take(folder)
    except OSError:  # a file, a link, another user's, or removed
        return False
    if lock is not None:
        lock.release()
    return lock is not None


class TemporaryFolder:
    """A folder for temporary files, ``jostle-PURPOSE-…``, that exists until it is removed.

    Its creation removes folders of the same kind left by killed processes of this user. A folder
    can be handed over to another process and then has several owners for a while.

    Parameters
    ----------
    purpose
        Lower-case letters.

    Raises
    ------
    OSError
        If the folder cannot be created.
    """

    def __init__(self, purpose: str) -> None:
        parent = Path(tempfile.gettempdir()).resolve()
        _sweep(parent, purpose)
        # The final name is set after the lock. All users share the folder of temporary files, so
        # its lock, as in `PartialFolder`, could be held by any of them.
        while True:
            made = Path(tempfile.mkdtemp(prefix=f".jostle-{purpose}-", dir=parent))
            # Before it is locked, another process may consider it abandoned and remove it.
            with suppress(FileNotFoundError, NotADirectoryError):
                self._own(made, parent / f"jostle-{purpose}-{uuid.uuid4().hex}")
                return

    @classmethod
    def adopt(cls, path: Path) -> TemporaryFolder:
        """Return a folder that another process has handed over, under a new name."""
        folder = cls.__new__(cls)
        purpose, _, _ = path.name.rpartition("-")
        folder._own(path, path.with_name(f"{purpose}-{uuid.uuid4().hex}"))
        return folder

    def _own(self, made: Path, named: Path) -> None:
        """Lock a folder in shared mode, and rename it."""
        self._lock = FolderLock.take(made, shared=True, wait_s=None)
        try:
            self.path = made.rename(named) if self._lock is None else self._lock.rename(named)
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise

    def hand_over(self) -> Path:
        """Hand the folder over to another process; it stays locked here until that renames it."""
        for path in [path for path in _handed_over if not path.exists()]:
            _handed_over.pop(path).release()
        if self._lock is not None:
            _handed_over[self.path] = self._lock
        return self.path

    def remove(self) -> None:
        """Remove the folder with its content."""
        _remove_tree(self.path)
        if self._lock is not None:
            self._lock.release()


_handed_over: Final[dict[Path, FolderLock]] = {}
"""Folders that are being handed over, with the locks that this process holds on them."""


def _sweep(path: Path, purpose: str) -> None:
    """Remove folders left by killed processes."""
    with OpenFolder.at(path) as parent:
        for folder in path.glob(f"jostle-{purpose}-*"):
            named = _TEMPORARY.fullmatch(folder.name)
            if named and _is_own(folder) and _is_abandoned(parent, folder.name):
                _remove_tree(folder)
        # Remove folders that never got their final name. They are empty. A folder that is renamed
        # at this moment no longer has this name.
        for folder in path.glob(f".jostle-{purpose}-*"):
            if _is_own(folder) and _is_abandoned(parent, folder.name):
                with suppress(OSError):
                    folder.rmdir()


def _remove_tree(folder: Path) -> None:
    """Remove a folder with its content, as far as possible.

    A program can leave folders that nest deeper than the interpreter can recurse, and folders that
    are not writable.
    """
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        while entries := list(os.scandir(folder)):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry)
                    continue
                os.chmod(entry, 0o700)
                # Move the content of a subfolder up, so that paths stay short.
                for inner in list(os.scandir(entry)):
                    os.rename(inner, folder / uuid.uuid4().hex)
                os.rmdir(entry)
        os.rmdir(folder)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Create a `TemporaryFolder`, and remove it at the end of the context."""
    folder = TemporaryFolder(purpose)
    try:
        yield folder.path
    finally:
        folder.remove()


def _is_own(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):
        # On Windows every user has a separate folder of temporary files.
        return True
    try:
        return folder.lstat().st_uid == os.geteuid()
    except OSError:
        return False
