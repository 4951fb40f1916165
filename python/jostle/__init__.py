"""A congestion-control laboratory.

`load` reads a scenario, `run` executes it, and a `ResultSet` answers questions about it::

    import jostle

    results = jostle.run("scenarios/two_flows.toml")
    print(results.estimate("goodput", phase="steady"))

Importing this package imports no other module; each name imports its module on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.api import analyze, load, run
    from jostle.results import ResultSet
    from jostle.scenario import Scenario

    __version__: str

__all__ = ["ResultSet", "Scenario", "__version__", "analyze", "load", "run"]

_HOMES = {
    "ResultSet": "jostle.results",
    "Scenario": "jostle.scenario",
    "analyze": "jostle.api",
    "load": "jostle.api",
    "run": "jostle.api",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("jostle")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
