"""Disk operations that run folders and segments have in common."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from jostle.errors import StoreError, StoreFullError
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import PartialFolder
from jostle.safe_io.untrusted_files import open_regular

PARTIAL = ".partial"
"""Folder of a store for files that are being written."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Errors of `open_regular` and `read_bytes` for a pipe, a device, or a file of invalid size.
NOT_OURS = {errno.EINVAL, errno.EFBIG, errno.ELOOP, errno.ENXIO}


class DamagedError(Exception):
    """A stored file is not what was written."""


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that write."""
    # The lookup reads files, and a sweep needs the versions for every run.
    return {name: metadata.version(name) for name in ("jostle", "polars")}


def json_bytes(value: object) -> bytes:
    """Return JSON in the format of stored files: indented, with sorted keys."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def partial_folder(root: OpenFolder, name: str) -> Iterator[PartialFolder]:
    """Create a folder for files that are being written into a store, or removed from it."""
    with root.folder(PARTIAL, make=True) as parent, PartialFolder(parent, name) as partial:
        yield partial


def discard(root: OpenFolder, name: str, *, of: OpenFolder | None = None) -> None:
    """Remove a folder of a store, or of a folder `of` it, atomically for readers."""
    with partial_folder(root, "gone") as gone:
        (of or root).move(name, gone.content, name)


def store_error(path: Path, error: OSError) -> StoreError:
    """Return an error that explains why a store cannot be used."""
    if error.errno in _NO_ROOM:
        return StoreFullError(
            f"no room in the store {path} ({error.strerror}): free some space and run the same "
            "command again; every finished run is kept"
        )
    if error.errno == errno.ELOOP and error.filename:
        return StoreError(f"{error.filename} is a symbolic link: a store has none")
    return StoreError(f"cannot use the store {path}: {error.strerror or error}")
