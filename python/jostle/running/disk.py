"""What both kinds of stored runs, folders and segments, do with the disk."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
from importlib import metadata
from pathlib import Path

from jostle.errors import StoreError, StoreFullError
from jostle.foreign_files import open_regular

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


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file that outlives a power cut."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """See that the names in a folder outlive a power cut."""
    if not hasattr(os, "O_DIRECTORY"):
        # On Windows folders are no files, and NTFS keeps a journal of names by itself.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_error(path: Path, error: OSError) -> StoreError:
    """Say why a store cannot be used."""
    if error.errno in _NO_ROOM:
        return StoreFullError(
            f"no room in the store {path} ({error.strerror}): free some space and run the same "
            "command again; every finished run is kept"
        )
    return StoreError(f"cannot use the store {path}: {error.strerror or error}")
