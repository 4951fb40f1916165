"""Recorded results on Linux, because its runs take too long to repeat them for every page.

`linux.json` in a study's folder contains the results by name of number and claim, the version of
the backend and the date. `tools/results/record_linux.py` writes it from `jostle study run --backend
kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import Field

from jostle.stats import Estimate
from jostle.studies.evaluate import ClaimRow, Evaluation, NumberRow, RankingRow
from jostle.studies.json_document import TITLES, Column, Evaluations
from jostle.studies.json_file import read_json_file
from jostle.studies.models import DataTable
from jostle.studies.study import DESCRIBED, Study

FILE: Final = "linux.json"
SCHEMA: Final = "jostle.recorded/1"
"""Name and version of the file format."""
_BACKEND: Final = "kernel"

Interval = tuple[float, float] | None


class RecordedNumber(DataTable):
    """A recorded number, and whether it agreed with the published one."""

    ours: float | None
    interval: Interval
    holds: bool | None


class RecordedPart(RecordedNumber):
    """Recorded result of one comparison of a claim."""

    relation: str
    certain: bool


class RecordedClaim(DataTable):
    """Recorded results of a claim's comparisons, in their order."""

    holds: bool | None
    parts: tuple[RecordedPart, ...]


class RecordedOrder(DataTable):
    """Recorded ranking: labels from the largest value to the smallest."""

    ours: tuple[str, ...]
    holds: bool | None


class RecordedStudy(DataTable):
    """A study's `linux.json`.

    Attributes
    ----------
    version
        Version of the backend: kernel, its build, jostle's code that controls it.
    date
        Date of the runs, such as `2026-11-22`.
    numbers, claims, orders
        Results by id.
    """

    format: Literal["jostle.recorded/1"] = Field(alias="schema")
    version: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    numbers: Mapping[str, RecordedNumber]
    claims: Mapping[str, RecordedClaim]
    orders: Mapping[str, RecordedOrder]


def recorded(study: Study, evaluations: Evaluations) -> dict[Column, Evaluation]:
    """Return the column of recorded results of Linux with the setup as described.

    It is empty if nothing is recorded, if Linux ran now, or if only other setups were requested.

    Raises
    ------
    InputError
        If `linux.json` is not valid.
    """
    there = {(one.backend, one.reading) for one in evaluations}
    if any(backend == _BACKEND for backend, _ in there) or DESCRIBED not in {r for _, r in there}:
        return {}
    kept = read_json_file(RecordedStudy, study.folder / FILE, "recording of a study")
    if kept is None:
        return {}
    title = f"{TITLES[_BACKEND]}, {kept.date}"
    like = next(iter(evaluations.values()))
    one = Column(_BACKEND, DESCRIBED, title, f"{kept.version}, {kept.date}, kept in {FILE}")
    return {one: _filled(kept, like)}


def _filled(kept: RecordedStudy, like: Evaluation) -> Evaluation:
    """Insert recorded values into the rows of the present study."""
    return Evaluation(
        tuple(_number(row, kept.numbers.get(row.id)) for row in like.numbers),
        tuple(_ranking(row, kept.orders.get(row.id)) for row in like.rankings),
        tuple(_claim(row, kept.claims.get(row.id)) for row in like.claims),
    )


def _estimate(unit: str, kept: RecordedNumber | None) -> Estimate:
    if kept is None:
        return Estimate(None, None, None, 0, unit, "not recorded")
    low, high = kept.interval or (None, None)
    return Estimate(kept.ours, low, high, 0, unit, "recorded")


def _number(row: NumberRow, kept: RecordedNumber | None) -> NumberRow:
    ours, expected = _estimate(row.ours.unit, kept), row.expected
    if expected is not None:
        expected = replace(expected, ours=ours, holds=None if kept is None else kept.holds)
    return replace(row, ours=ours, expected=expected)


def _ranking(row: RankingRow, kept: RecordedOrder | None) -> RankingRow:
    if kept is None:
        return replace(row, ours=(), holds=None)
    return replace(row, ours=kept.ours, holds=kept.holds)


def _claim(row: ClaimRow, kept: RecordedClaim | None) -> ClaimRow:
    """Insert recorded values into a claim, unless its comparisons have changed."""
    asked = [part.relation for part in row.parts]
    if kept is None or [part.relation for part in kept.parts] != asked:
        parts = tuple(replace(p, ours=_estimate(p.ours.unit, None), holds=None) for p in row.parts)
        return replace(row, parts=parts)
    parts = tuple(
        replace(part, ours=_estimate(part.ours.unit, one), holds=one.holds, certain=one.certain)
        for part, one in zip(row.parts, kept.parts, strict=True)
    )
    return replace(row, parts=parts)
