"""Evaluations as one frame: a row per number or part of a claim, and column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from jostle.results.expectation_text import VERDICT_WORDS, YES_OR_NO
from jostle.results.frames import table
from jostle.results.number_format import ABSENT

if TYPE_CHECKING:
    import polars as pl

    from jostle.stats import Estimate
    from jostle.studies.column import Evaluations
    from jostle.studies.study import Study

_NUMBERS: Final = ("published", "published_sd", "value", "low", "high")


def study_frame(done: Sequence[tuple[Study, Evaluations]]) -> pl.DataFrame:
    """Give all numbers and claims of some studies, unrounded.

    Returns
    -------
    polars.DataFrame
        `study`, `backend`, `setup`, `kind` (`number` or `claim`), `id`, `text`, `asks` (what a
        part of a claim asks for), `unit`, `published`, `published_sd`, ours as `value`, `low`,
        `high` and `n`, whether it `holds`: `yes`, `no`, `open` or null, and `incomplete`: how many
        runs failed, and why, or null.
    """
    rows = [row for study, evaluations in done for row in _rows(study, evaluations)]
    header = [
        "study", "backend", "setup", "kind", "id", "text", "asks", "unit", *_NUMBERS, "n",
        "holds", "incomplete",
    ]  # fmt: skip
    return table(rows, header, _NUMBERS)


def _rows(study: Study, evaluations: Evaluations) -> Iterator[dict[str, Any]]:
    for column, evaluation in evaluations.items():
        place = {"study": study.id, "backend": column.backend, "setup": column.setup}
        for number in evaluation.numbers:
            published = {"published": number.published, "published_sd": number.published_sd}
            facts = {"kind": "number", "id": number.id, "text": number.text, "asks": None}
            yield place | facts | published | _ours(number.ours, YES_OR_NO[number.holds])
        for claim in evaluation.claims:
            for part in claim.parts:
                facts = {"kind": "claim", "id": claim.id, "text": claim.text, "asks": part.relation}
                nothing = {"published": None, "published_sd": None}
                yield place | facts | nothing | _ours(part.ours, VERDICT_WORDS[part.verdict])


def _ours(found: Estimate, verdict: str) -> dict[str, Any]:
    return {
        "unit": found.unit, **found.entry(), "holds": None if verdict == ABSENT else verdict,
        "incomplete": found.incomplete or None,
    }  # fmt: skip
