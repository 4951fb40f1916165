"""Verdicts on claims: in each setup, and over all setups of the paper's network.

A run judges a setup, not a paper. In a setup a claim holds, fails, or is open because the
confidence interval allows both. If a setup also ran on Linux and Linux gives a verdict, then
Linux's verdict counts, because the testbed ran Linux. The fitted network is no plausible setup: it
was selected by the claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jostle.backends.registry import DEFAULT
from jostle.results.expectation_text import VERDICT_WORDS
from jostle.results.number_format import estimate_text
from jostle.stats.expectation import Verdict
from jostle.studies.column import Column, Evaluations, by_setup
from jostle.studies.evaluate import ClaimRow
from jostle.studies.findings import filled

EVERY: Final = "holds in every plausible setup"
DEPENDS: Final = "depends on the setup"
NONE: Final = "fails in every plausible setup"
OPEN: Final = "open"
UNKNOWN: Final = "could not be judged"
_IN_SHORT: Final = {
    EVERY: ("holds", "hold", "in every plausible setup"),
    DEPENDS: ("depends", "depend", "on the setup"),
    NONE: ("fails", "fail", "in every plausible setup"),
    OPEN: ("is", "are", "open"),
    UNKNOWN: ("could", "could", "not be judged"),
}
"""Classes in the order of display: the verb for one claim and for several, and the rest."""


@dataclass(frozen=True)
class ClaimResult:
    """Result of a claim in a column.

    Attributes
    ----------
    column
        Title of the column.
    verdict
        Verdict on the claim; None if it could not be judged.
    text
        The decisive number, and the required relation if another comparison decides than in the
        first column.
    """

    column: str
    verdict: Verdict | None
    text: str

    @property
    def word(self) -> str:
        """The verdict in tables."""
        return VERDICT_WORDS[self.verdict]


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its results.

    Attributes
    ----------
    id, text, asked
        Name, the claim, and the required relation.
    title
        Class over all plausible setups.
    supporting, contradicting, open
        Titles of the setups in which it holds, fails and is open.
    results
        Results of every column.
    reason
        Explanation if it does not hold in our runs; may be empty.
    """

    id: str
    text: str
    asked: str
    title: str
    supporting: tuple[str, ...]
    contradicting: tuple[str, ...]
    open: tuple[str, ...]
    results: tuple[ClaimResult, ...]
    reason: str

    @property
    def distinct_results(self) -> list[ClaimResult]:
        """Results in which columns with equal ones are joined, such as `as described, fades`."""
        columns: dict[tuple[Verdict | None, str], list[str]] = {}
        for one in self.results:
            columns.setdefault((one.verdict, one.text), []).append(one.column)
        return [
            ClaimResult(", ".join(names), verdict, text)
            for (verdict, text), names in columns.items()
        ]


@dataclass(frozen=True)
class Group:
    """Claims of the same class."""

    title: str
    verdicts: tuple[ClaimVerdict, ...]


def claim_verdicts(evaluations: Evaluations) -> list[ClaimVerdict]:
    """Return the verdicts on the claims of a study, in their order."""
    first = next(iter(evaluations))
    named = by_setup(evaluations, first.backend)
    found = []
    for at, claim in enumerate(evaluations[first].claims):
        rows = {column: each.claims[at] for column, each in evaluations.items()}
        setups = _by_setup(rows)
        found.append(
            ClaimVerdict(
                claim.id,
                claim.text,
                claim.decisive.relation,
                _title(set(setups.values())),
                _with(setups, "holds"),
                _with(setups, "fails"),
                _with(setups, "open"),
                tuple(_claim_result(column, row, claim.deciding) for column, row in rows.items()),
                filled(claim.finding, first.setup, named),
            )
        )
    return found


def grouped(verdicts: Iterable[ClaimVerdict]) -> list[Group]:
    """Group claims by class, without empty groups."""
    every = list(verdicts)
    groups = [
        Group(title, tuple(one for one in every if one.title == title)) for title in _IN_SHORT
    ]
    return [one for one in groups if one.verdicts]


def in_short(groups: Sequence[Group], setups: int) -> str:
    """Return a sentence with the number of claims in each class, over a number of setups."""
    total = sum(len(group.verdicts) for group in groups)
    parts = []
    for group in groups:
        one, several, rest = _IN_SHORT[group.title]
        if setups == 1:
            rest = rest.removesuffix("in every plausible setup").strip()
        n = len(group.verdicts)
        parts.append(f"{n} {one if n == 1 else several} {rest}".strip())
    plural = "s" if total != 1 else ""
    return f"Of {total} claim{plural} in {setups} setup{'s' * (setups != 1)}: {', '.join(parts)}."


def plausible_setups(columns: Iterable[Column]) -> list[str]:
    """Return the ids of the setups that verdicts are formed over, in the order of the columns."""
    return list(dict.fromkeys(one.setup for one in columns if not one.is_fitted))


def _by_setup(rows: Mapping[Column, ClaimRow]) -> dict[str, Verdict | None]:
    """Return the verdict in each plausible setup, by its title."""
    found: dict[str, Verdict | None] = {}
    for setup in plausible_setups(rows):
        columns = [one for one in rows if one.setup == setup]
        # Linux first: its verdict counts if it gives one.
        columns.sort(key=lambda one: one.backend == DEFAULT)
        known = [rows[one].verdict for one in columns if rows[one].verdict is not None]
        certain = [one for one in known if one != "open"]
        found[columns[-1].setup_title] = next(iter([*certain, *known]), None)
    return found


def _title(verdicts: set[Verdict | None]) -> str:
    if {"holds", "fails"} <= verdicts:
        return DEPENDS
    if "open" in verdicts:
        return OPEN
    return EVERY if "holds" in verdicts else NONE if "fails" in verdicts else UNKNOWN


def _with(setups: Mapping[str, Verdict | None], wanted: str) -> tuple[str, ...]:
    return tuple(title for title, verdict in setups.items() if verdict == wanted)


def _claim_result(column: Column, row: ClaimRow, first_part: int) -> ClaimResult:
    text = estimate_text(row.decisive.ours, unit=True)
    if row.deciding != first_part:
        text += f", asked for {row.decisive.relation}"
    return ClaimResult(column.title, row.verdict, text)


def verdict_counts(claims: Iterable[ClaimRow]) -> dict[str, int]:
    """Return how many claims have each verdict."""
    counts = Counter(row.verdict for row in claims)
    names: tuple[Verdict | None, ...] = ("holds", "fails", "open", None)
    return {name or "not judged": counts[name] for name in names}


def count_text(claims: Iterable[ClaimRow]) -> str:
    """Return how many claims hold, fail and are open, such as `9 hold, 8 fail, 6 open`."""
    words = {"holds": "hold", "fails": "fail"}
    counts = verdict_counts(claims).items()
    return ", ".join(f"{n} {words.get(name, name)}" for name, n in counts if n) or "none"
