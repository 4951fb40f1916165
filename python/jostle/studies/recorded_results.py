"""Recorded results on Linux, because its runs take too long to repeat them for every page.

`linux.json` in a study's folder contains by setup the version of the backend, the date, and the
results by name of number and claim. `tools/results/record_linux.py` writes it from `jostle study
run --backend kernel`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import Field

from jostle.stats import Estimate
from jostle.stats.expectation import Expectation, Verdict, expect_between
from jostle.studies.column import TITLES, Column, Evaluations, column
from jostle.studies.evaluate import (
    ClaimRow,
    Evaluation,
    NumberRow,
    RankingRow,
    comparisons,
    order_text,
    values_digest,
)
from jostle.studies.json_file import read_json_file
from jostle.studies.models import Claim, DataTable
from jostle.studies.study import Study

FILE: Final = "linux.json"
SCHEMA: Final = "jostle.recorded/2"
"""Name and version of the file format."""
_BACKEND: Final = "kernel"
_RELEASE: Final = re.compile(r"-(\d+\.\d+)\.\d+-")

Interval = tuple[float | None, float | None] | None


class RecordedNumber(DataTable):
    """A recorded number, and whether it agreed with the published one."""

    ours: float | None
    interval: Interval
    n: Annotated[int, Field(ge=0)]
    holds: bool | None


class RecordedPart(DataTable):
    """Recorded result of one comparison of a claim.

    Attributes
    ----------
    values
        Digest of the values that were compared; see `values_digest`.
    ours, interval, n
        The estimate; null without a finite value.
    verdict
        Verdict for a value that is not finite; others are judged by the present range.
    """

    values: str
    ours: float | None
    interval: Interval
    n: Annotated[int, Field(ge=0)]
    verdict: Verdict | None


class RecordedClaim(DataTable):
    """Recorded results of a claim's comparisons, in their order."""

    parts: tuple[RecordedPart, ...]


class RecordedOrder(DataTable):
    """Recorded ranking: labels from the largest value to the smallest."""

    ours: tuple[str, ...]
    holds: bool | None


class RecordedSetup(DataTable):
    """Results with a setup.

    Attributes
    ----------
    version
        Version of the backend: kernel, its build, jostle's code that controls it.
    date
        Date of the runs, such as `2026-11-22`.
    numbers, claims, orders
        Results by id.
    """

    version: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    numbers: Mapping[str, RecordedNumber]
    claims: Mapping[str, RecordedClaim]
    orders: Mapping[str, RecordedOrder]


class RecordedStudy(DataTable):
    """A study's `linux.json`: results by setup."""

    format: Literal["jostle.recorded/2"] = Field(alias="schema")
    setups: Mapping[str, RecordedSetup]


def recorded(study: Study, evaluations: Evaluations) -> dict[Column, Evaluation]:
    """Return the columns of recorded results of Linux with the setups that are evaluated.

    There are none if nothing is recorded, or if Linux ran now.

    Raises
    ------
    InputError
        If `linux.json` is not valid.
    """
    if any(one.backend == _BACKEND for one in evaluations):
        return {}
    kept = read_json_file(RecordedStudy, study.folder / FILE, "recording of a study")
    if kept is None:
        return {}
    like = next(iter(evaluations.values()))
    found = {}
    for setup in dict.fromkeys(one.setup for one in evaluations):
        if (one := kept.setups.get(setup)) is not None:
            title = f"{_linux(one.version)}, {one.date}"
            source = f"{one.version}, {one.date}, kept in {FILE}"
            found[column(study, _BACKEND, setup, title, source)] = _filled(study, one, like)
    return found


def _linux(version: str) -> str:
    """Return Linux with the releases in a version of the backend, such as `Linux 6.1`."""
    releases = dict.fromkeys(_RELEASE.findall(version))
    return " ".join((TITLES[_BACKEND], " and ".join(releases))).rstrip()


def _filled(study: Study, kept: RecordedSetup, like: Evaluation) -> Evaluation:
    """Insert recorded values into the rows of the present study."""
    return Evaluation(
        tuple(_number(row, kept.numbers.get(row.id)) for row in like.numbers),
        tuple(_ranking(row, kept) for row in like.rankings),
        tuple(
            _claim(claim, row, kept.claims.get(row.id))
            for claim, row in zip(study.file.claims, like.claims, strict=True)
        ),
    )


def _estimate(unit: str, kept: RecordedNumber | None) -> Estimate:
    if kept is None:
        return Estimate(None, None, None, 0, unit, "not recorded")
    low, high = _ends(kept.interval)
    return Estimate(kept.ours, low, high, kept.n, unit, "recorded")


def _ends(kept: Interval) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of a recorded interval, in which an infinite end is null."""
    if kept is None:
        return None, None
    low, high = kept
    return -math.inf if low is None else low, math.inf if high is None else high


def _number(row: NumberRow, kept: RecordedNumber | None) -> NumberRow:
    ours, expected = _estimate(row.ours.unit, kept), row.expected
    if expected is not None:
        expected = replace(expected, ours=ours, holds=None if kept is None else kept.holds)
    return replace(row, ours=ours, expected=expected)


def _ranking(row: RankingRow, kept: RecordedSetup) -> RankingRow:
    order = kept.orders.get(row.id)
    if order is None:
        return replace(row, ours=(), ours_text="", holds=None)
    numbers = {label: kept.numbers.get(f"{row.id}.{label}") for label in order.ours}
    values = {label: None if one is None else one.ours for label, one in numbers.items()}
    return replace(
        row, ours=order.ours, ours_text=order_text(order.ours, values), holds=order.holds
    )


def _claim(claim: Claim, row: ClaimRow, kept: RecordedClaim | None) -> ClaimRow:
    """Insert recorded values into a claim, and judge them by its present ranges.

    A claim whose values have changed since has no result.
    """
    asked = [values_digest(part) for part in claim.parts for _ in comparisons(part)]
    if kept is None or [part.values for part in kept.parts] != asked:
        parts = tuple(replace(p, ours=_estimate(p.ours.unit, None), holds=None) for p in row.parts)
    else:
        parts = tuple(map(_judged_part, row.parts, kept.parts))
    return replace(row, parts=parts)


def _judged_part(part: Expectation, kept: RecordedPart) -> Expectation:
    low, high = _ends(kept.interval)
    ours = Estimate(kept.ours, low, high, kept.n, part.ours.unit, "recorded")
    if kept.ours is None:
        holds = {"holds": True, "fails": False}.get(str(kept.verdict))
        return replace(part, ours=ours, holds=holds, certain=holds is not None)
    return expect_between(ours, part.target, part.under, part.over, part.relation)
