"""Import of controllers from the source bytes that were digested.

The modules of a source belong to a separate package, named after the digest. Python therefore
searches neither the folder nor its byte code, and modules of two folders can have the same name. A
module with the name of an installed module replaces it only for code of its folder.
"""

from __future__ import annotations

import builtins
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from io import StringIO
from types import ModuleType
from typing import Any, Final

from jostle.safe_io.code_consent import admitted
from jostle.scenario.python_controllers.source_files import ControllerSource

__all__ = ["package_of"]

_PREFIX: Final = "_jostle_controller_"


def package_of(digest: str) -> str:
    """Return the name of the package from which a source's modules are imported."""
    return _PREFIX + digest


class _Finder(MetaPathFinder):
    """Finds the modules of sources that this process has admitted."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module; None if it does not belong to a source."""
        del path, target
        package, _, name = fullname.partition(".")
        source = admitted(package.removeprefix(_PREFIX)) if package.startswith(_PREFIX) else None
        if not isinstance(source, ControllerSource):
            return None
        if name not in source.modules:
            # The package itself, or a folder without `__init__.py`.
            is_around = any(each.startswith(f"{name}." if name else "") for each in source.modules)
            return ModuleSpec(fullname, None, is_package=True) if is_around else None
        spec = ModuleSpec(
            fullname,
            _Loader(source, package, name),
            origin=str(source.file(name)),
            is_package=source.modules[name].is_package,
        )
        # With `has_location`, Python sets the module's `__file__` to the origin.
        spec.has_location = True
        return spec


class _Loader(Loader):
    """Executes a module of a source."""

    def __init__(self, source: ControllerSource, package: str, name: str) -> None:
        self._source = source
        self._package = package
        self._name = name

    def exec_module(self, module: ModuleType) -> None:
        """Compile and execute the bytes that were digested."""
        file = str(self._source.file(self._name))
        content = self._source.modules[self._name].content
        code = compile(content, file, "exec", dont_inherit=True)
        # Tracebacks show the executed lines, even if the file has changed since.
        lines = StringIO(decode_source(content)).readlines()
        linecache.cache[file] = (len(content), None, lines, file)
        importing = _import_for(self._package, self._source.modules)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": importing}
        exec(code, module.__dict__)


def _import_for(package: str, modules: Mapping[str, object]) -> Callable[..., Any]:
    """Return an `__import__` function that searches the source's own modules first."""
    own = {name.partition(".")[0] for name in modules}

    def import_module(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        if level or top not in own:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        found = builtins.__import__(f"{package}.{name}", globals_, locals_, fromlist or ())
        # `import a.b` binds `a`.
        return found if fromlist else sys.modules[f"{package}.{top}"]

    return import_module


sys.meta_path.insert(0, _Finder())
