"""The controller that a suite judges: a registered one, with parameters, or a Python class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard

from jostle.errors import InputError
from jostle.scenario.python_controllers.source_files import CRATE, is_crate_controller
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.key_paths import parse_value

_CLASS: Final = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")


@dataclass(frozen=True)
class ControllerUnderTest:
    """A controller and the transport of its flows.

    Attributes
    ----------
    label
        Name in results.
    controller
        Name, or table with parameters, as in a scenario.
    transport
        Transport as in a scenario; None for the scenario's own.
    modules
        Folder of its module or crate, if it is a Python class or in a crate.
    """

    label: str
    controller: str | Mapping[str, Any]
    transport: str | Mapping[str, Any] | None = None
    modules: Path | None = None

    @property
    def kind(self) -> str:
        """Kind of its transport; `tcp` if none is given."""
        over = self.transport
        return str(over.get("kind", "")) if isinstance(over, Mapping) else over or "tcp"

    def overrides(self, flows: tuple[str, ...], *, own_transport: bool = False) -> dict[str, Any]:
        """Return the keys of a scenario that assign the controller to flows.

        Parameters
        ----------
        flows
            Their names.
        own_transport
            Whether the flows already have this kind of transport; its keys are kept unless others
            are given.
        """
        found = {f"flows.{flow}.controller": self.controller for flow in flows}
        stays = own_transport and not isinstance(self.transport, Mapping)
        if self.transport is not None and not stays:
            found |= {f"flows.{flow}.transport": self.transport for flow in flows}
        return found


def subject(controller: str, transport: str = "") -> ControllerUnderTest:
    """Parse a controller from the command line.

    Parameters
    ----------
    controller
        A name (`bbr3`), an inline TOML table (`{ name = "bbr3", flavour = "google" }`), a class in
        a Python file (`mine.py:Mine`), or a crate (`crate:mine`). Files and folders are relative to
        the current one.
    transport
        A name or table of a transport; empty for the scenarios' own.

    Raises
    ------
    InputError
        When the text is none of these.

    Examples
    --------
    >>> subject("bbr3").label
    'bbr3'
    >>> subject('{ name = "bbr3", flavour = "google" }', "quic").label
    'bbr3 (flavour = google), quic'
    """
    over: Any = parse_value(transport) if transport else None
    suffix = "" if over is None else f", {_words(over, 'kind')}"
    found = _CLASS.fullmatch(controller.strip())
    if found is not None:
        file = Path(found["file"])
        if not file.is_file():
            raise InputError(f"--controller {controller}: there is no file {file}")
        if not file.stem.isidentifier():
            raise InputError(f"--controller {controller}: {file.name} is no name of a module")
        name = f"{file.stem}:{found['name']}"
        return ControllerUnderTest(f"{name}{suffix}", name, over, file.parent.resolve())
    given = parse_value(controller)
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        name, folder = _crate_in_its_folder(given["name"])
        given = {**given, "name": name}
        label = _words(given, "name") + suffix
        return ControllerUnderTest(label, _with_absolute_paths(given), over, folder)
    if isinstance(given, str) and given:
        name, folder = _crate_in_its_folder(given)
        return ControllerUnderTest(name + suffix, name, over, folder)
    hint = """write a name, '{ name = "bbr3", flavour = "google" }', mine.py:Mine or crate:mine"""
    raise InputError(f"--controller {controller}: this is no controller — {hint}")


def _crate_in_its_folder(name: str) -> tuple[str, Path | None]:
    """Return the name of a crate without the folders above it, and its folder; None for others."""
    if not is_crate_controller(name):
        return name, None
    place = Path(name.removeprefix(CRATE)).resolve()
    return f"{CRATE}{place.name}", place.parent


def _with_absolute_paths(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve parameters that are files against the current folder, not the scenario's."""
    row = Registry.of_engine().controllers.get(given["name"])
    files = [p.name for p in row.parameters.values() if p.kind == "file"] if row else []
    paths = {name: str(Path(given[name]).absolute()) for name in files if _is_path(given.get(name))}
    return {**given, **paths}


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value)


def _words(given: str | Mapping[str, Any], key: str) -> str:
    """Format a name, or a table with the name under `key`, as a label."""
    if isinstance(given, str):
        return given
    others = ", ".join(f"{name} = {value}" for name, value in given.items() if name != key)
    return f"{given.get(key, '')} ({others})" if others else str(given.get(key, ""))
