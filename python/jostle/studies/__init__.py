"""Published studies as data: scenarios, numbers and claims, which are checked against our runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.studies.evaluate import ClaimRow, NumberRow, RankingRow
    from jostle.studies.library import STUDIES
    from jostle.studies.runs import Runs
    from jostle.studies.study import Study

__all__ = [
    "STUDIES",
    "ClaimRow",
    "NumberRow",
    "RankingRow",
    "Runs",
    "Study",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ClaimRow": "evaluate",
        "NumberRow": "evaluate",
        "RankingRow": "evaluate",
        "Runs": "runs",
        "STUDIES": "library",
        "Study": "study",
    },
)
