"""Recipes of external QUIC implementations, and the commands that start their programs."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLACES = ("www", "downloads", "qlog")
"""Placeholders for folders of a run."""

VALUES = (
    "address", "port", "bytes", "controller", "window", "mtu", "seed", "key", "certificate",
)  # fmt: skip
"""Placeholders for values of a flow."""

_RECIPES = Path(__file__).with_suffix(".toml")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Programs:
    """The command lines of server and client in a scenario.

    Attributes
    ----------
    server, client
        Words of the command line, with placeholders.
    """

    server: tuple[str, ...]
    client: tuple[str, ...]

    @classmethod
    def of(cls, server: Sequence[str], client: Sequence[str]) -> Programs:
        """Create the programs from `commands` of a run specification."""
        return cls(tuple(server), tuple(client))

    def digest(self) -> str:
        """Return the SHA-256 of all words; see `jostle.safe_io.code_consent`."""
        return hashlib.sha256(json.dumps([self.server, self.client]).encode()).hexdigest()

    def __str__(self) -> str:
        return f"`{shlex.join(self.server)}` and `{shlex.join(self.client)}`"


@dataclass(frozen=True)
class BuildRecipe:
    """Build instructions for programs that no package contains.

    Attributes
    ----------
    needs
        Required programs, with the package or source of each.
    command
        Build command, run in a copy of the recipe's sources if there are any. `{into}` is replaced
        by the folder whose `bin` receives the programs, `{work}` by a folder that is removed after
        the build.
    takes
        Typical duration of the build.
    environment
        Environment variables, with the same placeholders.
    """

    needs: Mapping[str, str]
    command: Sequence[str]
    takes: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """Instructions for using an implementation.

    Attributes
    ----------
    server, client
        Command lines with placeholders.
    server_without_qlog
        Command line of a server without qlog; empty if there is none.
    controllers
        Name that the implementation uses for each controller.
    install
        Command that installs its programs.
    environment
        Environment variables of both programs.
    loads_file
        Whether the server reads the complete file into memory.
    build
        Build instructions; None if a package contains the programs.
    """

    title: str
    server: Sequence[str]
    client: Sequence[str]
    controllers: Mapping[str, str]
    install: str
    environment: Mapping[str, str] = field(default_factory=dict)
    loads_file: bool = False
    server_without_qlog: Sequence[str] = ()
    build: BuildRecipe | None = None

    @property
    def programs(self) -> tuple[Programs, ...]:
        """Return the command lines with qlog and, if the recipe has one, without."""
        servers = (self.server, self.server_without_qlog)
        return tuple(Programs.of(server, self.client) for server in servers if server)

    @property
    def advice(self) -> str:
        """Instruction for installing the programs."""
        if self.build is None:
            return self.install
        needs = ", ".join(self.build.needs.values())
        return f"{self.install} ({self.build.takes}, once; it needs {needs})"


@functools.cache
def recipes() -> Mapping[str, Recipe]:
    """Return all recipes by name."""
    known = tomllib.loads(_RECIPES.read_text("utf-8"))
    return {name: _recipe(**table) for name, table in known.items()}


def _recipe(*, build: Mapping[str, Any] | None = None, **rest: Any) -> Recipe:
    return Recipe(**rest, build=None if build is None else BuildRecipe(**build))


def unknown_placeholders(words: Iterable[str]) -> Iterator[str]:
    """Yield the unknown placeholders in `words`."""
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in (*VALUES, *PLACES):
                yield name


def substitute_placeholders(words: Iterable[str], stand_for: Mapping[str, str]) -> list[str]:
    """Replace the placeholders that `stand_for` contains; others are unchanged."""

    def value(match: re.Match[str]) -> str:
        return stand_for.get(match[1], match[0])

    return [_PLACEHOLDER.sub(value, word) for word in words]
