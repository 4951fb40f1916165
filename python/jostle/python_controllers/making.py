"""Makes controllers written in Python, from sources that the gate for foreign code admitted."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Final

from jostle.errors import JostleError
from jostle.foreign_code import admitted
from jostle.python_controllers.importing import package_of
from jostle.python_controllers.sources import DIGEST, Source

__all__ = ["PythonControllerError", "create"]

_CALLBACKS: Final = ("on_ack", "on_congestion")
"""What a class must have to be a controller."""


class PythonControllerError(JostleError):
    """A controller written in Python cannot be found, or is not what the scenario was read with."""


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
        When the source was not admitted in this process, or has no such controller.
    """
    arguments = dict(parameters)
    digest = arguments.pop(DIGEST, "")
    source = admitted(digest)
    if not isinstance(source, Source):
        raise PythonControllerError(
            f"the source of `{name}` is not known here: load its scenario first"
        )
    made = _controller_class(source, digest, name.partition(":")[2])
    if "seed" in inspect.signature(made).parameters:
        arguments["seed"] = seed
    return made(**arguments)


def _controller_class(source: Source, digest: str, name: str) -> type:
    """Import a class, before anything of it is called.

    Raises
    ------
    PythonControllerError
        When it is no class, is defined outside the scenario's folder, or is no controller.
    """
    package = package_of(digest)
    made = getattr(importlib.import_module(f"{package}.{source.name}"), name, None)
    if not inspect.isclass(made) or not made.__module__.startswith(f"{package}."):
        raise PythonControllerError(
            f"{name} is no class of {source.file(source.name)} or of the modules beside it"
        )
    for callback in _CALLBACKS:
        if not callable(getattr(made, callback, None)):
            raise PythonControllerError(f"{name} has no `{callback}`, so it is no controller")
    return made
