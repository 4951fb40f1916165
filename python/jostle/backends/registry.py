"""Registry of backends: name, options and class of each.

The command line, the Python interface, studies and worker processes use only this registry.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from jostle.errors import InputError, unknown
from jostle.kernel_images.kinds import KINDS, OWN_CONTROLLERS

if TYPE_CHECKING:
    from jostle.backends.base import Backend

__all__ = [
    "BACKENDS",
    "DEFAULT",
    "BackendRow",
    "Option",
    "backend_names",
    "create",
    "parse_backend",
]


@dataclass(frozen=True)
class Option:
    """A keyword argument of a backend's class, and a part of its name on the command line.

    Attributes
    ----------
    name
        Name of the argument.
    choices
        Accepted values. If empty, the value is a version, such as 6.12, or the name of a kernel
        with the user's changes.
    """

    name: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class BackendRow:
    """A backend.

    Attributes
    ----------
    name
        Name on the command line, in studies, and in the hash of a run.
    title
        Name of its results in text.
    summary
        Description of the system that runs the spec.
    home
        `module:Class`, imported on creation. The options are its keyword arguments.
    options
        Options of the backend. Option names are unique across backends.
    is_slow
        Whether runs are slow, so that studies may use fewer.
    """

    name: str
    title: str
    summary: str
    home: str
    options: tuple[Option, ...] = ()
    is_slow: bool = False


_ROWS: Final = (
    BackendRow("sim", "simulator", "the simulator", "jostle.backends.sim:SimBackend"),
    BackendRow(
        "kernel",
        "Linux",
        "the TCP stack of Linux",
        "jostle.backends.kernel:KernelBackend",
        options=(
            # In virtual time (the default), the distribution's in real time, or this machine's own.
            Option("kernel", KINDS),
            Option("controllers", (OWN_CONTROLLERS,)),
            Option("kernel_version"),
        ),
        is_slow=True,
    ),
)

BACKENDS: Final[Mapping[str, BackendRow]] = {row.name: row for row in _ROWS}
"""Backends by name."""

DEFAULT: Final = _ROWS[0].name
"""Default backend."""


_VERSION: Final = re.compile(r"\d[\w.+~-]*")


def backend_names() -> list[str]:
    """Return the names of all backends, and each with its modes: `sim`, `kernel:realtime`, …."""
    modes = [
        f"{row.name}:{choice}"
        for row in _ROWS
        for option in row.options
        for choice in option.choices
    ]
    return [*BACKENDS, *modes]


def parse_backend(text: str) -> tuple[str, dict[str, str]]:
    """Split `kernel:realtime:6.1` into the name of a backend and its options.

    Raises
    ------
    InputError
        If there is no such backend, mode or version.
    """
    name, *parts = text.split(":")
    row = BACKENDS.get(name)
    if row is None:
        raise InputError(unknown("backend", name, BACKENDS))
    chosen: dict[str, str] = {}
    for part in parts:
        option = next(
            (
                known
                for known in row.options
                if (part in known.choices if known.choices else _is_version(part))
            ),
            None,
        )
        if option is None or option.name in chosen:
            from jostle.kernel_images.image_paths import names

            modes = [choice for known in row.options for choice in known.choices]
            own = "".join(f"{name}, " for name in names())
            hint = f"{', '.join(modes)}, {own}or a version such as 6.12" if modes else "none"
            raise InputError(f"`{text}`: the backend `{name}` has no `{part}`: there is {hint}")
        chosen[option.name] = part
    return name, chosen


def _is_version(text: str) -> bool:
    from jostle.kernel_images.image_paths import names

    return _VERSION.fullmatch(text) is not None or text in names()


def create(name: str, **chosen: str | None) -> Backend:
    """Create the backend called `name`.

    Parameters
    ----------
    chosen
        Its options by name. None means the default.

    Raises
    ------
    InputError
        If the backend, the option or its value does not exist.
    EngineError
        If its engine is missing.
    """
    row = BACKENDS.get(name)
    if row is None:
        raise InputError(f"no backend `{name}`: choose one of {', '.join(BACKENDS)}")
    given = {key: value for key, value in chosen.items() if value is not None}
    for key, value in given.items():
        option = next((known for known in row.options if known.name == key), None)
        if option is None:
            owners = [one.name for one in _ROWS if key in (each.name for each in one.options)]
            hint = f": use the backend `{owners[0]}`" if owners else ""
            raise InputError(f"the backend `{name}` has no `{key}` to choose{hint}")
        if option.choices and value not in option.choices:
            listed = ", ".join(option.choices)
            raise InputError(f"no {key} `{value}`: choose one of {listed}")
    module, _, class_name = row.home.partition(":")
    return cast("Backend", getattr(importlib.import_module(module), class_name)(**given))
