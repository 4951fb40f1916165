"""What both kinds of stored runs, folders and segments, do with the disk."""

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
from jostle.foreign_files import open_regular
from jostle.locked_folders import Partial
from jostle.open_folder import OpenFolder

PARTIAL = ".partial"
"""Folder of a store for what is being written."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# What `open_regular` and `read_bytes` refuse: a pipe, a device, more than a store ever writes.
NOT_OURS = {errno.EINVAL, errno.EFBIG, errno.ELOOP, errno.ENXIO}


class DamagedError(Exception):
    """What lies in a store is not what was written there."""


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the packages that write."""
    # Looking them up reads files; a sweep asks for every run.
    return {name: metadata.version(name) for name in ("jostle", "polars")}


def json_bytes(value: object) -> bytes:
    """JSON as files have it: indented, keys in order."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def digest_of(path: Path) -> str:
    """SHA-256 of a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def partial_folder(root: OpenFolder, name: str) -> Iterator[Partial]:
    """Make a folder for what is being written into a store, or removed from it."""
    with root.folder(PARTIAL, make=True) as parent, Partial(parent, name) as partial:
        yield partial


def discard(root: OpenFolder, name: str, *, of: OpenFolder | None = None) -> None:
    """Remove a folder of a store, or of a folder `of` it, so that no reader sees half of it."""
    with partial_folder(root, "gone") as gone:
        (of or root).move(name, gone.content, name)


def store_error(path: Path, error: OSError) -> StoreError:
    """Say why a store cannot be used."""
    if error.errno in _NO_ROOM:
        return StoreFullError(
            f"no room in the store {path} ({error.strerror}): free some space and run the same "
            "command again; every finished run is kept"
        )
    if error.errno == errno.ELOOP and error.filename:
        return StoreError(f"{error.filename} is a symbolic link: a store has none")
    return StoreError(f"cannot use the store {path}: {error.strerror or error}")
