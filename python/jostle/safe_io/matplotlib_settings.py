"""Import of Matplotlib without settings from the current folder or from the user.

On import, Matplotlib first reads `matplotlibrc` of the current folder. Such a file can start
programs (`text.usetex`), stop the import with an error, or be an endless pipe.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["use_packaged_settings"]


def use_packaged_settings() -> None:
    """Make Matplotlib read only its own settings in this process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds Matplotlib for any importer."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of Matplotlib; None for other modules."""
        if fullname != "matplotlib":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Imports Matplotlib; during the import, all files outside its package appear empty."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        own = Path(self.path).parent

        def open_own(file: Any, *arguments: Any, **options: Any) -> Any:
            is_own = Path(file).is_relative_to(own)
            return open(file, *arguments, **options) if is_own else StringIO()

        # Functions of the module use this dictionary after the import too.
        names = module.__dict__["__builtins__"] = {**vars(builtins), "open": open_own}
        try:
            super().exec_module(module)
        finally:
            names["open"] = open
