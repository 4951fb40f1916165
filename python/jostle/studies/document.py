"""An evaluation as the JSON document of `jostle study --json`, and as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.backends import BACKENDS
from jostle.results.formats import ABSENT
from jostle.stats import Estimate
from jostle.studies.evaluate import ClaimRow, Evaluation, NumberRow
from jostle.studies.findings import findings
from jostle.studies.study import Study
from jostle.studies.wording import digits, with_interval

Evaluations = Mapping[str, Evaluation]
"""By backend, in the order of the columns."""

TITLES = {name: row.title for name, row in BACKENDS.items()}
"""What results of a backend are called."""
SCHEMA = "jostle.study/1"
"""Name and version of the document. A key that goes or means something else makes it another."""
_SYMBOLS = {True: "yes", False: "no", None: ABSENT}


def document(done: Sequence[tuple[Study, Evaluations]]) -> dict[str, Any]:
    """Give every study with its claims and numbers as plain data, `jostle.study/1`.

    With one backend, each claim and number has its values at the top; with several, the first
    backend's are there and all are under `backends`.
    """
    return {
        "schema": SCHEMA,
        "studies": [_study(study, evaluations) for study, evaluations in done],
    }


def _study(study: Study, evaluations: Evaluations) -> dict[str, Any]:
    first = next(iter(evaluations.values()))
    return {
        "id": study.id,
        "claims": [
            {"id": row.id, "text": row.text}
            | _claim(row)
            | {"backends": {name: _claim(one.claims[at]) for name, one in evaluations.items()}}
            for at, row in enumerate(first.claims)
        ],
        "numbers": [
            {"id": row.id, "unit": row.unit, "published": row.published}
            | _number(row)
            | {"backends": {name: _number(one.numbers[at]) for name, one in evaluations.items()}}
            for at, row in enumerate(first.numbers)
        ],
        "findings": [
            {"figure": one.figure, "text": one.text} for one in findings(study.file, first)
        ],
        "rankings": [
            {"id": row.id, "published": row.published, "ours": row.ours, "holds": row.holds}
            for row in first.rankings
        ],
    }


def _claim(row: ClaimRow) -> dict[str, Any]:
    # The part that decides: the first that does not hold, or else the first.
    part = next((one for one in row.parts if one.holds is not True), row.parts[0])
    return {
        "published": part.relation,
        "ours": _finite(part.ours),
        "interval": _interval(part.ours),
        "holds": row.holds,
        "parts": [
            {
                "relation": one.relation,
                "ours": _finite(one.ours),
                "interval": _interval(one.ours),
                "holds": one.holds,
                "certain": one.certain,
            }
            for one in row.parts
        ],
    }


def _number(row: NumberRow) -> dict[str, Any]:
    return {"ours": row.ours.value, "interval": _interval(row.ours), "holds": row.holds}


def _finite(estimate: Estimate) -> float | None:
    """Value as JSON has it, which knows no infinite ratio to nothing."""
    value = estimate.value
    return None if value is None or math.isinf(value) else value


def _interval(estimate: Estimate) -> list[float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return [estimate.low, estimate.high]


def number_rows(evaluations: Evaluations) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the table of numbers: published, ours, difference, verdict.

    Without what nobody has published, if that is so of all of them.
    """
    every = next(iter(evaluations.values())).numbers
    compared = any(row.published is not None for row in every)
    header = ["number", "unit", *(["published"] if compared else [])]
    for name in evaluations:
        header += [TITLES[name], *(["difference", "holds"] if compared else [])]
    rows = []
    for at, first in enumerate(every):
        cells = [first.text, first.unit, *([_published(first)] if compared else [])]
        for one in evaluations.values():
            row = one.numbers[at]
            cells.append(with_interval(row.ours))
            if compared:
                cells += [_difference(row), _SYMBOLS[row.holds]]
        rows.append(tuple(cells))
    return tuple(header), rows


def _published(row: NumberRow) -> str:
    if row.published is None:
        return ABSENT
    sd = "" if row.published_sd is None else f" (sd {digits(row.published_sd)})"
    return digits(row.published) + sd


def claim_rows(evaluations: Evaluations) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the table of claims: what each asks for, ours, verdict."""
    header = ["claim", "asks for"]
    for name in evaluations:
        header += [TITLES[name], "holds"]
    rows = []
    for at, first in enumerate(next(iter(evaluations.values())).claims):
        cells = [first.text, "; ".join(part.relation for part in first.parts)]
        for one in evaluations.values():
            row = one.claims[at]
            sure = row.holds is None or all(part.certain for part in row.parts)
            ours = "; ".join(with_interval(part.ours, unit=True) for part in row.parts)
            cells += [ours, _SYMBOLS[row.holds] + ("" if sure else " (open)")]
        rows.append(tuple(cells))
    return tuple(header), rows


def ranking_rows(evaluations: Evaluations) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the table of orders."""
    header = ["order of", "published"]
    for name in evaluations:
        header += [TITLES[name], "holds"]
    rows = []
    for at, first in enumerate(next(iter(evaluations.values())).rankings):
        cells = [first.text, " > ".join(first.published)]
        for one in evaluations.values():
            row = one.rankings[at]
            ours = ABSENT if row.holds is None else " > ".join(row.ours)
            cells += [ours, _SYMBOLS[row.holds]]
        rows.append(tuple(cells))
    return tuple(header), rows


def _difference(row: NumberRow) -> str:
    if row.ours.value is None or row.published is None:
        return ABSENT
    if row.published == 0:
        return digits(row.ours.value)
    return f"{100 * (row.ours.value / row.published - 1):+.0f} %"
