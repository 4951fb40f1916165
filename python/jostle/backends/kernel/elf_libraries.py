"""Shared libraries of a program, read from its ELF file.

The program may be untrusted. `ldd` and `ld.so --list` would execute the loader or auditors named in
the file outside of the guest, so the file is only parsed.
"""

from __future__ import annotations

import functools
import mmap
import os
import re
import struct
import subprocess
from collections.abc import Iterator, Mapping

__all__ = ["libraries_of"]

# elf(5), 64-bit little-endian, like all supported machines.
_IDENTITY = b"\x7fELF\x02\x01"
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS, _RPATH, _RUNPATH = 1, 5, 15, 29
_MOST_ENTRIES = 4096
"""Maximum number of table entries; programs have some dozens."""
_MOST_LIBRARIES = 1024
_LONGEST_PATH = 4096
_DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_LDCONFIG = ("/sbin/ldconfig", "-p")
_LIST_S = 10.0


def libraries_of(program: str) -> tuple[str, ...]:
    """Return the paths of a program's direct and indirect libraries, and of its loader.

    Empty for scripts, static programs and files that are not ELF.
    """
    try:
        changed_ns = os.stat(program).st_mtime_ns
    except OSError:
        return ()
    return _libraries_of(program, changed_ns)


@functools.cache
def _libraries_of(program: str, _changed_ns: int) -> tuple[str, ...]:
    """Resolve the libraries recursively; cached, because runs of a sweep share programs."""
    found: dict[str, None] = {}
    waiting = [program]
    while waiting and len(found) < _MOST_LIBRARIES:
        for path in _directly(waiting.pop()):
            if path not in found:
                found[path] = None
                waiting.append(path)
    return tuple(sorted(found))


def _directly(path: str) -> Iterator[str]:
    """Yield the libraries that a file names and that exist."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as elf:
            names, folders, loader = _read(elf)
    except (OSError, ValueError, OverflowError, struct.error):
        return
    if loader is not None and os.path.isfile(loader):
        yield loader
    own = os.path.dirname(os.path.realpath(path))
    searched = [folder.replace("${ORIGIN}", own).replace("$ORIGIN", own) for folder in folders]
    for name in names:
        located = _located(name, searched)
        if located is not None:
            yield located


def _read(elf: mmap.mmap) -> tuple[list[str], list[str], str | None]:
    """Return the names of the libraries, the folders to search first, and the loader."""
    if elf[: len(_IDENTITY)] != _IDENTITY:
        raise ValueError("it is no ELF file")
    (table,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    segments = []
    for number in range(min(count, _MOST_ENTRIES)):
        kind, _, offset, address, _, length = struct.unpack_from(
            "<IIQQQQ", elf, table + number * size
        )
        segments.append((kind, offset, address, length))
    loader = next((_text(elf, at) for kind, at, _, _ in segments if kind == _INTERPRETER), None)
    at = next((offset for kind, offset, _, _ in segments if kind == _DYNAMIC), None)
    if at is None:
        return [], [], loader
    entries = []
    for number in range(_MOST_ENTRIES):
        tag, value = struct.unpack_from("<qQ", elf, at + 16 * number)
        if tag == 0:
            break
        entries.append((tag, value))
    address = next((value for tag, value in entries if tag == _STRINGS), -1)
    places = (
        offset + address - start
        for kind, offset, start, length in segments
        if kind == _LOAD and start <= address < start + length
    )
    strings = next(places, None)
    if strings is None:
        raise ValueError("its names are nowhere")
    names = [_text(elf, strings + value) for tag, value in entries if tag == _NEEDED]
    paths = [_text(elf, strings + value) for tag, value in entries if tag in (_RPATH, _RUNPATH)]
    return names, [folder for path in paths for folder in path.split(":") if folder], loader


def _text(elf: mmap.mmap, at: int) -> str:
    end = elf.find(b"\0", at, at + _LONGEST_PATH)
    if end < 0:
        raise ValueError("a name does not end")
    return os.fsdecode(elf[at:end])


def _located(name: str, folders: list[str]) -> str | None:
    if "/" in name:
        return name if os.path.isfile(name) else None
    paths = [os.path.join(folder, name) for folder in folders]
    if name in _cache():
        paths.append(_cache()[name])
    paths += [os.path.join(folder, name) for folder in _DEFAULT_FOLDERS]
    return next((path for path in paths if os.path.isfile(path)), None)


@functools.cache
def _cache() -> Mapping[str, str]:
    """Return the paths of the system's libraries. The first entry of a name takes precedence."""
    try:
        done = subprocess.run(
            _LDCONFIG, check=False, capture_output=True, text=True, timeout=_LIST_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = re.findall(r"^\s+(\S+) \(([^)]*)\) => (\S+)$", done.stdout, re.MULTILINE)
    return {name: path for name, kind, path in reversed(lines) if "64" in kind}
