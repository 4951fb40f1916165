"""Every backend, as a row: its name, its options, and where its class is.

The command line, the Python interface, studies and jobs in other processes know backends from here
alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from jostle.backends.base import Backend
from jostle.errors import InputError
from jostle.kernel_images.images import KINDS

__all__ = ["BACKENDS", "DEFAULT", "BackendRow", "Option", "all_options", "create"]


@dataclass(frozen=True)
class Option:
    """A keyword argument of a backend's class, and an option of the command line.

    Attributes
    ----------
    name
        With underscores: `kernel_version` is `--kernel-version`.
    summary
        What it says, as a sentence.
    choices
        What it can be; anything if empty.
    """

    name: str
    summary: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class BackendRow:
    """A backend.

    Attributes
    ----------
    name
        On the command line, in studies, and in the name of a run.
    title
        What results from it are called in text.
    summary
        What runs there.
    home
        `module:Class`, imported when the backend is made. The class takes the options.
    options
        What can be chosen; a row's options have names that no other row's have.
    is_slow
        Whether a run takes its time, so that studies may ask for fewer.
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
            Option(
                "kernel",
                "Which Linux: one in virtual time (the default), the distribution's in real time, "
                "or this machine's own, as root.",
                KINDS,
            ),
            Option("kernel_version", "Its series or version, such as 6.1."),
        ),
        is_slow=True,
    ),
)

BACKENDS: Final[Mapping[str, BackendRow]] = {row.name: row for row in _ROWS}
"""By name."""

DEFAULT: Final = _ROWS[0].name
"""What runs a scenario if nobody says it."""


def all_options() -> list[Option]:
    """Options of all backends."""
    return [option for row in _ROWS for option in row.options]


def create(name: str, **chosen: str | None) -> Backend:
    """Make the backend called `name`.

    Parameters
    ----------
    chosen
        Its options, by name; None is as good as absent.

    Raises
    ------
    InputError
        When there is no such backend, it has no such option, or what the option names is not there.
    EngineError
        When its engine is missing.
    """
    row = BACKENDS.get(name)
    if row is None:
        raise InputError(f"no backend `{name}`: choose one of {', '.join(BACKENDS)}")
    given = {key: value for key, value in chosen.items() if value is not None}
    for key, value in given.items():
        option = next((one for one in row.options if one.name == key), None)
        if option is None:
            owners = [one.name for one in _ROWS if key in (each.name for each in one.options)]
            hint = f": use the backend `{owners[0]}`" if owners else ""
            raise InputError(f"the backend `{name}` has no `{key}` to choose{hint}")
        if option.choices and value not in option.choices:
            listed = ", ".join(option.choices)
            raise InputError(f"no {key} `{value}`: choose one of {listed}")
    module, _, made = row.home.partition(":")
    return cast(Backend, getattr(importlib.import_module(module), made)(**given))
