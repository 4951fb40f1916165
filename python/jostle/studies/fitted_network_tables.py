"""Tables of the fitted network on a study's page: its values, and claims that hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jostle.results.text_table import Table
from jostle.studies.evaluate import ClaimRow
from jostle.studies.fitted_network import FittedNetwork
from jostle.studies.json_document import Evaluations, score


def value_rows(fitted: FittedNetwork) -> Table:
    """Return the table of free parameters: description, range, value as described, fitted value."""
    header = ("free in the fit", "tried", "as described", "fitted")
    rows = ((v.text, v.tried, v.described, v.value) for v in fitted.values.values())
    return Table(header, tuple(rows))


def half_rows(fitted: FittedNetwork, evaluations: Evaluations) -> Table:
    """Return the table of claims that hold, for claims used in the fit and claims held out."""
    header = ("claims that hold", "of the fit's half", "of the half held out")
    rows = []
    for column, evaluation in evaluations.items():
        held = score_by_half(fitted.split_by_claim, evaluation.claims)
        cells = (f"{held[half][0]} of {held[half][1]}" for half in ("fit", "held out"))
        rows.append((column.title, *cells))
    return Table(header, tuple(rows))


def score_by_half(
    halves: Mapping[str, str], claims: Iterable[ClaimRow]
) -> dict[str, tuple[int, int]]:
    """Return how many claims of each subset hold, of those that could be judged."""
    every = list(claims)
    return {
        half: score([row for row in every if halves.get(row.id) == half])
        for half in ("fit", "held out")
    }
