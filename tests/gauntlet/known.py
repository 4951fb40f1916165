"""Known exceptions to the invariants, and their comparison with what was found."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Self

from gauntlet.cases import FOLDER, SITUATIONS, TRANSPORTS, Case, rows
from gauntlet.execution import Verdict
from gauntlet.invariants import INVARIANTS, RUN_ENDS

__all__ = ["KnownException", "known_exceptions", "stale", "unexpected"]

_FILE: Final = FOLDER / "exceptions.toml"


@dataclass(frozen=True)
class KnownException:
    """Violations that a design or a standard implies.

    Attributes
    ----------
    rows, transports, situations, invariants
        Patterns of names.
    reason, source
        Why the invariant does not hold, and the paper, code or measurement that says so.
    message
        Part of the description of the violation.
    nightly
        Whether the full product alone shows it.
    """

    rows: tuple[str, ...]
    situations: tuple[str, ...]
    invariants: tuple[str, ...]
    reason: str
    source: str
    transports: tuple[str, ...] = TRANSPORTS
    message: str = ""
    nightly: bool = False

    @classmethod
    def of_table(cls, table: dict[str, list[str] | str | bool]) -> Self:
        """Create an exception from a table of the file."""
        values = {name: tuple(x) if isinstance(x, list) else x for name, x in table.items()}
        return cls(**values)  # type: ignore[arg-type]

    def covers(self, case: Case, invariant: str, message: str) -> bool:
        """Return whether the exception allows a violation."""
        return (
            self.message in message
            and _matches(case.row, self.rows)
            and case.transport in self.transports
            and _matches(case.kind, self.situations)
            and invariant in self.invariants
        )

    def names(self, case: Case) -> bool:
        """Return whether the exception names the row and the situation of a case."""
        return (
            case.row in self.rows
            and case.transport in self.transports
            and case.kind in self.situations
        )

    def mistakes(self) -> Iterator[str]:
        """Yield what names nothing, and texts that are missing."""
        for names, patterns in [
            (rows(), self.rows),
            (TRANSPORTS, self.transports),
            (SITUATIONS, self.situations),
            ([*INVARIANTS, RUN_ENDS], self.invariants),
        ]:
            for pattern in patterns:
                if not any(fnmatchcase(name, pattern) for name in names):
                    yield f"{pattern!r} names nothing"
        if not (self.reason and self.source):
            yield f"{self.rows} has no reason or no source"


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def known_exceptions() -> list[KnownException]:
    """Return the exceptions of the data file."""
    tables = tomllib.loads(_FILE.read_text("utf-8"))["exceptions"]
    return [KnownException.of_table(table) for table in tables]


def unexpected(verdicts: Iterable[Verdict], known: Sequence[KnownException]) -> Iterator[str]:
    """Yield each violation that no exception covers, with the scenario that repeats it."""
    for verdict in verdicts:
        wrong = [
            f"{invariant}: {message}"
            for invariant, message in verdict.violations.items()
            if not any(one.covers(verdict.case, invariant, message) for one in known)
        ]
        if wrong:
            texts = "\n".join(wrong)
            yield f"{verdict.case}\n{texts}\nSave in {FOLDER.name}/ and run:\n{verdict.case.toml}"


def stale(verdicts: Sequence[Verdict], known: Iterable[KnownException]) -> Iterator[str]:
    """Yield each part of an exception without a violation: a row over one of the transports.

    A pattern with an asterisk needs one violation, a name and a transport one each.
    """
    found = [
        (verdict.case, invariant, message)
        for verdict in verdicts
        for invariant, message in verdict.violations.items()
    ]
    for one in known:
        covered = [case for case, *rest in found if one.covers(case, *rest)]
        for pattern in one.rows:
            for transport in one.transports:
                seen = any(
                    fnmatchcase(case.row, pattern) and case.transport == transport
                    for case in covered
                )
                if not seen:
                    yield f"{pattern} over {transport} in {one.situations}: {one.invariants}"
