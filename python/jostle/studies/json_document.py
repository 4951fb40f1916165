"""An evaluation as the JSON document of `jostle study run --json`, and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from jostle.backends import BACKENDS
from jostle.backends.registry import DEFAULT
from jostle.results.expectation_text import (
    YES_OR_NO,
    expectation_cells,
    expectation_entry,
)
from jostle.results.number_format import ABSENT, digits, estimate_text
from jostle.results.text_table import VERDICT, Table
from jostle.studies.evaluate import ClaimRow, Evaluation, NumberRow
from jostle.studies.findings import Readings, findings, learned
from jostle.studies.fitted_network import document as fitted_document
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
            {"id": row.id, "unit": row.ours.unit, "published": row.published}
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


_PART: Final = "relation ours interval incomplete holds certain"


def _claim(row: ClaimRow) -> dict[str, Any]:
    return {
        "published": row.decisive.relation,
        **expectation_entry(row.decisive, "ours interval incomplete"),
        "holds": row.holds,
        "parts": [expectation_entry(part, _PART) for part in row.parts],
    }


def _number(row: NumberRow) -> dict[str, Any]:
    return {
        "ours": row.ours.finite,
        "interval": row.ours.interval,
        "incomplete": row.ours.incomplete or None,
        "holds": row.holds,
    }


def reading_rows(study: Study, evaluations: Evaluations) -> Table:
    """Return the table of setups: how many claims hold with each, and its evidence."""
    if not study.file.setups:
        return Table((), ())
    said = {one.id: one for one in study.file.setups}
    rows: list[tuple[str, ...]] = []
    for one, evaluation in evaluations.items():
        held, judged = score(evaluation.claims)
        reading = said.get(one.reading)
        text = "the set-up as the scenarios have it" if reading is None else reading.text
        support = () if reading is None else reading.support
        quotes = "; ".join(f"“{each.quote}” ({each.source})" for each in support)
        rows.append((one.title, f"{held} of {judged}", text, quotes or ABSENT))
    header = ("setup", "claims that hold", "what it changes", "what supports it")
    return Table(header, tuple(rows))


Row = TypeVar("Row")


def _side_by_side(
    evaluations: Evaluations,
    rows: Callable[[Evaluation], Sequence[Row]],
    first: Mapping[str, Callable[[Row], str]],
    after: Sequence[str],
    cells: Callable[[Row], Sequence[str]],
) -> Table:
    """Return a table with columns of every evaluation: `cells` below its title and `after`."""
    titles = [name for one in evaluations for name in (one.title, *after)]
    lines: list[tuple[str, ...]] = []
    for alike in zip(*(rows(evaluation) for evaluation in evaluations.values()), strict=True):
        leading = [text(alike[0]) for text in first.values()]
        lines.append((*leading, *(cell for row in alike for cell in cells(row))))
    return Table((*first, *titles), tuple(lines))


def number_rows(evaluations: Evaluations) -> Table:
    """Return the table of numbers: published, ours, difference, verdict.

    The published column is omitted if no number is published, and differences are omitted if there
    are more than two evaluations.
    """
    every = next(iter(evaluations.values())).numbers
    compared = any(row.published is not None for row in every)
    differences = compared and len(evaluations) <= 2

    def cells(row: NumberRow) -> Iterator[str]:
        yield estimate_text(row.ours)
        yield from [_difference(row)] if differences else []
        yield from [YES_OR_NO[row.holds]] if compared else []

    return _side_by_side(
        evaluations,
        lambda each: each.numbers,
        {"number": lambda row: row.text, "unit": lambda row: row.ours.unit}
        | ({"published": _published} if compared else {}),
        [*(["difference"] if differences else []), *([VERDICT] if compared else [])],
        lambda row: list(cells(row)),
    )


def _published(row: NumberRow) -> str:
    if row.published is None:
        return ABSENT
    sd = "" if row.published_sd is None else f" (sd {digits(row.published_sd)})"
    return digits(row.published) + sd


def claim_rows(evaluations: Evaluations, halves: Mapping[str, str]) -> Table:
    """Return the table of claims: required relation, ours, verdict.

    With `halves`, by id, it also shows which claims were used in the fit of the testbed.
    """
    half: dict[str, Callable[[ClaimRow], str]] = {"half": lambda row: halves.get(row.id, ABSENT)}
    return _side_by_side(
        evaluations,
        lambda each: each.claims,
        {"claim": lambda row: row.text}
        | (half if halves else {})
        | {"asks for": lambda row: "; ".join(part.relation for part in row.parts)},
        [VERDICT],
        lambda row: expectation_cells(row.parts, row.holds),
    )


def ranking_rows(evaluations: Evaluations) -> Table:
    """Return the table of rankings."""
    return _side_by_side(
        evaluations,
        lambda each: each.rankings,
        {"order of": lambda row: row.text, "published": lambda row: " > ".join(row.published)},
        [VERDICT],
        lambda row: (ABSENT if row.holds is None else " > ".join(row.ours), YES_OR_NO[row.holds]),
    )


def _difference(row: NumberRow) -> str:
    if row.ours.value is None or row.expected is None:
        return ABSENT
    ratio = row.expected.ratio
    return digits(row.ours.value) if ratio is None else f"{100 * (ratio - 1):+.0f} %"
