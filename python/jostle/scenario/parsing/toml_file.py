"""A TOML file whose problems can be reported with line numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jostle.scenario.parsing.key_lines import KeyPath, Lines, line_of, positions
from jostle.scenario.parsing.problems import MOST_PROBLEMS, Problem, ScenarioError
from jostle.scenario.parsing.renamed_keys import MIGRATE, FileKind, renames_in
from jostle.scenario.parsing.toml_document import parse, read_text

__all__ = ["TomlFile"]


@dataclass(frozen=True)
class TomlFile:
    """A TOML file.

    Attributes
    ----------
    path
        Path of the file.
    text
        Text with normalised line ends.
    document
        Parsed document.
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
            If the file cannot be read or is not TOML.
        """
        return cls(path, *parse(read_text(path), str(path)))

    @functools.cached_property
    def lines(self) -> Lines:
        """Line numbers of the keys, computed on first use, because this is slower than parsing."""
        return positions(self.text)

    def error(self, mistakes: Iterable[tuple[KeyPath, str]]) -> ScenarioError:
        """Return an error for problems given as pairs of a key path and a message."""
        problems = [
            Problem(line_of(self.lines, at), ".".join(str(step) for step in at), said)
            for at, said in mistakes
        ]
        return ScenarioError(str(self.path), problems)

    def check_names(self, kind: FileKind) -> None:
        """See that no key, value or measure has the name of an earlier format.

        Raises
        ------
        ScenarioError
            If one has, with all new names.
        """
        found = islice(renames_in(self.document, kind), MOST_PROBLEMS)
        self.check((one.path, f"{one.message} — {MIGRATE}") for one in found)

    def check(self, mistakes: Iterable[tuple[KeyPath, str]]) -> None:
        """Raise an error if there are problems.

        Raises
        ------
        ScenarioError
            If `mistakes` is not empty.
        """
        found = [*mistakes]
        if found:
            raise self.error(found)
