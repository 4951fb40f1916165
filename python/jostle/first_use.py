"""Names of a package that import their modules on first use, so that commands start fast."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a function `__getattr__` for a package.

    Parameters
    ----------
    package
        Its `__name__`.
    homes
        Module of each name, relative to the package. A name must differ from the modules' names,
        because Python binds a module to its name in the package.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
