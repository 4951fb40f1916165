"""An evaluation as the JSON document of `jostle study run --json`, and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

from jostle.results.expectation_text import (
    YES_OR_NO,
    expectation_cells,
    expectation_entry,
)
from jostle.results.number_format import ABSENT, digits, estimate_text
from jostle.results.text_table import VERDICT, Table
from jostle.studies.column import Evaluations, by_setup
from jostle.studies.deviations import deviations, summarize
from jostle.studies.evaluate import (
    ClaimRow,
    Evaluation,
    NumberRow,
    comparisons,
    values_digest,
)
from jostle.studies.findings import findings, learned
from jostle.studies.fitted_setups import fit_sentence
from jostle.studies.models import Claim
from jostle.studies.study import Study
from jostle.studies.verdicts import claim_verdicts, count_text, verdict_counts

SCHEMA: Final = "jostle.study/4"
"""Name and version of the document. Removing or redefining a key requires a new version."""


def document(
    done: Sequence[tuple[Study, Evaluations]],
    versions: Mapping[str, str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return every study with its claims and numbers as plain data, `jostle.study/4`.

    Claims and numbers contain the values of the first column at the top level. `class` is the
    verdict over all plausible setups; see `verdicts.py`. `backends` contains
    the values of every backend as described (or with the first requested setup), and `setups`
    the values of `setups`. A value is null without one, and if it is infinite because the event
    `never` occurred in a run. `versions` are the versions of the backends that ran. `points` are
    the operating points of Linux's flows by study; see `operating_points_archive.py`.
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
            found.setdefault(one.setup, {})[one.backend] = values(each)
        backends = {one.backend: values(plain[one.backend]) for one in evaluations}
        return {"backends": backends, "setups": found}

    named = by_setup(evaluations, first_column.backend)
    return {
        "id": study.id,
        "learned": learned(study.file, first_column.setup, named),
        "fit": fit_sentence(study.file, evaluations) or None,
        "setups": [
            {
                "id": one.setup,
                "backend": one.backend,
                "title": one.title,
                "deviation": None
                if (found := summarize(deviations(study.file, each))) is None
                else asdict(found),
                "claims": verdict_counts(each.claims),
            }
            for one, each in evaluations.items()
        ],
        "claims": [
            {
                "id": row.id,
                "text": row.text,
                "class": verdict.title,
                "supporting": verdict.supporting,
                "contradicting": verdict.contradicting,
                "open": verdict.open,
            }
            | _claim(claim, row)
            | everywhere(lambda each, at=at, claim=claim: _claim(claim, each.claims[at]))
            for at, (claim, row, verdict) in enumerate(
                zip(study.file.claims, first.claims, claim_verdicts(evaluations), strict=True)
            )
        ],
        "numbers": [
            {"id": row.id, "unit": row.ours.unit, "published": row.published}
            | _number(row)
            | everywhere(lambda each, at=at: _number(each.numbers[at]))
            for at, row in enumerate(first.numbers)
        ],
        "findings": [
            {"figure": one.figure, "text": one.text}
            for one in findings(study.file, first_column.setup, named)
        ],
        "rankings": [
            {"id": row.id, "published": row.published, "ours": row.ours, "holds": row.holds}
            for row in first.rankings
        ],
    }


_PART: Final = "relation ours interval n incomplete never possible holds verdict"


def _claim(claim: Claim, row: ClaimRow) -> dict[str, Any]:
    values = [values_digest(part) for part in claim.parts for _ in comparisons(part)]
    return {
        "published": row.decisive.relation,
        **expectation_entry(row.decisive, "ours interval incomplete never possible"),
        "holds": row.holds,
        "verdict": row.verdict,
        "parts": [
            expectation_entry(part, _PART) | {"values": digest}
            for part, digest in zip(row.parts, values, strict=True)
        ],
    }


def _number(row: NumberRow) -> dict[str, Any]:
    return {
        "ours": row.ours.finite,
        "interval": row.ours.interval,
        "n": row.ours.n,
        "incomplete": row.ours.incomplete or None,
        "never": row.ours.never,
        "possible": row.ours.possible_ends,
        "holds": row.holds,
    }


def setup_rows(study: Study, evaluations: Evaluations) -> Table:
    """Return the table of setups: how many claims hold with each, and its evidence."""
    if not study.file.setups:
        return Table((), ())
    said = {one.id: one for one in study.file.setups}
    rows: list[tuple[str, ...]] = []
    for one, evaluation in evaluations.items():
        setup = said.get(one.setup)
        text = "the setup of the scenarios, without changes" if setup is None else setup.text
        support = () if setup is None else setup.support
        quotes = "; ".join(f"“{each.quote}” ({each.source})" for each in support)
        rows.append((one.title, count_text(evaluation.claims), text, quotes or ABSENT))
    header = ("setup", "claims", "what it changes", "what supports it")
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
        yield estimate_text(row.ours, runs=True)
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
        lambda row: expectation_cells(row.parts, row.verdict),
    )


def ranking_rows(evaluations: Evaluations) -> Table:
    """Return the table of rankings."""
    return _side_by_side(
        evaluations,
        lambda each: each.rankings,
        {"order of": lambda row: row.text, "published": lambda row: row.published_text},
        [VERDICT],
        lambda row: (ABSENT if row.holds is None else row.ours_text, YES_OR_NO[row.holds]),
    )


def _difference(row: NumberRow) -> str:
    if row.ours.finite is None or row.expected is None or row.ours.possible is not None:
        return ABSENT
    ratio = row.expected.ratio
    return digits(row.ours.finite) if ratio is None else f"{100 * (ratio - 1):+.0f} %"
