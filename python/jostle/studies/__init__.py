"""Published studies as data: their scenarios, numbers and claims, held against our own runs."""

from __future__ import annotations

from jostle.studies.evaluate import ClaimRow, NumberRow, RankingRow, evaluate
from jostle.studies.load import INSTALLED, load, names
from jostle.studies.runs import Runs
from jostle.studies.study import Study

__all__ = [
    "INSTALLED",
    "ClaimRow",
    "NumberRow",
    "RankingRow",
    "Runs",
    "Study",
    "evaluate",
    "load",
    "names",
]
