"""What is wrong with a scenario: collected, placed on lines, and told in one go."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jostle.errors import InputError, brief
from jostle.scenario.text.positions import KeyPath

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
"""Of one file that are reported: each takes time for its hint, and a person fixes fewer at once."""


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake.

    Parameters
    ----------
    line
        Line in the file, counted from 1; 0 if it has none, as for a file that cannot be read or a
        value from the command line.
    key
        The key as a person would write it, ``"flows.newcomer.rtt"``; empty for the file itself.
    message
        What is wrong, and what would be accepted.
    """

    line: int
    key: str
    message: str


class ScenarioError(InputError):
    """A scenario cannot be run as it is written.

    Parameters
    ----------
    source
        Name of the file, as it was given.
    problems
        Every mistake that was found. They are kept in the order of their lines.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems: tuple[Problem, ...] = tuple(sorted(set(problems)))
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        """One line per problem: ``file:line: key: message``."""
        lines = []
        for problem in self.problems:
            place = f"{self.source}:{problem.line}" if problem.line else self.source
            text = ": ".join(p for p in (place, problem.key, problem.message) if p)
            # A line feed in a value of the file would look like another problem.
            lines.append(brief(text.replace("\n", "\\u000a")))
        return "\n".join(lines)


class Report:
    """Collects problems by key path, leaving out those that only follow from others.

    Parameters
    ----------
    hidden
        Values that are known to be wrong or stand in for others. What involves them is not
        reported: it may be an effect and not a cause.

    Attributes
    ----------
    found
        Problems that are reported.
    count
        How many problems were added, those that are not reported included. A caller that goes on
        only with sound values compares this number.
    """

    def __init__(self, hidden: Iterable[KeyPath] = ()) -> None:
        self.hidden = tuple(hidden)
        self.count = 0
        self.found: list[tuple[KeyPath, str]] = []

    @property
    def full(self) -> bool:
        """Whether there are so many problems that no more are looked for."""
        return self.count >= MOST_PROBLEMS

    def add(self, path: KeyPath, message: str, *also: KeyPath) -> None:
        """Report `message` about `path`; `also` are other values that it depends on."""
        self.count += 1
        involved = (path, *also)
        if not any(overlaps(one, other) for one in involved for other in self.hidden):
            self.found.append((path, message))


def starts_with(path: KeyPath, prefix: KeyPath) -> bool:
    """Whether `path` is `prefix` or lies below it."""
    return path[: len(prefix)] == prefix


def overlaps(one: KeyPath, other: KeyPath) -> bool:
    """Whether one of two paths lies at or below the other."""
    return starts_with(one, other) or starts_with(other, one)


def nearest(given: str, known: Sequence[str]) -> str | None:
    """Return the one of `known` that `given` most likely means, if any is near."""
    lowered = {k.lower(): k for k in known}
    near = difflib.get_close_matches(given.lower(), lowered, n=1)
    return lowered[near[0]] if near else None


def did_you_mean(given: str, known: Sequence[str], *, listed: str = "known") -> str:
    """Return a hint at the nearest of `known`, or at all of them if none is near."""
    near = nearest(given, known)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"{listed}: {', '.join(known)}" if known else "there are none"
