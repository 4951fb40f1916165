"""Controllers written in Python: ``controller = "my_module:MyController"``.

A scenario names a class. Its module is looked for in the scenario's folder, then on `sys.path`; it
is read but not run when the scenario is. What a run's specification holds of it is a digest of its
source and of the modules beside it that it imports, so that a run of other code has another name.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from jostle.errors import JostleError

__all__ = [
    "DIGEST",
    "PythonControllerError",
    "Source",
    "create",
    "find",
    "is_python_controller",
    "remember",
]

DIGEST: Final = "source_sha256"
"""The parameter that holds the digest of the source."""


class PythonControllerError(JostleError):
    """A controller written in Python cannot be found, or is not what the scenario was read with."""


@dataclass(frozen=True)
class Source:
    """A module on disk.

    Attributes
    ----------
    root
        Folder that imports start from.
    files
        The module's file, then those beside it that it imports.
    names
        Names at the top level of the module.
    """

    root: Path
    files: tuple[Path, ...]
    names: tuple[str, ...]

    def digest(self) -> str:
        """Return the SHA-256 over names and contents of the files."""
        digest = hashlib.sha256()
        for file in self.files:
            content = file.read_bytes()
            name = file.relative_to(self.root).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


_sources: dict[str, Source] = {}
"""By digest, what `remember` was told of."""
_modules: dict[str, ModuleType] = {}
_lock = threading.Lock()


def is_python_controller(name: str) -> bool:
    """Whether a controller's name is that of a class: ``module:Class``."""
    return ":" in name


def remember(source: Source) -> str:
    """Let `create` know a source; returns its digest."""
    digest = source.digest()
    _sources[digest] = source
    return digest


def create(name: str, parameters: Mapping[str, Any], seed: int) -> object:
    """Make the controller of a run's specification.

    Parameters
    ----------
    name
        ``module:Class``.
    parameters
        Keyword arguments of the class, and the digest of its source.
    seed
        Passed on if the class takes a `seed`.

    Raises
    ------
    PythonControllerError
        When the source was not read in this process, or is no longer what it was.
    """
    arguments = dict(parameters)
    digest = arguments.pop(DIGEST, "")
    source = _sources.get(digest)
    if source is None:
        raise PythonControllerError(
            f"the source of `{name}` is not known here: load its scenario first"
        )
    with _lock:
        module = _modules.get(digest)
        if module is None:
            if source.digest() != digest:
                file = source.files[0]
                raise PythonControllerError(f"{file} has changed since the scenario was read")
            module = _modules[digest] = _load(source, digest)
    made = getattr(module, name.partition(":")[2])
    if "seed" in inspect.signature(made).parameters:
        arguments["seed"] = seed
    return made(**arguments)


def find(module: str, folder: Path) -> Source | None:
    """Find a module in a folder, or where Python finds modules; None if it is nowhere.

    Raises
    ------
    OSError, SyntaxError, ValueError
        When it, or a module beside it that it imports, is no Python that can be read.
    """
    for root in (folder, *map(Path, sys.path)):
        file = _file(root.resolve(), module)
        if file is not None:
            files = _files(file, root.resolve())
            return Source(root.resolve(), files, tuple(_top_level(_parse(file))))
    return None


def _file(root: Path, module: str) -> Path | None:
    relative = Path(*module.split("."))
    candidates = (root / f"{relative}.py", root / relative / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes(), str(file))


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


def _top_level(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (it.id for it in node.targets if isinstance(it, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _load(source: Source, digest: str) -> ModuleType:
    """Run a module, whose neighbours it imports as if it had been started in its folder.

    Neighbours do not stay in `sys.modules`: those of another folder may have the same names.
    """
    name = f"_jostle_controller_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, source.files[0])
    if spec is None or spec.loader is None:
        raise PythonControllerError(f"{source.files[0]} is no Python module")
    module = importlib.util.module_from_spec(spec)
    neighbours = {
        ".".join(file.relative_to(source.root).with_suffix("").parts).removesuffix(".__init__")
        for file in source.files[1:]
    }
    hidden = {key: sys.modules.pop(key) for key in neighbours if key in sys.modules}
    sys.path.insert(0, str(source.root))
    # Dataclasses look their module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(source.root))
        for key in neighbours:
            sys.modules.pop(key, None)
        sys.modules.update(hidden)
    return module
