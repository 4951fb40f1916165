"""Which of a paper's figures and tables have a counterpart here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jostle.results.number_format import ABSENT
from jostle.results.text_table import Table
from jostle.studies.models import CoverageItem
from jostle.studies.study import Study

SCHEMA: Final = "jostle.coverage/1"
"""Name and version of the document."""


def coverage_rows(study: Study) -> Table:
    """Table of a paper's figures and tables: what each shows, ours, status, and why not."""
    header = ("figure or table", "shows", "ours", "status", "missing")
    rows = (
        (one.item, one.shows, _ours(one) or ABSENT, one.status, one.why or ABSENT)
        for one in study.file.coverage
    )
    return Table(header, tuple(rows))


def coverage_count(study: Study) -> str:
    """Say how many of a paper's figures and tables there are: `9 yes, 1 in part, 2 no`."""
    every = [one.status for one in study.file.coverage]
    counts = {status: every.count(status) for status in ("yes", "in part", "no")}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count)


def _ours(one: CoverageItem) -> str:
    return ", ".join((*one.ours, *([one.elsewhere] if one.elsewhere else [])))


def coverage_document(studies: Sequence[Study]) -> dict[str, Any]:
    """Give the coverage of studies as plain data, `jostle.coverage/1`."""
    return {
        "schema": SCHEMA,
        "studies": [
            {
                "id": study.id,
                "paper": study.file.paper,
                "items": [_item(one) for one in study.file.coverage],
            }
            for study in studies
        ],
    }


def _item(one: CoverageItem) -> dict[str, Any]:
    return {
        "item": one.item,
        "shows": one.shows,
        "ours": list(one.ours),
        "elsewhere": one.elsewhere,
        "status": one.status,
        "why": one.why,
    }
