"""What a study's page shows of the fitted network: its values, and what holds of each half."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jostle.studies.document import Evaluations, Table, score
from jostle.studies.evaluate import ClaimRow
from jostle.studies.fitted import Fitted


def value_rows(fitted: Fitted) -> Table:
    """Table of what was free: what it is, what was tried, what is described, what was found."""
    header = ("free in the fit", "tried", "as described", "fitted")
    return header, [(v.text, v.tried, v.described, v.value) for v in fitted.values.values()]


def half_rows(fitted: Fitted, evaluations: Evaluations) -> Table:
    """Table of columns: how many claims hold of those that the fit saw, and of those held out."""
    header = ("claims that hold", "of the fit's half", "of the half held out")
    rows = []
    for column, evaluation in evaluations.items():
        held = score_by_half(fitted.halves, evaluation.claims)
        cells = (f"{held[half][0]} of {held[half][1]}" for half in ("fit", "held out"))
        rows.append((column.title, *cells))
    return header, rows


def score_by_half(
    halves: Mapping[str, str], claims: Iterable[ClaimRow]
) -> dict[str, tuple[int, int]]:
    """How many claims of each half hold, of those that could be judged."""
    every = list(claims)
    return {
        half: score([row for row in every if halves.get(row.id) == half])
        for half in ("fit", "held out")
    }
