"""Makes controllers written in Python, from sources that the gate for foreign code admitted."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from jostle.errors import JostleError
from jostle.foreign_code import admitted
from jostle.python_controllers.sources import DIGEST, Source

__all__ = ["PythonControllerError", "create"]

_CALLBACKS: Final = ("on_ack", "on_congestion")
"""What a class must have to be a controller."""


class PythonControllerError(JostleError):
    """A controller written in Python cannot be found, or is not what the scenario was read with."""


_modules: dict[str, ModuleType] = {}
_lock = threading.Lock()


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
        When the source was not admitted in this process, or is no longer what it was.
    """
    arguments = dict(parameters)
    digest = arguments.pop(DIGEST, "")
    source = admitted(digest)
    if not isinstance(source, Source):
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
    made = _controller_class(module, source, name.partition(":")[2])
    if "seed" in inspect.signature(made).parameters:
        arguments["seed"] = seed
    return made(**arguments)


def _controller_class(module: ModuleType, source: Source, name: str) -> type:
    """Return a class of the module, before anything of it is called.

    Raises
    ------
    PythonControllerError
        When it is no class, is defined outside the scenario's folder, or is no controller.
    """
    made = getattr(module, name, None)
    if not inspect.isclass(made) or made.__module__ not in {module.__name__, *source.neighbours()}:
        raise PythonControllerError(
            f"{name} is no class of {source.files[0]} or of the modules beside it"
        )
    for callback in _CALLBACKS:
        if not callable(getattr(made, callback, None)):
            raise PythonControllerError(f"{name} has no `{callback}`, so it is no controller")
    return made


def _load(source: Source, digest: str) -> ModuleType:
    """Run a module, whose neighbours it imports as if it had been started in its folder.

    Neighbours do not stay in `sys.modules`: those of another folder may have the same names.
    """
    name = f"_jostle_controller_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, source.files[0])
    if spec is None or spec.loader is None:
        raise PythonControllerError(f"{source.files[0]} is no Python module")
    module = importlib.util.module_from_spec(spec)
    neighbours = source.neighbours()
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
