"""Published studies as data: scenarios, numbers and claims, which are checked against our runs."""

from __future__ import annotations

from jostle.studies.evaluate import ClaimRow, NumberRow, RankingRow, evaluate
from jostle.studies.library import STUDIES
from jostle.studies.load import load
from jostle.studies.runs import Runs
from jostle.studies.study import Study

__all__ = [
    "STUDIES",
    "ClaimRow",
    "NumberRow",
    "RankingRow",
    "Runs",
    "Study",
    "evaluate",
    "load",
]
