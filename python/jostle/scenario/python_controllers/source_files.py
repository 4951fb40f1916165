"""Source files of Python controllers: ``controller = "my_module:MyController"``.

A scenario names a class. Its module must be in the scenario's folder, so that a text file cannot
call installed code. Loading a scenario reads the module without executing it, and only if the user
allows code. Every file is read once: the run specification contains a digest of the bytes, and the
same bytes are executed.
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

from jostle.kernel_images.controller_modules import PREFIX as KERNEL
from jostle.safe_io.untrusted_files import MODULE_BYTES, read_bytes

__all__ = [
    "CRATE", "DIGEST", "ControllerSource", "Module", "is_crate_controller", "is_python_controller",
    "locate", "read",
]  # fmt: skip

CRATE: Final = "crate:"
"""Beginning of the name of a controller that is in a crate, which `controller_crates` compiles."""
DIGEST: Final = "source_sha256"
"""Name of the parameter that contains the digest of the source."""


@dataclass(frozen=True)
class Module:
    """A module and its content.

    Attributes
    ----------
    path
        Path of the file relative to the import root, with `/` on every system.
    content
        All bytes of the file.
    """

    path: str
    content: bytes

    @property
    def is_package(self) -> bool:
        """Whether the module is a folder's `__init__.py`."""
        return self.path.endswith("/__init__.py")


@dataclass(frozen=True)
class ControllerSource:
    """A module, the modules of its folder that it imports, and their contents; picklable.

    Attributes
    ----------
    root
        Import root.
    name
        Name of the module.
    modules
        Modules by name: first the named module, then its imports.
    classes
        Classes at the top level of the module, including those imported from other modules in its
        folder.
    """

    root: Path
    name: str
    modules: Mapping[str, Module]
    classes: tuple[str, ...]

    def digest(self) -> str:
        """Return the SHA-256 of the names and contents of the files."""
        digest = hashlib.sha256()
        for module in self.modules.values():
            digest.update(f"{module.path}\0{len(module.content)}\0".encode())
            digest.update(module.content)
        return digest.hexdigest()

    def contains(self, word: str) -> bool:
        """Return whether any module contains a word."""
        return any(word.encode() in module.content for module in self.modules.values())

    def file(self, name: str) -> Path:
        """Return the path from which a module was read."""
        return self.root / self.modules[name].path


def is_python_controller(name: str) -> bool:
    """Return whether a controller name refers to a Python class: ``module:Class``.

    Names that begin with ``noq:`` refer to controllers of that QUIC implementation, ``kernel:`` to
    controllers inside a kernel, and ``crate:`` to controllers of a crate.
    """
    others = ("noq:", KERNEL, CRATE)
    return ":" in name and not name.startswith(others)


def is_crate_controller(name: str) -> bool:
    """Return whether a controller name refers to a crate."""
    return name.startswith(CRATE)


def locate(module: str, folder: Path) -> Path | None:
    """Return the file of a module in a folder, without reading it; None if it does not exist.

    Raises
    ------
    ValueError
        If the file is outside the folder (behind a link) or belongs to installed packages.
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


def read(name: str, file: Path, folder: Path) -> ControllerSource:
    """Read a module found by `locate`, and the modules in the same folder that it imports.

    Raises
    ------
    OSError, SyntaxError, ValueError
        If a file is not valid Python, cannot be read, or must not be read from this folder.
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
                # Modules that are built into the interpreter cannot be replaced.
                built_in = needed.partition(".")[0] in sys.builtin_module_names
                if needed in modules or needed in waiting or built_in:
                    continue
                there = locate(needed, root)
                if there is not None:
                    waiting[needed] = there
    main = modules.pop(name)
    ordered = {name: main, **dict(sorted(modules.items(), key=lambda item: item[1].path))}
    return ControllerSource(root, name, ordered, tuple(_classes(trees[name], modules)))


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
    """Yield a dotted name and the names of its parent packages, which Python imports too."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _imports(tree: ast.Module, name: str, *, is_package: bool) -> Iterator[str]:
    """Yield the absolute names of all modules that a module may import."""
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
    """Yield names that may be controller classes. Imported names are checked when used."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and (node.level or node.module in neighbours):
            yield from (alias.asname or alias.name for alias in node.names)
