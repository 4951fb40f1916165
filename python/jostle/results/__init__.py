"""Results of finished runs: the ResultSet, its frames, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.results.compared_phase import OVERALL
    from jostle.results.finished_runs import ConditionRun, Failure, FinishedRuns, Phase
    from jostle.results.result_set import ResultSet
    from jostle.results.summary_document import SCHEMA

__all__ = ["OVERALL", "SCHEMA", "ConditionRun", "Failure", "FinishedRuns", "Phase", "ResultSet"]

__getattr__ = lazy_names(
    __name__,
    {
        "ConditionRun": "finished_runs",
        "Failure": "finished_runs",
        "FinishedRuns": "finished_runs",
        "OVERALL": "compared_phase",
        "Phase": "finished_runs",
        "ResultSet": "result_set",
        "SCHEMA": "summary_document",
    },
)
