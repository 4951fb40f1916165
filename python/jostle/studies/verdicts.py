"""What of a paper holds, and why not: its claims by what was found, each with its reason.

A claim stands in one group. What Linux did decides before what another reading would give, because
a testbed runs Linux too: where it contradicts a claim in the set-up as described, the set-up was
another one, which a reading may show, or the claim is not about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jostle.backends.registry import DEFAULT
from jostle.studies.document import Column, Evaluations, by_reading
from jostle.studies.evaluate import ClaimRow
from jostle.studies.findings import filled
from jostle.studies.fitted import FITTED
from jostle.studies.wording import with_interval

HOLDS = "Holds on the testbed's terms"
BY_READING = "Holds if the set-up is read in another way"
BY_FIT = "Holds in the fitted network only"
LINUX = "Linux itself contradicts it"
LINUX_ONLY = "Holds on Linux, not in the simulator"
NOT = "Does not hold"
BY_NONE = "Does not hold by any reading"
UNKNOWN = "Could not be judged"


@dataclass(frozen=True)
class Answer:
    """What runs of a column say of a claim.

    Attributes
    ----------
    column
        Title of the column.
    holds
        Whether the claim holds; None where no run can tell.
    text
        The number that decides, and what it was asked for where that is another part of the claim
        than for the first column.
    open
        Whether the interval allows the other answer as well.
    """

    column: str
    holds: bool | None
    text: str
    open: bool


@dataclass(frozen=True)
class Verdict:
    """A claim with what is said of it.

    Attributes
    ----------
    text, asked
        The claim, and what it asks for.
    answers
        Of every column.
    reason
        What our runs show where it does not hold, and why; may be empty.
    """

    text: str
    asked: str
    answers: tuple[Answer, ...]
    reason: str


@dataclass(frozen=True)
class Group:
    """Claims of which the same was found."""

    title: str
    verdicts: tuple[Verdict, ...]


def verdicts(evaluations: Evaluations) -> list[Group]:
    """Sort the claims of a study; groups that no claim is in are left out."""
    first = next(iter(evaluations))
    named = by_reading(evaluations, first.backend)
    several = len({one.reading for one in evaluations if one.backend == first.backend}) > 1
    found: dict[str, list[Verdict]] = {
        title: [] for title in (HOLDS, LINUX, LINUX_ONLY, BY_READING, BY_FIT, BY_NONE, NOT, UNKNOWN)
    }
    for at, claim in enumerate(evaluations[first].claims):
        rows = {column: each.claims[at] for column, each in evaluations.items()}
        at_part = _deciding(claim)
        verdict = Verdict(
            claim.text,
            claim.parts[at_part].relation,
            tuple(_answer(column, row, at_part) for column, row in rows.items()),
            filled(claim.finding, first.reading, named),
        )
        title = _title(rows)
        found[BY_NONE if several and title == NOT else title].append(verdict)
    return [Group(title, tuple(each)) for title, each in found.items() if each]


def in_short(groups: Sequence[Group]) -> str:
    """Count the claims of each group, in a sentence."""
    total = sum(len(group.verdicts) for group in groups)
    words = {
        HOLDS: "hold as described",
        LINUX: "are contradicted by Linux itself",
        LINUX_ONLY: "hold on Linux only",
        BY_READING: "hold by another reading of the set-up",
        BY_FIT: "hold in the fitted network only",
        BY_NONE: "hold by no reading",
        NOT: "do not hold",
        UNKNOWN: "could not be judged",
    }
    parts = [f"{len(group.verdicts)} {words[group.title]}" for group in groups]
    if total == 1:
        parts = [groups[0].title.lower()]
    return f"Of {total} claim{'s' * (total != 1)}: {', '.join(parts)}."


def _title(rows: Mapping[Column, ClaimRow]) -> str:
    first, plain = next(iter(rows.items()))
    linux = [row.holds for column, row in rows.items() if _is_linux(column, first)]
    if False in linux:
        return LINUX
    if plain.holds:
        return HOLDS
    if True in linux:
        return LINUX_ONLY
    readings = {
        one.reading for one, row in rows.items() if row.holds and one.backend == first.backend
    }
    if readings:
        return BY_FIT if readings == {FITTED} else BY_READING
    return UNKNOWN if plain.holds is None else NOT


def _is_linux(column: Column, first: Column) -> bool:
    """Whether a column is what Linux did in the set-up of the first."""
    return column.backend != DEFAULT and column.reading == first.reading


def _answer(column: Column, row: ClaimRow, first_part: int) -> Answer:
    at = _deciding(row)
    part = row.parts[at]
    text = with_interval(part.ours, unit=True)
    if at != first_part:
        text += f", asked for {part.relation}"
    certain = row.holds is None or all(one.certain for one in row.parts)
    return Answer(column.title, row.holds, text, not certain)


def _deciding(row: ClaimRow) -> int:
    """Position of the first part that does not hold, or else of the first."""
    return next((at for at, part in enumerate(row.parts) if part.holds is not True), 0)
