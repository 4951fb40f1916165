"""Where controllers written in Python are: ``controller = "my_module:MyController"``.

A scenario names a class. Its module lies in the scenario's folder and nowhere else: a text file
must not be able to call what happens to be installed. The module is read but not run when the
scenario is, and only if whoever reads the scenario allows Python. What a run's specification holds
of it is a digest of its source and of the modules beside it that it imports, so that a run of other
code has another name.
"""

from __future__ import annotations

import ast
import hashlib
import site
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jostle.foreign_files import MODULE_BYTES, read_bytes

__all__ = ["DIGEST", "Source", "is_python_controller", "locate", "read"]

DIGEST: Final = "source_sha256"
"""The parameter that holds the digest of the source."""


@dataclass(frozen=True)
class Source:
    """A module on disk.

    Attributes
    ----------
    root
        Folder that imports start from.
    files
        The module's file, then those beside it that it imports.
    classes
        Classes at the top level of the module: its own, and those that it imports from the modules
        beside it.
    """

    root: Path
    files: tuple[Path, ...]
    classes: tuple[str, ...]

    def digest(self) -> str:
        """Return the SHA-256 over names and contents of the files."""
        digest = hashlib.sha256()
        for file in self.files:
            content = read_bytes(file, MODULE_BYTES)
            name = file.relative_to(self.root).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()

    def neighbours(self) -> frozenset[str]:
        """Names of the modules beside it."""
        return frozenset(
            ".".join(file.relative_to(self.root).with_suffix("").parts).removesuffix(".__init__")
            for file in self.files[1:]
        )


def is_python_controller(name: str) -> bool:
    """Whether a controller's name is that of a class: ``module:Class``.

    What begins with ``noq:`` is none: it is a part of that QUIC implementation.
    """
    return ":" in name and not name.startswith("noq:")


def locate(module: str, folder: Path) -> Path | None:
    """Find the file of a module in a folder; nothing is read. None if it is not there.

    Raises
    ------
    ValueError
        When the file lies outside the folder behind a link, or among installed packages.
    """
    root = folder.resolve()
    file = _file(root, module)
    if file is None:
        return None
    real = file.resolve()
    if not real.is_relative_to(root):
        raise ValueError(f"it is a link to {real}, outside of the scenario's folder")
    if any(real.is_relative_to(place) for place in _installed()):
        raise ValueError(f"{real} belongs to Python or to an installed package")
    return file


def read(file: Path, folder: Path) -> Source:
    """Read a module that `locate` has found, and those beside it that it imports.

    Raises
    ------
    OSError, SyntaxError, ValueError
        When one of them is no Python that can be read.
    """
    root = folder.resolve()
    files = _files(file, root)
    source = Source(root, files, ())
    return replace(source, classes=tuple(_classes(_parse(file), source.neighbours())))


def _installed() -> Iterator[Path]:
    """Yield the folders of the standard library and of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    for place in (*map(sysconfig.get_path, names), site.getusersitepackages()):
        if place:
            yield Path(place).resolve()


def _file(root: Path, module: str) -> Path | None:
    relative = Path(*module.split("."))
    candidates = (root / f"{relative}.py", root / relative / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _parse(file: Path) -> ast.Module:
    return ast.parse(read_bytes(file, MODULE_BYTES), str(file))


def _files(file: Path, root: Path) -> tuple[Path, ...]:
    """Return a file and those below its root folder that it imports, directly or not."""
    found = [file]
    for one in found:
        for name in _imports(_parse(one)):
            neighbour = _file(root, name)
            if neighbour is not None and neighbour not in found:
                found.append(neighbour)
    return (file, *sorted(found[1:]))


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield the names of all modules that a module may import, relative ones as absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            prefix = f"{node.module}." if node.module else ""
            yield from (prefix + alias.name for alias in node.names if alias.name != "*")


def _classes(tree: ast.Module, neighbours: Collection[str]) -> Iterator[str]:
    """Yield what may be a controller; whether an imported name is a class shows when it is made."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and (node.level or node.module in neighbours):
            yield from (alias.asname or alias.name for alias in node.names)
