"""Problems of a scenario: collected, sorted by line and reported in one error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jostle.errors import InputError, brief
from jostle.scenario.parsing.key_lines import KeyPath

__all__ = [
    "MOST_PROBLEMS",
    "Problem",
    "Report",
    "ScenarioError",
    "did_you_mean",
    "nearest",
    "overlaps",
    "starts_with",
]

MOST_PROBLEMS: Final = 100
"""Maximum number of problems reported per file. Each problem costs time for its hint."""


@dataclass(frozen=True, order=True)
class Problem:
    """One problem of a scenario.

    Parameters
    ----------
    line
        Line in the file, counted from 1; 0 if there is no line, as for a file that cannot be read
        or a value from the command line.
    key
        Key in the form ``"flows.newcomer.rtt"``; empty for a problem of the file itself.
    message
        Description of the problem and of the accepted values.
    """

    line: int
    key: str
    message: str


class ScenarioError(InputError):
    """A scenario has problems and cannot run.

    Parameters
    ----------
    source
        Name of the file as given by the caller.
    problems
        All problems that were found, sorted by line.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems: tuple[Problem, ...] = tuple(sorted(set(problems)))
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        """Return one line per problem: ``file:line: key: message``."""
        lines = []
        for problem in self.problems:
            place = f"{self.source}:{problem.line}" if problem.line else self.source
            text = ": ".join(p for p in (place, problem.key, problem.message) if p)
            # Escape line feeds in values, so that each problem is one line.
            lines.append(brief(text.replace("\n", "\\u000a")))
        return "\n".join(lines)


class Report:
    """Collects problems by key path and drops consequences of other problems.

    Parameters
    ----------
    hidden
        Paths of values that are invalid or placeholders. Problems that involve them are dropped,
        because they may be consequences.

    Attributes
    ----------
    found
        Problems to report.
    count
        Number of problems added, including dropped ones. A caller compares this number to find out
        whether a step found a problem.
    """

    def __init__(self, hidden: Iterable[KeyPath] = ()) -> None:
        self.hidden = tuple(hidden)
        self.count = 0
        self.found: list[tuple[KeyPath, str]] = []

    @property
    def full(self) -> bool:
        """Whether the number of problems has reached the limit, so that checks can stop."""
        return self.count >= MOST_PROBLEMS

    def add(self, path: KeyPath, message: str, *also: KeyPath) -> None:
        """Report `message` about `path`, unless `path` or a path in `also` is hidden.

        `also` contains the other values that the problem depends on.
        """
        self.count += 1
        involved = (path, *also)
        if not any(overlaps(one, other) for one in involved for other in self.hidden):
            self.found.append((path, message))


def starts_with(path: KeyPath, prefix: KeyPath) -> bool:
    """Return whether `path` equals `prefix` or is nested in it."""
    return path[: len(prefix)] == prefix


def overlaps(one: KeyPath, other: KeyPath) -> bool:
    """Return whether the paths are equal or one is nested in the other."""
    return starts_with(one, other) or starts_with(other, one)


def nearest(given: str, known: Sequence[str]) -> str | None:
    """Return the name in `known` that is most similar to `given`; None if none is similar."""
    lowered = {k.lower(): k for k in known}
    near = difflib.get_close_matches(given.lower(), lowered, n=1)
    return lowered[near[0]] if near else None


def did_you_mean(given: str, known: Sequence[str], *, listed: str = "known") -> str:
    """Return a hint with the most similar name in `known`, or all names if none is similar."""
    near = nearest(given, known)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"{listed}: {', '.join(known)}" if known else "there are none"
