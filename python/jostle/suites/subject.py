"""The controller that a suite judges: a row of the registry, a variant of it, a Python class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.scenario.resolving.addressing import parse_value

_CLASS: Final = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")


@dataclass(frozen=True)
class Subject:
    """A controller, and what its flows run over.

    Attributes
    ----------
    label
        What results call it.
    controller
        As a scenario has it: a name, or a table with parameters.
    transport
        As a scenario has it; None for the scenario's own.
    modules
        Folder of its module, if it is a Python class.
    """

    label: str
    controller: str | Mapping[str, Any]
    transport: str | Mapping[str, Any] | None = None
    modules: Path | None = None

    @property
    def kind(self) -> str:
        """Kind of its transport; that of TCP where none is named."""
        over = self.transport
        return str(over.get("kind", "")) if isinstance(over, Mapping) else over or "tcp"

    def overrides(self, flows: tuple[str, ...], *, own_transport: bool = False) -> dict[str, Any]:
        """Give the keys of a scenario that put it into flows.

        Parameters
        ----------
        flows
            Their names.
        own_transport
            Whether they have this kind of transport already, with keys that stay unless others are
            given.
        """
        found = {f"flows.{flow}.controller": self.controller for flow in flows}
        stays = own_transport and not isinstance(self.transport, Mapping)
        if self.transport is not None and not stays:
            found |= {f"flows.{flow}.transport": self.transport for flow in flows}
        return found


def subject(controller: str, transport: str = "") -> Subject:
    """Read a controller as the command line has it.

    Parameters
    ----------
    controller
        A name (`bbr3`), an inline table of TOML (`{ name = "bbr3", flavour = "google" }`), or a
        class in a file of Python (`mine.py:Mine`).
    transport
        The same of a transport; empty for the scenarios' own.

    Raises
    ------
    InputError
        When it is neither.

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
        return Subject(f"{name}{suffix}", name, over, file.parent.resolve())
    given = parse_value(controller)
    if isinstance(given, dict) and isinstance(given.get("name"), str):
        return Subject(_words(given, "name") + suffix, given, over)
    if isinstance(given, str) and given:
        return Subject(given + suffix, given, over)
    hint = """write a name, '{ name = "bbr3", flavour = "google" }', or mine.py:Mine"""
    raise InputError(f"--controller {controller}: this is no controller — {hint}")


def _words(given: str | Mapping[str, Any], key: str) -> str:
    """Write a word, or a table with the word under `key`, as a label."""
    if isinstance(given, str):
        return given
    others = ", ".join(f"{name} = {value}" for name, value in given.items() if name != key)
    return f"{given.get(key, '')} ({others})" if others else str(given.get(key, ""))
