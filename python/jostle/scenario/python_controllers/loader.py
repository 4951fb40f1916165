"""Instantiation of Python controllers from sources that `code_consent` has admitted."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from jostle.errors import JostleError
from jostle.safe_io.code_consent import admitted
from jostle.scenario.python_controllers.class_parameters import CALLBACKS, SEED
from jostle.scenario.python_controllers.importing import package_of
from jostle.scenario.python_controllers.source_files import DIGEST, ControllerSource

__all__ = ["PythonControllerError", "create"]


class PythonControllerError(JostleError):
    """A Python controller does not exist, or differs from the one that was digested."""


def create(name: str, parameters: Mapping[str, Any], seed: int) -> object:
    """Create the controller of a run specification.

    Parameters
    ----------
    name
        ``module:Class``.
    parameters
        Keyword arguments of the class, and the digest of its source.
    seed
        Passed to the class if it has a parameter `seed`.

    Raises
    ------
    PythonControllerError
        If this process has not admitted the source, the source has no such controller, or the
        controller lacks an attribute.
    """
    arguments = dict(parameters)
    digest = arguments.pop(DIGEST, "")
    source = admitted(digest)
    if not isinstance(source, ControllerSource):
        raise PythonControllerError(
            f"the source of `{name}` is not known here: load its scenario first"
        )
    made = _controller_class(source, digest, name.partition(":")[2])
    if SEED in inspect.signature(made).parameters:
        arguments[SEED] = seed
    controller = made(**arguments)
    if getattr(controller, "recovery", "transport") == "transport" and not hasattr(
        controller, "ssthresh"
    ):
        # The engine reads only attributes that exist now.
        raise PythonControllerError(
            f"{source.file(source.name)}: a new {made.__name__} has no attribute `ssthresh`: "
            'set it, to None for no threshold, or recovery = "controller"'
        )
    return controller


def _controller_class(source: ControllerSource, digest: str, name: str) -> type:
    """Import a class without calling it.

    Raises
    ------
    PythonControllerError
        If the name is not a class, is defined outside the scenario's folder, or lacks a method.
    """
    package = package_of(digest)
    made = getattr(importlib.import_module(f"{package}.{source.name}"), name, None)
    if not inspect.isclass(made) or not made.__module__.startswith(f"{package}."):
        raise PythonControllerError(
            f"{name} is no class of {source.file(source.name)} or of the modules next to it"
        )
    for callback in CALLBACKS:
        if not callable(getattr(made, callback, None)):
            file = source.file(source.name)
            raise PythonControllerError(f"{file}: the class {name} has no method `{callback}`")
    return made
