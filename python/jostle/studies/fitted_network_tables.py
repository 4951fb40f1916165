"""Tables of the fitted network on a study's page: its values, and verdicts on claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jostle.results.text_table import Table
from jostle.studies.column import Evaluations
from jostle.studies.evaluate import ClaimRow
from jostle.studies.fitted_network import FittedNetwork
from jostle.studies.verdicts import count_text


def value_rows(fitted: FittedNetwork) -> Table:
    """Return the table of free parameters: description, range, value as described, fitted value."""
    header = ("free in the fit", "tried", "as described", "fitted")
    rows = ((v.text, v.tried, v.described, v.value) for v in fitted.values.values())
    return Table(header, tuple(rows))


def half_rows(fitted: FittedNetwork, evaluations: Evaluations) -> Table:
    """Return the verdicts on the claims used in the fit, and on the claims held out."""
    header = ("claims", "of the fit's half", "of the half held out")
    rows = []
    for column, evaluation in evaluations.items():
        by_half = claims_by_half(fitted.split_by_claim, evaluation.claims)
        rows.append((column.title, *map(count_text, by_half.values())))
    return Table(header, tuple(rows))


def claims_by_half(
    halves: Mapping[str, str], claims: Iterable[ClaimRow]
) -> dict[str, list[ClaimRow]]:
    """Return the claims of each subset."""
    every = list(claims)
    return {
        half: [row for row in every if halves.get(row.id) == half] for half in ("fit", "held out")
    }
