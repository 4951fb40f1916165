"""An evaluation as the JSON document of `jostle study run --json`, and as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.backends import BACKENDS
from jostle.backends.registry import DEFAULT
from jostle.results.number_format import ABSENT
from jostle.stats import Estimate
from jostle.studies.evaluate import ClaimRow, Evaluation, NumberRow, decisive
from jostle.studies.findings import Readings, findings, learned
from jostle.studies.fitted_network import document as fitted_document
from jostle.studies.number_text import digits, with_interval
from jostle.studies.study import DESCRIBED, LINUX, Study


@dataclass(frozen=True)
class Column:
    """A column next to the published numbers: runs of a backend with one setup.

    Attributes
    ----------
    backend, reading
        Names of backend and setup.
    title
        Title of the column.
    kept
        For recorded results: version of the backend, date and file. Empty for runs.
    """

    backend: str
    reading: str
    title: str
    kept: str = ""


Evaluations = Mapping[Column, Evaluation]
"""In the order of the columns."""

TITLES = {name: row.title for name, row in BACKENDS.items()}
"""Titles of the backends."""
SCHEMA = "jostle.study/2"
"""Name and version of the document. Removing or redefining a key requires a new version."""
_SYMBOLS = {True: "yes", False: "no", None: ABSENT}


def column(study: Study, backend: str, reading: str) -> Column:
    """Return the column of a backend's runs with a setup."""
    file = study.file
    if not file.setups:
        return Column(backend, reading, TITLES[backend])
    titles = {DESCRIBED: file.described} | {one.id: one.title for one in file.setups}
    if backend == DEFAULT:
        return Column(backend, reading, titles[reading])
    if reading == DESCRIBED:
        return Column(backend, reading, TITLES[backend])
    return Column(backend, reading, f"{titles[reading]}, {TITLES[backend]}")


def by_reading(evaluations: Evaluations, backend: str) -> Readings:
    """Return the evaluations of a backend by setup, and Linux's evaluation as described."""
    found = {one.reading: each for one, each in evaluations.items() if one.backend == backend}
    for one, each in evaluations.items():
        if (one.backend, one.reading) == ("kernel", DESCRIBED):
            found[LINUX] = each
    return found


def score(claims: Sequence[ClaimRow]) -> tuple[int, int]:
    """Return how many claims hold, of those that could be judged."""
    judged = [row.holds for row in claims if row.holds is not None]
    return sum(judged), len(judged)


def document(
    done: Sequence[tuple[Study, Evaluations]],
    versions: Mapping[str, str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return every study with its claims and numbers as plain data, `jostle.study/2`.

    Claims and numbers contain the values of the first column at the top level. `backends` contains
    the values of every backend as described (or with the first requested setup), and `readings`
    the values of `setups`. `versions` are the versions of the backends that ran. `points` are the
    operating points of Linux's flows by study; see `operating_points_archive.py`.
    """
    return {
        "schema": SCHEMA,
        "studies": [
            _study(study, evaluations)
            | {"versions": dict(versions), "points": list(points.get(study.id, ()))}
            for study, evaluations in done
        ],
    }


def _study(study: Study, evaluations: Evaluations) -> dict[str, Any]:
    first_column, first = next(iter(evaluations.items()))
    plain = {
        one.backend: each
        for one, each in reversed(list(evaluations.items()))
    }  # fmt: skip

    def everywhere(values: Any) -> dict[str, Any]:
        found: dict[str, dict[str, Any]] = {}
        for one, each in evaluations.items():
            found.setdefault(one.reading, {})[one.backend] = values(each)
        backends = {one.backend: values(plain[one.backend]) for one in evaluations}
        return {"backends": backends, "setups": found}

    named = by_reading(evaluations, first_column.backend)
    return {
        "id": study.id,
        "learned": learned(study.file, first_column.reading, named),
        "setups": [
            {
                "id": one.reading,
                "backend": one.backend,
                "title": one.title,
                "claims": score(each.claims),
            }
            for one, each in evaluations.items()
        ],
        "claims": [
            {"id": row.id, "text": row.text}
            | _claim(row)
            | everywhere(lambda each, at=at: _claim(each.claims[at]))
            for at, row in enumerate(first.claims)
        ],
        "numbers": [
            {"id": row.id, "unit": row.unit, "published": row.published}
            | _number(row)
            | everywhere(lambda each, at=at: _number(each.numbers[at]))
            for at, row in enumerate(first.numbers)
        ],
        "findings": [
            {"figure": one.figure, "text": one.text}
            for one in findings(study.file, first_column.reading, named)
        ],
        "rankings": [
            {"id": row.id, "published": row.published, "ours": row.ours, "holds": row.holds}
            for row in first.rankings
        ],
        "fitted": None if study.fitted is None else fitted_document(study.fitted),
    }


def _claim(row: ClaimRow) -> dict[str, Any]:
    part = decisive(row)
    return {
        "published": part.relation,
        "ours": _finite(part.ours),
        "interval": _interval(part.ours),
        "incomplete": part.ours.incomplete or None,
        "holds": row.holds,
        "parts": [
            {
                "relation": one.relation,
                "ours": _finite(one.ours),
                "interval": _interval(one.ours),
                "incomplete": one.ours.incomplete or None,
                "holds": one.holds,
                "certain": one.certain,
            }
            for one in row.parts
        ],
    }


def _number(row: NumberRow) -> dict[str, Any]:
    return {
        "ours": row.ours.value,
        "interval": _interval(row.ours),
        "incomplete": row.ours.incomplete or None,
        "holds": row.holds,
    }


def _finite(estimate: Estimate) -> float | None:
    """Return the value for JSON, in which an infinite ratio becomes null."""
    value = estimate.value
    return None if value is None or math.isinf(value) else value


def _interval(estimate: Estimate) -> list[float] | None:
    if estimate.low is None or estimate.high is None:
        return None
    return [estimate.low, estimate.high]


Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Header and rows."""


def reading_rows(study: Study, evaluations: Evaluations) -> Table:
    """Return the table of setups: how many claims hold with each, and its evidence."""
    if not study.file.setups:
        return ("setup", "claims that hold"), []
    said = {one.id: one for one in study.file.setups}
    rows: list[tuple[str, ...]] = []
    for one, evaluation in evaluations.items():
        held, judged = score(evaluation.claims)
        reading = said.get(one.reading)
        text = "the set-up as the scenarios have it" if reading is None else reading.text
        support = () if reading is None else reading.support
        quotes = "; ".join(f"“{each.quote}” ({each.source})" for each in support)
        rows.append((one.title, f"{held} of {judged}", text, quotes or ABSENT))
    return ("setup", "claims that hold", "what it changes", "what supports it"), rows


def number_rows(evaluations: Evaluations) -> Table:
    """Return the table of numbers: published, ours, difference, verdict.

    The published column is omitted if no number is published, and differences are omitted if there
    are more than two evaluations.
    """
    every = next(iter(evaluations.values())).numbers
    compared = any(row.published is not None for row in every)
    few = len(evaluations) <= 2
    header = ["number", "unit", *(["published"] if compared else [])]
    for one in evaluations:
        header += [one.title, *(["difference"] if compared and few else [])]
        header += ["holds"] if compared else []
    rows = []
    for at, first in enumerate(every):
        cells = [first.text, first.unit, *([_published(first)] if compared else [])]
        for evaluation in evaluations.values():
            row = evaluation.numbers[at]
            cells.append(with_interval(row.ours))
            if compared:
                cells += [*([_difference(row)] if few else []), _SYMBOLS[row.holds]]
        rows.append(tuple(cells))
    return tuple(header), rows


def _published(row: NumberRow) -> str:
    if row.published is None:
        return ABSENT
    sd = "" if row.published_sd is None else f" (sd {digits(row.published_sd)})"
    return digits(row.published) + sd


def claim_rows(evaluations: Evaluations, halves: Mapping[str, str]) -> Table:
    """Return the table of claims: required relation, ours, verdict.

    With `halves`, by id, it also shows which claims were used in the fit of the testbed.
    """
    header = ["claim", *(["half"] if halves else []), "asks for"]
    for one in evaluations:
        header += [one.title, "holds"]
    rows = []
    for at, first in enumerate(next(iter(evaluations.values())).claims):
        cells = [first.text, *([halves.get(first.id, ABSENT)] if halves else [])]
        cells.append("; ".join(part.relation for part in first.parts))
        for evaluation in evaluations.values():
            row = evaluation.claims[at]
            sure = row.holds is None or all(part.certain for part in row.parts)
            ours = "; ".join(with_interval(part.ours, unit=True) for part in row.parts)
            cells += [ours, _SYMBOLS[row.holds] + ("" if sure else " (open)")]
        rows.append(tuple(cells))
    return tuple(header), rows


def ranking_rows(evaluations: Evaluations) -> Table:
    """Return the table of rankings."""
    header = ["order of", "published"]
    for one in evaluations:
        header += [one.title, "holds"]
    rows = []
    for at, first in enumerate(next(iter(evaluations.values())).rankings):
        cells = [first.text, " > ".join(first.published)]
        for evaluation in evaluations.values():
            row = evaluation.rankings[at]
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
