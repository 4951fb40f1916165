"""Setups whose values a search chose: how many claims hold that the search did not use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jostle.results.text_table import Table
from jostle.studies.column import Column, Evaluations
from jostle.studies.models import Setup, StudyFile
from jostle.studies.verdicts import count_text

USED: Final = "fit"
HELD_OUT: Final = "held out"


def fitted_setup(file: StudyFile) -> Setup | None:
    """Return the setup whose values a search chose; None if the study has none."""
    return next((one for one in file.setups if one.is_fitted), None)


def claim_split(file: StudyFile) -> dict[str, str]:
    """Return for each claim, by id, whether the search used it; empty without a fitted setup."""
    setup = fitted_setup(file)
    if setup is None:
        return {}
    return dict.fromkeys(setup.fitted_to, USED) | dict.fromkeys(setup.held_out, HELD_OUT)


def half_rows(file: StudyFile, evaluations: Evaluations) -> Table:
    """Return the verdicts on the claims used by the fit, and on the claims held out."""
    of = claim_split(file)
    rows = []
    for column, evaluation in evaluations.items() if of else ():
        counts = (
            count_text([row for row in evaluation.claims if of.get(row.id) == half])
            for half in (USED, HELD_OUT)
        )
        rows.append((column.title, *counts))
    return Table(("claims", "used by the fit", "held out"), tuple(rows))


def fit_sentence(file: StudyFile, evaluations: Evaluations) -> str:
    """Compare the fitted setup with the best other one by the claims held out; "" without both."""
    tests = {claim for claim, half in claim_split(file).items() if half == HELD_OUT}
    held: Mapping[Column, int] = {
        column: sum(row.verdict == "holds" for row in evaluation.claims if row.id in tests)
        for column, evaluation in evaluations.items()
    }
    fitted = next((one for one in held if one.is_fitted), None)
    others = [one for one in held if not one.is_fitted]
    if fitted is None or not others:
        return ""
    best = max(others, key=lambda one: held[one])
    said = "The fit explains more" if held[fitted] > held[best] else "The fit explains no more"
    return (
        f"Of {len(tests)} claims that the fit did not use, {held[fitted]} hold in the setup "
        f"{fitted.setup_title} and {held[best]} in the best other setup, {best.title}. {said}."
    )
