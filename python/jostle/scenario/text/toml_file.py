"""A TOML file of which it can be told where its mistakes stand."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.scenario.text.document import parse, read_text
from jostle.scenario.text.positions import KeyPath, Lines, line_of, positions
from jostle.scenario.text.problems import Problem, ScenarioError

__all__ = ["TomlFile"]


@dataclass(frozen=True)
class TomlFile:
    """A TOML file.

    Attributes
    ----------
    path
        Where it is.
    text
        As it was written, with plain line ends.
    document
        What it holds.
    """

    path: Path
    text: str
    document: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file.

        Raises
        ------
        ScenarioError
            If it cannot be read, or is not TOML.
        """
        return cls(path, *parse(read_text(path), str(path)))

    @functools.cached_property
    def lines(self) -> Lines:
        """Where its keys stand: found when something is wrong, for it takes longer than reading."""
        return positions(self.text)

    def error(self, mistakes: Iterable[tuple[KeyPath, str]]) -> ScenarioError:
        """Say what is wrong with it, by the keys that are and what is said of them."""
        problems = [
            Problem(line_of(self.lines, at), ".".join(str(step) for step in at), said)
            for at, said in mistakes
        ]
        return ScenarioError(str(self.path), problems)

    def check(self, mistakes: Iterable[tuple[KeyPath, str]]) -> None:
        """See that nothing is wrong.

        Raises
        ------
        ScenarioError
            If there are mistakes.
        """
        found = [*mistakes]
        if found:
            raise self.error(found)
