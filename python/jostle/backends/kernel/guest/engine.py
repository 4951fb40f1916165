"""jostle's compiled engine, as the guest loads it."""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any


def load_engine(path: str) -> Any:
    """Load the engine by its path, because jostle's dependencies are not in the guest's Python."""
    found = spec_from_file_location("_core", path, loader=ExtensionFileLoader("_core", path))
    assert found is not None
    assert found.loader is not None
    core = module_from_spec(found)
    found.loader.exec_module(core)
    return core
