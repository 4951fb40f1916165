"""QUIC of other people: the recipes that come with jostle, and the words that start programs."""

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
"""Placeholders that stand for folders of a run."""

VALUES = (
    "address", "port", "bytes", "controller", "window", "mtu", "seed", "key", "certificate",
)  # fmt: skip
"""Placeholders that stand for values of a flow."""

_RECIPES = Path(__file__).with_suffix(".toml")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Programs:
    """The programs of a flow, each with its arguments, as a scenario names them.

    Attributes
    ----------
    server, client
        Words of each, with placeholders.
    """

    server: tuple[str, ...]
    client: tuple[str, ...]

    @classmethod
    def of(cls, server: Sequence[str], client: Sequence[str]) -> Programs:
        """Take the words from `commands` of a run's specification."""
        return cls(tuple(server), tuple(client))

    def digest(self) -> str:
        """Return the SHA-256 of all words; see `jostle.foreign_code`."""
        return hashlib.sha256(json.dumps([self.server, self.client]).encode()).hexdigest()

    def __str__(self) -> str:
        return f"`{shlex.join(self.server)}` and `{shlex.join(self.client)}`"


@dataclass(frozen=True)
class Building:
    """How programs are made that no package holds.

    Attributes
    ----------
    needs
        Programs that have to be there → what has them.
    command
        What makes them, started in a copy of the recipe's sources if it has any. In it `{into}`
        stands for the folder in whose `bin` they are to be, `{work}` for one that is removed when
        they are there.
    takes
        How long that is.
    environment
        Variables, in the same words.
    """

    needs: Mapping[str, str]
    command: Sequence[str]
    takes: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How an implementation is used.

    Attributes
    ----------
    server, client
        Program and arguments of each, with placeholders.
    server_without_qlog
        Program and arguments of a server that writes no log; empty if there is none.
    controllers
        Its word for each controller that it has.
    install
        What installs its programs.
    environment
        Variables for both.
    loads_file
        Whether the server reads the whole file into memory.
    build
        How jostle builds them; None if they come with a package.
    """

    title: str
    server: Sequence[str]
    client: Sequence[str]
    controllers: Mapping[str, str]
    install: str
    environment: Mapping[str, str] = field(default_factory=dict)
    loads_file: bool = False
    server_without_qlog: Sequence[str] = ()
    build: Building | None = None

    @property
    def programs(self) -> tuple[Programs, ...]:
        """Both programs as a run's specification has them: with a log and, if it can, without."""
        servers = (self.server, self.server_without_qlog)
        return tuple(Programs.of(server, self.client) for server in servers if server)

    @property
    def advice(self) -> str:
        """How its programs are installed."""
        if self.build is None:
            return self.install
        needs = ", ".join(self.build.needs.values())
        return f"{self.install} ({self.build.takes}, once; it needs {needs})"


@functools.cache
def recipes() -> Mapping[str, Recipe]:
    """All recipes, by name."""
    known = tomllib.loads(_RECIPES.read_text("utf-8"))
    return {name: _recipe(**table) for name, table in known.items()}


def _recipe(*, build: Mapping[str, Any] | None = None, **rest: Any) -> Recipe:
    return Recipe(**rest, build=None if build is None else Building(**build))


def unknown_placeholders(words: Iterable[str]) -> Iterator[str]:
    """List the placeholders in `words` that stand for nothing."""
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in (*VALUES, *PLACES):
                yield name


def filled(words: Iterable[str], stand_for: Mapping[str, str]) -> list[str]:
    """Replace the placeholders that `stand_for` has; others stay."""

    def value(match: re.Match[str]) -> str:
        return stand_for.get(match[1], match[0])

    return [_PLACEHOLDER.sub(value, word) for word in words]
