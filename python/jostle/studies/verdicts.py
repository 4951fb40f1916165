"""Claims of a paper, grouped by their verdict, each with the reason.

A claim is in one group. The result on Linux takes precedence over other setups, because a testbed
also runs Linux: if Linux contradicts a claim with the setup as described, then either the testbed
had another setup, which another column may show, or the claim does not depend on the setup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jostle.backends.registry import DEFAULT
from jostle.results.number_format import estimate_text
from jostle.studies.evaluate import ClaimRow
from jostle.studies.findings import filled
from jostle.studies.fitted_network import FITTED
from jostle.studies.json_document import Column, Evaluations, by_reading

HOLDS = "Holds on the testbed's terms"
HOLDS_IN_OTHER_SETUP = "Holds in another setup"
BY_FIT = "Holds in the fitted network only"
LINUX_CONTRADICTS = "Linux itself contradicts it"
LINUX_ONLY = "Holds on Linux, not in the simulator"
NOT = "Does not hold"
HOLDS_IN_NO_SETUP = "Does not hold in any setup"
UNKNOWN = "Could not be judged"
_GROUPS: Final = {
    HOLDS: "hold as described",
    LINUX_CONTRADICTS: "are contradicted by Linux itself",
    LINUX_ONLY: "hold on Linux only",
    HOLDS_IN_OTHER_SETUP: "hold in another setup",
    BY_FIT: "hold in the fitted network only",
    HOLDS_IN_NO_SETUP: "hold in no setup",
    NOT: "do not hold",
    UNKNOWN: "could not be judged",
}
"""Groups in the order of display, and what a sentence says of their claims."""


@dataclass(frozen=True)
class ClaimResult:
    """Result of a claim in a column.

    Attributes
    ----------
    column
        Title of the column.
    holds
        Whether the claim holds; None if that is unknown.
    text
        The decisive number, and the required relation if another comparison decides than in the
        first column.
    open
        Whether the confidence interval also allows the opposite.
    """

    column: str
    holds: bool | None
    text: str
    open: bool


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its results.

    Attributes
    ----------
    text, asked
        The claim, and the required relation.
    answers
        Results of every column.
    reason
        Explanation if it does not hold in our runs; may be empty.
    """

    text: str
    asked: str
    answers: tuple[ClaimResult, ...]
    reason: str


@dataclass(frozen=True)
class Group:
    """Claims with the same verdict."""

    title: str
    verdicts: tuple[ClaimVerdict, ...]


def verdicts(evaluations: Evaluations) -> list[Group]:
    """Group the claims of a study by verdict, without empty groups."""
    first = next(iter(evaluations))
    named = by_reading(evaluations, first.backend)
    several = len({one.reading for one in evaluations if one.backend == first.backend}) > 1
    found: dict[str, list[ClaimVerdict]] = {title: [] for title in _GROUPS}
    for at, claim in enumerate(evaluations[first].claims):
        rows = {column: each.claims[at] for column, each in evaluations.items()}
        verdict = ClaimVerdict(
            claim.text,
            claim.decisive.relation,
            tuple(_claim_result(column, row, claim.deciding) for column, row in rows.items()),
            filled(claim.finding, first.reading, named),
        )
        title = _title(rows)
        found[HOLDS_IN_NO_SETUP if several and title == NOT else title].append(verdict)
    return [Group(title, tuple(each)) for title, each in found.items() if each]


def in_short(groups: Sequence[Group]) -> str:
    """Return a sentence with the number of claims in each group."""
    total = sum(len(group.verdicts) for group in groups)
    parts = [f"{len(group.verdicts)} {_GROUPS[group.title]}" for group in groups]
    if total == 1:
        parts = [groups[0].title.lower()]
    return f"Of {total} claim{'s' * (total != 1)}: {', '.join(parts)}."


def _title(rows: Mapping[Column, ClaimRow]) -> str:
    first, plain = next(iter(rows.items()))
    linux = [row.holds for column, row in rows.items() if _is_linux(column, first)]
    if False in linux:
        return LINUX_CONTRADICTS
    if plain.holds:
        return HOLDS
    if True in linux:
        return LINUX_ONLY
    readings = {
        one.reading for one, row in rows.items() if row.holds and one.backend == first.backend
    }
    if readings:
        return BY_FIT if readings == {FITTED} else HOLDS_IN_OTHER_SETUP
    return UNKNOWN if plain.holds is None else NOT


def _is_linux(column: Column, first: Column) -> bool:
    """Return whether a column contains results of Linux with the first column's setup."""
    return column.backend != DEFAULT and column.reading == first.reading


def _claim_result(column: Column, row: ClaimRow, first_part: int) -> ClaimResult:
    text = estimate_text(row.decisive.ours, unit=True)
    if row.deciding != first_part:
        text += f", asked for {row.decisive.relation}"
    return ClaimResult(column.title, row.holds, text, row.holds is not None and not row.certain)
