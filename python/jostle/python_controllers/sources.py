"""Where controllers written in Python are: ``controller = "my_module:MyController"``.

A scenario names a class. Its module lies in the scenario's folder and nowhere else: a text file
must not be able to call what happens to be installed. The module is read but not run when the
scenario is, and only if the user allows code. Every file is read once: a run's specification
contains a digest of these bytes, and these bytes run.
"""

from __future__ import annotations

import ast
import hashlib
import site
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jostle.foreign_files import MODULE_BYTES, read_bytes

__all__ = ["DIGEST", "Module", "Source", "is_python_controller", "locate", "read"]

DIGEST: Final = "source_sha256"
"""The parameter that holds the digest of the source."""


@dataclass(frozen=True)
class Module:
    """A module and its content.

    Attributes
    ----------
    path
        Its file, relative to the folder that imports start from; with `/` on every system.
    content
        All bytes of the file.
    """

    path: str
    content: bytes

    @property
    def is_package(self) -> bool:
        """Whether it is a folder's `__init__.py`."""
        return self.path.endswith("/__init__.py")


@dataclass(frozen=True)
class Source:
    """A module and the modules of its folder that it imports, with their contents; it pickles.

    Attributes
    ----------
    root
        Folder that imports start from.
    name
        Name of the module.
    modules
        The modules by name: first the named module, then its imports.
    classes
        Classes at the top level of the module: its own, and those that it imports from the modules
        beside it.
    """

    root: Path
    name: str
    modules: Mapping[str, Module]
    classes: tuple[str, ...]

    def digest(self) -> str:
        """Return the SHA-256 over names and contents of the files."""
        digest = hashlib.sha256()
        for module in self.modules.values():
            digest.update(f"{module.path}\0{len(module.content)}\0".encode())
            digest.update(module.content)
        return digest.hexdigest()

    def file(self, name: str) -> Path:
        """Return the path that a module was read from."""
        return self.root / self.modules[name].path


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
    relative = Path(*module.split("."))
    candidates = (root / f"{relative}.py", root / relative / "__init__.py")
    file = next((file for file in candidates if file.is_file()), None)
    if file is None:
        return None
    real = file.resolve()
    if not real.is_relative_to(root):
        raise ValueError(f"{file.name} is a link to {real}, outside of the scenario's folder")
    if any(real.is_relative_to(place) for place in _installed()):
        raise ValueError(f"{real} belongs to Python or to an installed package")
    return file


def read(name: str, file: Path, folder: Path) -> Source:
    """Read a module that `locate` has found, and those beside it that it imports.

    Raises
    ------
    OSError, SyntaxError, ValueError
        When one of them is no Python that can be read, or may not be read from this folder.
    """
    root = folder.resolve()
    modules: dict[str, Module] = {}
    trees: dict[str, ast.Module] = {}
    waiting = {name: file}
    while waiting:
        found, path = waiting.popitem()
        content = read_bytes(path, MODULE_BYTES)
        module = modules[found] = Module(path.relative_to(root).as_posix(), content)
        tree = trees[found] = _parse(content, path)
        for imported in {found, *_imports(tree, found, is_package=module.is_package)}:
            for needed in _with_packages(imported):
                # As in any Python, nothing can replace what is part of the interpreter.
                built_in = needed.partition(".")[0] in sys.builtin_module_names
                if needed in modules or needed in waiting or built_in:
                    continue
                there = locate(needed, root)
                if there is not None:
                    waiting[needed] = there
    main = modules.pop(name)
    ordered = {name: main, **dict(sorted(modules.items(), key=lambda item: item[1].path))}
    return Source(root, name, ordered, tuple(_classes(trees[name], modules)))


def _installed() -> Iterator[Path]:
    """Yield the folders of the standard library and of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    for place in (*map(sysconfig.get_path, names), site.getusersitepackages()):
        if place:
            yield Path(place).resolve()


def _parse(content: bytes, file: Path) -> ast.Module:
    try:
        return ast.parse(content, str(file))
    except (RecursionError, MemoryError):
        raise ValueError(f"{file} is nested too deeply") from None


def _with_packages(name: str) -> Iterator[str]:
    """Yield a dotted name and the names of its packages: Python imports these, too."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _imports(tree: ast.Module, name: str, *, is_package: bool) -> Iterator[str]:
    """Yield the names of all modules that a module may import, relative ones as absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".") if node.level else []
            kept = len(parts) + is_package - node.level
            base = ".".join([*parts[: max(kept, 0)], *filter(None, [node.module])])
            yield base
            prefix = f"{base}." if base else ""
            yield from (prefix + alias.name for alias in node.names if alias.name != "*")


def _classes(tree: ast.Module, neighbours: Collection[str]) -> Iterator[str]:
    """Yield what may be a controller; whether an imported name is a class shows when it is made."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and (node.level or node.module in neighbours):
            yield from (alias.asname or alias.name for alias in node.names)
