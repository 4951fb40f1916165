"""Source of a controller's crate: ``controller = "crate:FOLDER"``.

The folder must be inside the scenario's, so that a text file cannot name code elsewhere. Its
files are read once: the run specification contains a digest of the bytes, and the same bytes are
compiled.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jostle.errors import InputError
from jostle.safe_io.untrusted_files import MODULE_BYTES, read_bytes

__all__ = ["MANIFEST", "NAME", "CompilerError", "CrateError", "CrateSource", "locate", "read"]

MANIFEST: Final = "Cargo.toml"
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MOST_FILES: Final = 500


class CrateError(InputError):
    """A crate cannot be read or compiled."""


class CompilerError(CrateError):
    """The compiler refuses a crate. The message has the compiler's lines."""


@dataclass(frozen=True)
class CrateSource:
    """A crate; picklable.

    Attributes
    ----------
    folder
        Folder from which it was read.
    package
        Name of the package.
    files
        Contents by path relative to the folder, with `/` on every system.
    """

    folder: Path
    package: str
    files: Mapping[str, bytes]

    def digest(self, *others: str) -> str:
        """Return the SHA-256 of the names and contents of the files, and of `others`."""
        digest = hashlib.sha256()
        for other in others:
            digest.update(f"{len(other)}\0{other}".encode())
        for path, content in self.files.items():
            digest.update(f"{path}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


def locate(name: str, folder: Path) -> Path:
    """Return the folder of a crate, without reading it.

    Parameters
    ----------
    name
        Path of the crate, relative to `folder`.

    Raises
    ------
    CrateError
        If it is outside of `folder`, or has no `Cargo.toml`.
    """
    root = folder.resolve()
    found = (root / name).resolve()
    if not found.is_relative_to(root):
        raise CrateError(f"{found} is outside of the scenario's folder")
    if not (found / MANIFEST).is_file():
        raise CrateError(f"{found} has no {MANIFEST}: `jostle new --crate {name}` makes a crate")
    return found


def read(folder: Path) -> CrateSource:
    """Read the manifest of a crate, its build script and everything in `src`.

    Raises
    ------
    CrateError
        If a file cannot be read.
    """
    files: dict[str, bytes] = {}
    for path in _paths(folder):
        if len(files) == _MOST_FILES:
            raise CrateError(f"{folder} has more than {_MOST_FILES} files")
        try:
            files[path.relative_to(folder).as_posix()] = read_bytes(path, MODULE_BYTES)
        except OSError as error:
            raise CrateError(f"{path}: {error.strerror}") from error
    try:
        package = tomllib.loads(files[MANIFEST].decode())["package"]["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise CrateError(f"{folder / MANIFEST} is no manifest of a package: {error}") from error
    if not isinstance(package, str) or not NAME.fullmatch(package):
        raise CrateError(f"{folder / MANIFEST}: {package!r} cannot be the name of a package")
    return CrateSource(folder, package, files)


def _paths(folder: Path) -> Iterator[Path]:
    yield folder / MANIFEST
    if (folder / "build.rs").is_file():
        yield folder / "build.rs"
    for place, folders, names in os.walk(folder / "src"):
        folders.sort()
        for name in (*folders, *sorted(names)):
            path = Path(place) / name
            if path.is_symlink():
                raise CrateError(f"{path} is a link: a crate consists of its own files")
            if name not in folders:
                yield path
