"""Folders that are written for a while, and what is left of those whose writer was killed.

A folder that is being written is locked by its writer (`locks.py`), and the lock ends with the
process, however that ends. So what is not locked is abandoned, regardless of clocks. Other users
cannot open the folder, and so cannot lock it; a group can if it shares the store.
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
from types import TracebackType
from typing import Final

from jostle.locks import LOCKS_ARE_SHARED, FolderLock
from jostle.open_folder import OpenFolder

__all__ = ["Partial", "TemporaryFolder", "remove_abandoned", "temporary_folder"]

_NAME: Final = re.compile(r"[0-9a-z]+-[0-9a-f]{32}")
"""What `Partial` calls its folders: nothing else is ever removed."""
_UNNAMED: Final = re.compile(rf"\.{_NAME.pattern}")
"""Names of new folders of `Partial` until they are locked."""
_CONTENT: Final = "content"
_ATTEMPTS: Final = 100
"""Times that a new folder is made before its parent counts as removed."""
_TEMPORARY: Final = re.compile(r"jostle-[a-z]+-[0-9a-f]{32}")
"""What `TemporaryFolder` calls them."""


class Partial:
    """A new private folder below `parent`, removed in the end with what is still in it.

    Parameters
    ----------
    parent
        Where it is made; open until the end.
    name
        What the folder's name begins with: lower-case letters and digits.

    Attributes
    ----------
    content
        A folder in it, whose access rights are the usual ones, to be filled.

    Raises
    ------
    OSError
        When it cannot be made.
    """

    def __init__(self, parent: OpenFolder, name: str) -> None:
        self._parent = parent
        self._name = f"{name}-{uuid.uuid4().hex}"
        self._lock: FolderLock | None = None

    def __enter__(self) -> Partial:
        # Under its name it is never seen unlocked. Before, another process may take it for one that
        # was left behind, and remove it.
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
            # Where folders cannot be locked (some network file systems), none is ever removed.
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
        """See `Partial`."""
        return self._folder.new_folder(_CONTENT)

    def publish(self, to: OpenFolder, name: str) -> None:
        """Move the content to its final place; OSError if another content is there.

        Writers who were asked for the same content may have been faster.
        """
        self._folder.move(_CONTENT, to, name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if "content" in self.__dict__:
            self.content.close()
        self._parent.remove_tree(self._name)
        self._close()

    def _close(self) -> None:
        self._folder.close()
        if self._lock is not None:
            self._lock.release()


def remove_abandoned(parent: OpenFolder) -> None:
    """Remove the folders below `parent` that `Partial` made in processes that were killed.

    Links are not followed, nor removed. If another process is cleaning up, or folders cannot be
    locked here, nothing is removed.

    Raises
    ------
    OSError
        When `parent` cannot be read.
    """
    # Writers of earlier versions lock it while their folder is new and not locked yet.
    lock = FolderLock.take(parent)
    if lock is None:
        return
    try:
        for name in parent.names():
            if _NAME.fullmatch(name) and _is_abandoned(parent, name):
                parent.remove_tree(name)
            elif _UNNAMED.fullmatch(name) and _is_abandoned(parent, name):
                # There is nothing in it. If it is renamed just now, it is not called so any more.
                with suppress(OSError):
                    parent.remove_empty(name)
    finally:
        lock.release()


def _is_abandoned(parent: OpenFolder, name: str) -> bool:
    try:
        with parent.folder(name) as folder:
            lock = FolderLock.take(folder)
    except OSError:  # A file, a link, another user's, or gone meanwhile.
        return False
    if lock is not None:
        lock.release()
    return lock is not None


class TemporaryFolder:
    """A folder for temporary files, ``jostle-PURPOSE-…``, that is there until it is removed.

    What killed processes of this user have left of its kind is removed when one is made. A folder
    may be handed over to another process; it has several owners then for a while.

    Parameters
    ----------
    purpose
        Lower-case letters.

    Raises
    ------
    OSError
        When it cannot be made.
    """

    def __init__(self, purpose: str) -> None:
        parent = Path(tempfile.gettempdir()).resolve()
        _sweep(parent, purpose)
        # Under its name it is never seen unlocked: the folder of temporary files is everybody's, so
        # that a lock on it as in `Partial` could be held by anybody.
        while True:
            made = Path(tempfile.mkdtemp(prefix=f".jostle-{purpose}-", dir=parent))
            # Before it is locked, another process may take it for one that was left behind.
            with suppress(FileNotFoundError, NotADirectoryError):
                self._own(made, parent / f"jostle-{purpose}-{uuid.uuid4().hex}")
                return

    @classmethod
    def taken_over(cls, path: Path) -> TemporaryFolder:
        """Return a folder that another process has handed over, under another name from here on."""
        folder = cls.__new__(cls)
        purpose, _, _ = path.name.rpartition("-")
        folder._own(path, path.with_name(f"{purpose}-{uuid.uuid4().hex}"))
        return folder

    def _own(self, made: Path, named: Path) -> None:
        """Lock a folder beside its other owners, and give it the name that it has here."""
        self._lock = FolderLock.take(made, shared=True, wait_s=None)
        try:
            self.path = made.rename(named) if self._lock is None else self._lock.rename(named)
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise

    def hand_over(self) -> Path:
        """Leave the folder to whoever takes it over; it stays locked here until that is done."""
        for path in [path for path in _handed_over if not path.exists()]:
            _handed_over.pop(path).release()
        if self._lock is not None:
            _handed_over[self.path] = self._lock
        return self.path

    def remove(self) -> None:
        """Remove it with all that is in it."""
        _remove_tree(self.path)
        if self._lock is not None:
            self._lock.release()


_handed_over: Final[dict[Path, FolderLock]] = {}
"""Folders on their way to other processes, and what holds their locks here."""


def _sweep(path: Path, purpose: str) -> None:
    """Remove what killed processes have left."""
    with OpenFolder.at(path) as parent:
        for folder in path.glob(f"jostle-{purpose}-*"):
            named = _TEMPORARY.fullmatch(folder.name)
            if named and _is_own(folder) and _is_abandoned(parent, folder.name):
                _remove_tree(folder)
        # Some never got their name. There is nothing in them yet, nor may there be: a folder that
        # is renamed just now is not what its name says any more.
        for folder in path.glob(f".jostle-{purpose}-*"):
            if _is_own(folder) and _is_abandoned(parent, folder.name):
                with suppress(OSError):
                    folder.rmdir()


def _remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that can be done.

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
                # The content of a folder moves up, so that no path becomes long.
                for inner in list(os.scandir(entry)):
                    os.rename(inner, folder / uuid.uuid4().hex)
                os.rmdir(entry)
        os.rmdir(folder)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Make a `TemporaryFolder`, and remove it in the end."""
    folder = TemporaryFolder(purpose)
    try:
        yield folder.path
    finally:
        folder.remove()


def _is_own(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):
        # On Windows every user has a folder of temporary files of their own.
        return True
    try:
        return folder.lstat().st_uid == os.geteuid()
    except OSError:
        return False
