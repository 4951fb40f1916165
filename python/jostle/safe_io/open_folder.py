"""Open folders, in which files are written without following symbolic links.

Another user of a store could replace one of its folders by a link to a folder outside. Each folder
is therefore opened once, one path component at a time, and names are resolved relative to its
descriptor. If the folder is renamed or replaced in the meantime, nothing is written elsewhere.

Windows has no such descriptors. There, each folder is checked before a name in it is used, which
does not detect a link that is created at the same instant.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

__all__ = ["OpenFolder"]

_HAS_DESCRIPTORS: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FLAGS: Final = sum(
    getattr(os, flag, 0) for flag in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK")
)
_REPARSE_LINKS: Final = {0xA0000003, 0xA000000C}
"""Tags of junctions and symbolic links (IO_REPARSE_TAG_MOUNT_POINT, IO_REPARSE_TAG_SYMLINK)."""


class OpenFolder:
    """An open folder. Methods take the name of an entry of the folder, not a path.

    Attributes
    ----------
    path
        Path with which it was opened, for readers and messages.
    """

    def __init__(self, path: Path, descriptor: int | None, parent: OpenFolder | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._parent = parent

    @classmethod
    def at(cls, path: str | os.PathLike[str], *, make: bool = False) -> OpenFolder:
        """Open a folder given by the user; the path may be a symbolic link.

        Raises
        ------
        OSError
            If it cannot be opened or, with `make`, created.
        """
        path = Path(path)
        if make:
            path.mkdir(parents=True, exist_ok=True)
        if not _HAS_DESCRIPTORS:
            return cls(path, None, None)
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), None)

    @classmethod
    def below(
        cls, root: str | os.PathLike[str], *names: str, make: bool = False, mode: int = 0o777
    ) -> OpenFolder:
        """Open a folder below another one, one path component at a time; see `at`, `folder`."""
        folder = cls.at(root, make=make)
        for name in names:
            with folder:
                folder = folder.folder(name, make=make, mode=mode)
        return folder

    def folder(self, name: str, *, make: bool = False, mode: int = 0o777) -> OpenFolder:
        """Open a subfolder; with `make`, create it if it is missing.

        Raises
        ------
        OSError
            If it cannot be opened, or is a symbolic link (ELOOP).
        """
        if make:
            with suppress(FileExistsError):
                return self.new_folder(name, mode)
        place, where = self._resolve(name)
        try:
            if not _HAS_DESCRIPTORS:
                _refuse_link(self.path / name)
                if not stat.S_ISDIR(self.lstat(name).st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                return OpenFolder(self.path / name, None, self)
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, **where)
        except OSError as error:
            is_link = error.errno == errno.ENOTDIR and stat.S_ISLNK(self.lstat(name).st_mode)
            # The error of the system contains the name only, so raise one with the path.
            number = errno.ELOOP if is_link else error.errno or errno.EIO
            raise OSError(number, os.strerror(number), str(self.path / name)) from None
        return OpenFolder(self.path / name, descriptor, self)

    def new_folder(self, name: str, mode: int = 0o777) -> OpenFolder:
        """Create a subfolder, which must not exist.

        It is writable by users who may write to this folder, including the group of a shared
        folder. The umask does not affect either.
        """
        place, where = self._resolve(name)
        if self._descriptor is not None:
            writers = stat.S_IWGRP | stat.S_IWOTH
            mode &= ~writers | os.fstat(self._descriptor).st_mode
        os.mkdir(place, mode, **where)
        folder = self.folder(name)
        if self.is_shared and folder._descriptor is not None:
            mode = stat.S_IMODE(os.fstat(folder._descriptor).st_mode)
            os.fchmod(folder._descriptor, mode | stat.S_IRWXG)
        return folder

    @property
    def is_shared(self) -> bool:
        """Whether a group can write to the folder, and new files belong to that group.

        The latter holds with the setgid bit (on Linux), or for the process's primary group.
        """
        if self._descriptor is None:
            return False
        status = os.fstat(self._descriptor)
        of_group = status.st_mode & stat.S_ISGID or status.st_gid == os.getegid()
        return bool(status.st_mode & stat.S_IWGRP and of_group)

    def names(self) -> list[str]:
        """Return the names of its entries, in any order."""
        return os.listdir(self.path if self._descriptor is None else self._descriptor)

    def lstat(self, name: str) -> os.stat_result:
        """Return the status of an entry, without following links."""
        place, where = self._resolve(name)
        return os.stat(place, follow_symlinks=False, **where)

    def has(self, name: str) -> bool:
        """Return whether an entry exists."""
        try:
            self.lstat(name)
        except FileNotFoundError:
            return False
        return True

    def is_own_file(self, name: str) -> bool:
        """Return whether an entry is a regular file without other hard links."""
        try:
            return _is_own_file(self.lstat(name))
        except FileNotFoundError:
            return False

    def create(self, name: str, mode: int = 0o666) -> BinaryIO:
        """Create a file, which must not exist, and open it for writing."""
        place, where = self._resolve(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
        return os.fdopen(os.open(place, flags, mode, **where), "wb")

    def write_new(
        self, name: str, content: bytes, *, mode: int = 0o666, synced: bool = False
    ) -> None:
        """Write a file, which must not exist; with `synced`, flush it to disk."""
        with self.create(name, mode) as file:
            file.write(content)
            if synced:
                file.flush()
                os.fsync(file.fileno())

    @contextmanager
    def replacing(self, name: str, mode: int = 0o666) -> Iterator[BinaryIO]:
        """Write a file that replaces the entry at the end, unless an exception is raised.

        A link or a pipe is replaced, not followed or written to. The replacement is atomic.
        """
        partial = f"{name}.{uuid.uuid4().hex}"
        try:
            with self.create(partial, mode) as file:
                yield file
            source, _ = self._resolve(partial)
            target, _ = self._resolve(name)
            # `dir_fd` is None on Windows, which is the default.
            os.replace(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            self.remove(partial)
            raise

    def replace(self, name: str, content: bytes, mode: int = 0o666) -> None:
        """Write a file that replaces the entry; see `replacing`."""
        with self.replacing(name, mode) as file:
            file.write(content)

    def open_own_file(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Open a regular file without other hard links, and return its descriptor.

        Raises
        ------
        OSError
            If it cannot be opened, or is a link, a pipe or a hard link.
        """
        place, where = self._resolve(name)
        if not _HAS_DESCRIPTORS and self.has(name):
            _refuse_link(self.path / name)
        descriptor = os.open(place, flags | _FLAGS, mode, **where)
        if not _is_own_file(os.fstat(descriptor)):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "Not a regular file with one link", str(self.path / name))
        return descriptor

    def refresh(self, name: str) -> None:
        """Set the times of a file to the current time."""
        place, where = self._resolve(name)
        if os.utime in os.supports_follow_symlinks:
            os.utime(place, follow_symlinks=False, **where)
        else:
            _refuse_link(self.path / name)
            os.utime(self.path / name)

    def move(self, name: str, to: OpenFolder, new_name: str) -> None:
        """Move an entry to another open folder; a folder with content is not replaced."""
        source, _ = self._resolve(name)
        target, _ = to._resolve(new_name)
        if self._descriptor is None or to._descriptor is None:
            # `Path.rename` calls `os.rename`, which on Windows replaces nothing.
            Path(source).rename(target)
        else:
            os.rename(source, target, src_dir_fd=self._descriptor, dst_dir_fd=to._descriptor)

    def take_in(self, path: Path, name: str) -> None:
        """Move a file from another path into this folder."""
        target, _ = self._resolve(name)
        try:
            os.rename(path, target, dst_dir_fd=self._descriptor)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            with path.open("rb") as source, self.create(name) as file:
                shutil.copyfileobj(source, file)
            path.unlink()

    def remove(self, name: str) -> None:
        """Remove a file or a link, if it exists."""
        place, where = self._resolve(name)
        with suppress(FileNotFoundError):
            os.unlink(place, **where)

    def remove_empty(self, name: str) -> None:
        """Remove an empty folder."""
        place, where = self._resolve(name)
        os.rmdir(place, **where)

    def remove_tree(self, name: str) -> None:
        """Remove a subfolder with its content, as far as possible, without following links."""
        place, where = self._resolve(name)
        with suppress(OSError):
            # Opening a pipe would block.
            if not stat.S_ISDIR(self.lstat(name).st_mode):
                return
        # A folder from a stranger can nest deeper than the recursion limit.
        with suppress(RecursionError):
            shutil.rmtree(place, ignore_errors=True, **where)

    def clear(self) -> None:
        """Remove all entries, as far as possible, without following links."""
        for name in self.names():
            try:
                self.remove(name)
            except OSError:
                self.remove_tree(name)

    def sync(self) -> None:
        """Flush the names of its entries to disk."""
        # On Windows folders cannot be flushed, but NTFS journals names.
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def open_again(self) -> int:
        """Return a new descriptor of the same folder, even if it was renamed."""
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._descriptor)

    def close(self) -> None:
        """Close the folder."""
        if self._descriptor is not None and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _resolve(self, name: str) -> tuple[str | Path, dict[str, Any]]:
        """Return the name or path of an entry and the `dir_fd` for functions of `os`."""
        if name in {"", ".", ".."} or any(sign in name for sign in ("/", os.sep, "\0")):
            raise OSError(errno.EINVAL, "Not the name of a file", name)
        if self._descriptor is not None:
            return name, {"dir_fd": self._descriptor}
        folder: OpenFolder | None = self
        while folder is not None and folder._parent is not None:
            _refuse_link(folder.path)
            folder = folder._parent
        return self.path / name, {}


def _is_own_file(status: os.stat_result) -> bool:
    # A file that was removed in the meantime has no hard link.
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1


def _refuse_link(path: Path) -> None:
    status = path.lstat()
    tag = getattr(status, "st_reparse_tag", 0)
    if stat.S_ISLNK(status.st_mode) or tag in _REPARSE_LINKS:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
